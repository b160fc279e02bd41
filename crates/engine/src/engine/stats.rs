//! The figures of this moment.

use super::Engine;
use crate::observe::stats::Stats;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// The figures of this moment.
    pub fn stats(&self) -> Stats {
        let counters = self.counters();
        let hub = self.services.realtime.hub().counters();
        Stats {
            connections: counters.connections.load(Relaxed),
            requests: counters.requests.load(Relaxed),
            files: counters.files.load(Relaxed),
            queued: self.scheduler.ready().len(),
            threads: self.scheduler.now().begun(),
            busy_threads: self.scheduler.now().busy(),
            moved_out: counters.moved_out.load(Relaxed),
            moved_in: counters.moved_in.load(Relaxed),
            refused_requests: counters.refused_requests.load(Relaxed),
            refused_connections: counters.refused_connections.load(Relaxed),
            clients: counters.clients.load(Relaxed).max(0) as u64,
            events: counters.events.load(Relaxed),
            pending_message_bytes: self.services.realtime.intake().bytes(),
            dropped: counters.dropped.load(Relaxed),
            overflowed: counters.overflowed.load(Relaxed),
            published: hub.published.load(Relaxed),
            delivered: hub.delivered.load(Relaxed),
            mail_waits: hub.mail_waits.load(Relaxed),
            mail_lost: hub.mail_lost.load(Relaxed),
            lost_log_lines: self.worker.log.lost(),
        }
    }

    /// Writes the gauges to the scoreboard.
    pub(super) fn write_gauges(&self) {
        let counters = self.counters();
        counters.queued.store(self.scheduler.ready().len() as u64, Relaxed);
        counters.busy_threads.store(self.scheduler.now().busy() as u64, Relaxed);
    }
}
