//! The control server through its sockets, with a fake supervisor.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod commands;
mod dashboard;
mod ending;
mod health;
mod limits;
mod metrics;
mod questions;
mod requests;
mod statistics;
mod support;
