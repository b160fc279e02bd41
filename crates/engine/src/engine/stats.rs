//! The statistics of an engine: what it counts, and what it measures when it is asked.

use super::Engine;
use crate::cluster::statistics::Stats;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// The statistics of this moment.
    pub fn stats(&self) -> Stats {
        if self.is_at_home() {
            self.write_gauges();
        }
        self.counters().stats(self.services.realtime.hub().counters())
    }

    /// Writes to the scoreboard what is not counted there as it happens.
    pub(super) fn write_gauges(&self) {
        let (counters, threads) = (self.counters(), self.scheduler.now());
        counters.queued.store(self.scheduler.ready().len() as i64, Relaxed);
        counters.threads.store(threads.begun() as i64, Relaxed);
        counters.busy_threads.store(threads.busy() as i64, Relaxed);
        counters.idle_threads.store(threads.free() as i64, Relaxed);
        let pending = self.services.realtime.intake().bytes();
        counters.pending_message_bytes.store(pending as i64, Relaxed);
        counters.lost_log_lines.store(self.worker.log.lost(), Relaxed);
    }
}
