//! Pub/sub: who gets what within a process (`delivery.rs`), and between processes that share a bus (`mail.rs`; the
//! hubs of several workers live in one process here, with nothing in common but what workers have in common).
#![allow(unreachable_pub, missing_docs, clippy::unwrap_used, reason = "a test")]

mod delivery;
mod mail;
mod recorder;
