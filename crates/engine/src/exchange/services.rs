//! The parts of an engine that all its exchanges need.

use crate::config::Config;
use crate::files::Files;
use crate::observe::excess::About;
use crate::realtime::Realtime;
use crate::spool::{Relief, Spool};
use crate::stream::output::Spill;
use crate::worker::Worker;
use std::sync::{Arc, Weak};

/// See the head of this file.
pub(crate) struct Services {
    pub(crate) worker: Arc<Worker>,
    pub(crate) spool: Arc<Spool>,
    pub(crate) files: Files,
    pub(crate) realtime: Arc<Realtime>,
    pub(crate) relief: Weak<dyn Relief>,
}

impl Services {
    pub(super) fn config(&self) -> &Config {
        &self.worker.config
    }

    /// The destination of bytes that the buffer of the connection cannot hold.
    pub(super) fn spill(&self) -> Spill<'_> {
        Spill::new(&self.worker.config, &self.spool)
    }

    /// Logs that a client was aborted to free memory for other responses.
    pub(crate) fn log_abort(&self) {
        self.worker.log.about_peer(
            About::SlowReader,
            None,
            format_args!("aborted the slowest reader: unsent responses have reached response_memory_total_bytes, and requests wait"),
        );
    }
}
