//! The statistics of an engine: those that it measures on request, and how long requests have waited. The others are
//! counted where they happen.

use super::Engine;
use crate::cluster::statistics::Stats;
use crate::http::request::Waits;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Engine {
    /// The current statistics.
    pub fn stats(&self) -> Stats {
        if self.is_at_home() {
            self.write_gauges();
        }
        self.counters().stats(self.services.realtime.hub().counters())
    }

    /// Counts how long a request has waited that the app has run: before that, and for the lock of the language.
    pub(super) fn count_waits(&self, waits: Waits, lock_wait: Option<Duration>) {
        let counters = self.counters();
        counters.queue_time.count(waits.queue);
        if !waits.waiting_room.is_zero() {
            counters.waiting_room_time.count(waits.waiting_room);
        }
        if let Some(lock_wait) = lock_wait {
            counters.lock_wait.count(lock_wait);
        }
    }

    /// Stores the gauges that are not updated as they change.
    pub(super) fn write_gauges(&self) {
        let (counters, threads) = (self.counters(), self.scheduler.now());
        let queued = self.scheduler.ready().len() + self.in_line.load(Relaxed);
        counters.queued.store(queued as i64, Relaxed);
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
