//! What is told of the engine: its log and the access log.

pub(crate) mod access_log;
pub(crate) mod log_writer;
