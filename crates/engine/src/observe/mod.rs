//! What is told of the engine: its log, the access log, and its statistics.

pub(crate) mod access_log;
pub(crate) mod log_writer;
