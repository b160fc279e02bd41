//! Statistics of an engine that are measured on request, and the waiting times of requests. All other statistics are
//! counted where they occur.

use super::held::Held;
use super::job::Job;
use crate::cluster::scoreboard::Slot;
use crate::cluster::statistics::Stats;
use crate::exchange::Services;
use crate::http::request::Waits;
use crate::scheduler::Scheduler;
use crate::worker::Worker;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// See the head of this file.
pub(super) struct Statistics {
    worker: Arc<Worker>,
    services: Arc<Services>,
    scheduler: Arc<Scheduler<Job>>,
    held: Arc<Held>,
    /// Requests that wait behind others of their HTTP/2 connection.
    queued_streams: Arc<AtomicUsize>,
}

impl Statistics {
    pub(super) fn new(
        services: &Arc<Services>,
        scheduler: &Arc<Scheduler<Job>>,
        held: &Arc<Held>,
        queued_streams: &Arc<AtomicUsize>,
    ) -> Statistics {
        Statistics {
            worker: Arc::clone(&services.worker),
            services: Arc::clone(services),
            scheduler: Arc::clone(scheduler),
            held: Arc::clone(held),
            queued_streams: Arc::clone(queued_streams),
        }
    }

    /// Current statistics.
    pub(super) fn now(&self) -> Stats {
        if self.worker.is_at_home() {
            self.write_gauges();
        }
        let hub = self.services.realtime.hub();
        self.worker.counters().stats(hub.counters())
    }

    /// Counts the waiting times of a request: until the app ran it, and for the lock of the language.
    pub(super) fn count_waits(&self, waits: Waits, lock_wait: Option<Duration>) {
        let counters = self.worker.counters();
        counters.queue_time.count(waits.queue);
        if !waits.waiting_room.is_zero() {
            counters.waiting_room_time.count(waits.waiting_room);
        }
        if let Some(lock_wait) = lock_wait {
            counters.lock_wait.count(lock_wait);
        }
    }

    /// Stores the number of threads. A process that the app has forked must not: it would write to the slot of its
    /// parent.
    pub(super) fn write_threads(&self) {
        if self.worker.is_at_home() {
            let begun = self.scheduler.now().begun();
            self.worker.counters().threads.store(begun as i64, Relaxed);
        }
    }

    /// Stores the gauges that are not updated on each change.
    pub(super) fn write_gauges(&self) {
        let (counters, threads) = (self.worker.counters(), self.scheduler.now());
        let queued = self.scheduler.ready().len() + self.held.count() + self.queued_streams.load(Relaxed);
        counters.queued.store(queued as i64, Relaxed);
        let flows = self.scheduler.ready().waiting_flows();
        counters.queued_clients.store(flows as i64, Relaxed);
        counters.threads.store(threads.begun() as i64, Relaxed);
        counters.busy_threads.store(threads.busy() as i64, Relaxed);
        counters.idle_threads.store(threads.free() as i64, Relaxed);
        let hub = self.services.realtime.hub();
        counters.channels.store(hub.channels() as i64, Relaxed);
        counters.subscriptions.store(hub.subscriptions() as i64, Relaxed);
        let pending = self.services.realtime.intake().bytes();
        counters.pending_message_bytes.store(pending as i64, Relaxed);
        self.write_sizes(counters);
        let lost = self.worker.log.lost();
        counters.lost_log_lines.store(lost.lines, Relaxed);
        counters.lost_log_bytes.store(lost.bytes, Relaxed);
    }

    /// Stores the sizes of the spools, and the limits.
    fn write_sizes(&self, counters: &Slot) {
        let (config, spool) = (&self.worker.config, &self.services.spool);
        let (request_memory, request_disk) = config.request_totals.used();
        let (most_memory, most_disk) = config.request_totals.most();
        for (gauge, value) in [
            (&counters.response_memory_bytes, spool.memory()),
            (&counters.response_disk_bytes, spool.disk()),
            (&counters.request_memory_bytes, request_memory),
            (&counters.request_disk_bytes, request_disk),
            (&counters.limit_connections, config.max_connections as u64),
            (&counters.limit_threads, config.max_threads as u64),
            (
                &counters.limit_response_memory_bytes,
                config.response_memory_total_bytes,
            ),
            (&counters.limit_response_disk_bytes, config.response_disk_total_bytes),
            (&counters.limit_request_memory_bytes, most_memory),
            (&counters.limit_request_disk_bytes, most_disk),
        ] {
            gauge.store(i64::try_from(value).unwrap_or(i64::MAX), Relaxed);
        }
    }
}
