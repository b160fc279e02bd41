//! What is told of the engine: its log, the access log, and the figures.

pub(crate) mod access_log;
pub(crate) mod log_writer;
pub(crate) mod stats;
