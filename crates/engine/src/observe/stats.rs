//! The statistics of an engine: what it counts, and what it measures when it is asked.

use crate::cluster::statistics::Stats;
use crate::engine::Engine;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// The statistics of this moment.
    pub fn stats(&self) -> Stats {
        if self.is_at_home() {
            self.publish_gauges();
        }
        self.counters().stats(self.hub.counters())
    }

    /// Writes to the scoreboard what is not counted there as it happens.
    pub(crate) fn publish_gauges(&self) {
        let (counters, threads) = (self.counters(), self.threads.now());
        counters.queued.store(self.ready.len() as i64, Relaxed);
        counters.threads.store(threads.begun() as i64, Relaxed);
        counters.busy_threads.store(threads.busy() as i64, Relaxed);
        counters.idle_threads.store(threads.free() as i64, Relaxed);
        counters
            .pending_message_bytes
            .store(self.intake.bytes() as i64, Relaxed);
        counters.lost_log_lines.store(self.log.lost(), Relaxed);
    }
}
