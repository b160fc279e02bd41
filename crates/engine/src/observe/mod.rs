//! The logs of the engine: its error log and the access log.

pub(crate) mod access_log;
pub(crate) mod excess;
mod log_stream;
pub(crate) mod log_writer;
