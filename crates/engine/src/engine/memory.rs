//! Memory that a burst of clients has taken and left: given back to the system once it is over. An allocator keeps what was
//! freed, as if the next burst were about to come.

use super::Engine;
use crate::limits::burst;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Weak;
use std::time::Duration;

/// What a connection is taken to need beyond what is counted of its request.
const CONNECTION_BYTES: u64 = 16 * 1024;

/// The end of a burst is not always the end of all requests: those that run are let finish, if it does not take for ever.
const STEP: Duration = Duration::from_millis(250);
const STEPS: u32 = 20;

#[derive(Default)]
pub(super) struct Memory {
    /// Bytes that were in use at the height of the current burst; written by the poller alone.
    peak: AtomicU64,
    is_trimming: AtomicBool,
}

impl Memory {
    /// Whether a burst is over with `now` bytes in use; true once for each.
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
    /// Looks whether a burst is over; called by the poller.
    pub(super) fn look_after_memory(&self) {
        let connections = self.worker.counters().connections.load(Relaxed).max(0) as u64;
        let (counted, _) = self.worker.config.request_totals.used();
        if self.memory.has_receded(connections * CONNECTION_BYTES + counted) {
            self.trim_soon();
        }
    }

    /// A thread of its own does it, and ends: it takes milliseconds, and comes seldom.
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
    fn a_burst_recedes_once() {
        let memory = Memory::default();
        let mebibytes = |count: u64| count * 1024 * 1024;
        assert!(!memory.has_receded(mebibytes(100)));
        assert!(!memory.has_receded(mebibytes(20)));
        assert!(!memory.has_receded(mebibytes(13)));
        assert!(memory.has_receded(mebibytes(12)));
        assert!(!memory.has_receded(mebibytes(1)));
    }

    #[test]
    fn what_is_small_is_no_burst() {
        let memory = Memory::default();
        assert!(!memory.has_receded(burst::WORTHWHILE_BYTES - 1));
        assert!(!memory.has_receded(0));
    }
}
