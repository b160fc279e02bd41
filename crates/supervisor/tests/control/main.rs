//! The control server by its sockets, with a host that stands in for the supervisor.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod commands;
mod ending;
mod health;
mod limits;
mod questions;
mod requests;
mod statistics;
mod support;
