//! Returns memory to the system after a burst of clients: the allocator keeps freed memory for the next burst.

use super::job::Job;
use crate::connection::connections::Connections;
use crate::exchange::Services;
use crate::limits::burst;
use crate::scheduler::Scheduler;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Estimated memory of a connection, without the memory counted for its request.
const CONNECTION_BYTES: u64 = 16 * 1024;

/// Requests may still run when a burst ends. They get `STEPS` steps to finish first.
const STEP: Duration = Duration::from_millis(250);
const STEPS: u32 = 20;

/// See the head of this file.
pub(super) struct Memory {
    services: Arc<Services>,
    connections: Arc<Connections>,
    scheduler: Arc<Scheduler<Job>>,
    bursts: Bursts,
    is_trimming: AtomicBool,
}

/// The bursts of clients.
#[derive(Default)]
struct Bursts {
    /// Peak of the current burst, in bytes. Written only by the poller.
    peak: AtomicU64,
}

impl Memory {
    pub(super) fn new(
        services: &Arc<Services>,
        connections: &Arc<Connections>,
        scheduler: &Arc<Scheduler<Job>>,
    ) -> Arc<Memory> {
        Arc::new(Memory {
            services: Arc::clone(services),
            connections: Arc::clone(connections),
            scheduler: Arc::clone(scheduler),
            bursts: Bursts::default(),
            is_trimming: AtomicBool::new(false),
        })
    }

    /// Checks if a burst is over; called by the poller.
    pub(super) fn look_after(self: &Arc<Self>) {
        let (worker, services) = (&self.services.worker, &self.services);
        let connections = worker.counters().connections.load(Relaxed).max(0) as u64;
        let (counted, _) = worker.config.request_totals.used();
        let messages = services.realtime.intake().bytes() as u64;
        let unsent = services.spool.memory();
        let used = connections * CONNECTION_BYTES + counted + messages + unsent;
        if self.bursts.has_receded(used) {
            self.trim_soon();
        }
    }

    /// Trims on a separate thread that ends afterwards: trimming is rare and takes milliseconds.
    fn trim_soon(self: &Arc<Self>) {
        if self.is_trimming.swap(true, Relaxed) {
            return;
        }
        let memory = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("fairlead memory".into());
        let started = thread.spawn(move || wait_and_trim(&memory));
        self.is_trimming.store(started.is_ok(), Relaxed);
    }

    fn trim(&self) {
        self.is_trimming.store(false, Relaxed);
        self.connections.parked().shrink();
        self.scheduler.ready().shrink();
        (self.services.worker.config.trim_memory)();
    }
}

/// Does not keep the engine alive during the wait.
fn wait_and_trim(memory: &Weak<Memory>) {
    for _ in 0..STEPS {
        std::thread::sleep(STEP);
        let Some(memory) = memory.upgrade() else { return };
        if memory.scheduler.now().busy() == 0 {
            break;
        }
    }
    if let Some(memory) = memory.upgrade() {
        memory.trim();
    }
}

impl Bursts {
    /// True if a burst is over and `now` bytes are in use; returns true once per burst.
    fn has_receded(&self, now: u64) -> bool {
        let peak = self.peak.load(Relaxed);
        let has_receded = burst::is_over(peak, now);
        if has_receded || now > peak {
            self.peak.store(now, Relaxed);
        }
        has_receded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_burst_is_reported_once() {
        let bursts = Bursts::default();
        let mebibytes = |count: u64| count * 1024 * 1024;
        assert!(!bursts.has_receded(mebibytes(100)));
        assert!(!bursts.has_receded(mebibytes(20)));
        assert!(!bursts.has_receded(mebibytes(13)));
        assert!(bursts.has_receded(mebibytes(12)));
        assert!(!bursts.has_receded(mebibytes(1)));
    }

    #[test]
    fn small_peaks_are_not_bursts() {
        let bursts = Bursts::default();
        assert!(!bursts.has_receded(burst::WORTHWHILE_BYTES - 1));
        assert!(!bursts.has_receded(0));
    }
}
