//! The statistics of an engine: those that it counts, and those that it measures on request.

use super::Engine;
use crate::cluster::statistics::Stats;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// The current statistics.
    pub fn stats(&self) -> Stats {
        if self.is_at_home() {
            self.write_gauges();
        }
        self.counters().stats(self.services.realtime.hub().counters())
    }

    /// Stores the gauges that are not updated as they change.
    pub(super) fn write_gauges(&self) {
        let (counters, threads) = (self.counters(), self.scheduler.now());
        counters.queued.store(self.scheduler.ready().len() as i64, Relaxed);
        let parties = self.scheduler.ready().waiting_parties();
        counters.queued_clients.store(parties as i64, Relaxed);
        counters.threads.store(threads.begun() as i64, Relaxed);
        counters.busy_threads.store(threads.busy() as i64, Relaxed);
        counters.idle_threads.store(threads.free() as i64, Relaxed);
        let pending = self.services.realtime.intake().bytes();
        counters.pending_message_bytes.store(pending as i64, Relaxed);
        let lost = self.worker.log.lost();
        counters.lost_log_lines.store(lost.lines, Relaxed);
        counters.lost_log_bytes.store(lost.bytes, Relaxed);
    }
}
