//! The control server and the health endpoints: a small HTTP server for programs that watch and control Fairlead. It
//! accepts one short request per connection.
//!
//! It has no thread and never blocks: the supervisor's loop polls [`ControlServer::descriptor`], waits until
//! [`ControlServer::deadline`], and calls [`ControlServer::turn`]. If a command needs Ruby, its question is passed on.
//! The answer comes through a pipe, or not at all, and no other request waits for it.

mod commands;
mod connection;
mod connections;
mod counts;
mod dashboard;
pub(crate) mod date;
mod event_stream;
mod exposition;
mod health;
mod host;
mod inspect;
mod json;
mod listeners;
mod metrics;
mod pages;
mod peaks;
mod poller;
mod puma_metrics;
mod puma_stats;
mod questions;
mod report;
mod request;
mod response;
mod restart_counts;
mod server;
pub mod status;
mod token;

pub use commands::Access;
pub use host::{Asked, CgroupMemory, Host, MemoryOf, ProcessMemory, Question, WorkerAnswer};
pub use restart_counts::RestartCounts;
pub use serde_json::value::RawValue;
pub use server::{ControlServer, Kind, Limits};
pub use status::{Child, Paused, ReforkEffect, Restart, RestartState, ServerState, Status};
