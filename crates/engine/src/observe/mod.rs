//! What the engine logs: its own log and the access log.

pub(crate) mod access_log;
pub(crate) mod excess;
mod log_stream;
pub(crate) mod log_writer;
