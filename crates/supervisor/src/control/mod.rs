//! The control server and the health endpoints: a small HTTP server for programs that watch and steer Fairlead. It
//! takes one short request of each connection.
//!
//! No thread and no blocking: the loop of the supervisor waits for [`ControlServer::descriptor`] and
//! [`ControlServer::deadline`], and calls [`ControlServer::turn`]. A command that only Ruby can answer is passed on;
//! the answer comes through a pipe, or not at all, and no other request waits for it.

mod commands;
mod connection;
mod connections;
mod counts;
pub(crate) mod date;
mod health;
mod host;
mod inspect;
mod json;
mod listeners;
mod peaks;
mod poller;
mod puma_stats;
mod questions;
mod report;
mod request;
mod response;
mod server;
pub mod status;
mod token;

pub use commands::Access;
pub use host::{Asked, Host, Question, WorkerAnswer};
pub use serde_json::value::RawValue;
pub use server::{ControlServer, Kind, Limits};
pub use status::{Child, Restart, RestartState, ServerState, Status};
