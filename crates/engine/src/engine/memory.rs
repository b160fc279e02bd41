//! Returns memory to the system after a burst of clients: the allocator keeps freed memory for the next burst.

use super::Engine;
use crate::limits::burst;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Weak;
use std::time::Duration;

/// Estimated memory of a connection, in addition to what is counted for its request.
const CONNECTION_BYTES: u64 = 16 * 1024;

/// Requests may still run when a burst ends. They may finish first, within `STEPS` steps.
const STEP: Duration = Duration::from_millis(250);
const STEPS: u32 = 20;

#[derive(Default)]
pub(super) struct Memory {
    /// Peak of the current burst, in bytes. Written only by the poller.
    peak: AtomicU64,
    is_trimming: AtomicBool,
}

impl Memory {
    /// Whether a burst is over, with `now` bytes in use. True once per burst.
    fn has_receded(&self, now: u64) -> bool {
        let peak = self.peak.load(Relaxed);
        let has_receded = burst::is_over(peak, now);
        if has_receded || now > peak {
            self.peak.store(now, Relaxed);
        }
        has_receded
    }
}

impl Engine {
    /// Checks whether a burst is over; called by the poller.
    pub(super) fn look_after_memory(&self) {
        let connections = self.worker.counters().connections.load(Relaxed).max(0) as u64;
        let (counted, _) = self.worker.config.request_totals.used();
        let messages = self.services.realtime.intake().bytes() as u64;
        let unsent = self.services.spool.memory();
        if self
            .memory
            .has_receded(connections * CONNECTION_BYTES + counted + messages + unsent)
        {
            self.trim_soon();
        }
    }

    /// On a thread that ends afterwards: trimming is rare and takes milliseconds.
    fn trim_soon(&self) {
        if self.memory.is_trimming.swap(true, Relaxed) {
            return;
        }
        let engine = self.me.clone();
        let thread = std::thread::Builder::new().name("fairlead memory".into());
        let started = thread.spawn(move || trim(&engine));
        self.memory.is_trimming.store(started.is_ok(), Relaxed);
    }
}

fn trim(engine: &Weak<Engine>) {
    for _ in 0..STEPS {
        std::thread::sleep(STEP);
        let Some(engine) = engine.upgrade() else { return };
        if engine.scheduler.now().busy() == 0 {
            break;
        }
    }
    let Some(engine) = engine.upgrade() else { return };
    engine.memory.is_trimming.store(false, Relaxed);
    engine.connections.parked().shrink();
    engine.scheduler.ready().shrink();
    (engine.worker.config.trim_memory)();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_burst_is_reported_once() {
        let memory = Memory::default();
        let mebibytes = |count: u64| count * 1024 * 1024;
        assert!(!memory.has_receded(mebibytes(100)));
        assert!(!memory.has_receded(mebibytes(20)));
        assert!(!memory.has_receded(mebibytes(13)));
        assert!(memory.has_receded(mebibytes(12)));
        assert!(!memory.has_receded(mebibytes(1)));
    }

    #[test]
    fn small_peaks_are_not_bursts() {
        let memory = Memory::default();
        assert!(!memory.has_receded(burst::WORTHWHILE_BYTES - 1));
        assert!(!memory.has_receded(0));
    }
}
