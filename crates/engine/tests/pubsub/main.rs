//! Pub/sub: delivery within a process (`delivery.rs`), and between processes that share a bus (`mail.rs`; here the hubs
//! of several workers are in one process, and share only what workers share), and subscribers that move (`moving.rs`, and
//! to another release `releases.rs`).
#![allow(unreachable_pub, missing_docs, clippy::unwrap_used, reason = "a test")]

mod delivery;
mod mail;
mod moving;
mod recorder;
mod releases;
