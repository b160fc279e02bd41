//! Puts the monitor to sleep while no thread is active.

use super::Snapshot;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering::SeqCst};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Parking {
    parked: AtomicBool,
    guard: Mutex<()>,
    unpark: Condvar,
}

impl Parking {
    /// Wakes the monitor if it is parked, because a thread has become active. Usually costs one load.
    pub(crate) fn end(&self) {
        if self.parked.load(SeqCst) {
            let _guard = self.guard.lock();
            self.parked.store(false, SeqCst);
            self.unpark.notify_one();
        }
    }

    /// Waits until a thread becomes active, or [`Parking::end`] is called, or for `time`. The monitor sets `parked` and then
    /// reads the states; a thread changes its state and then reads `parked`. So one of the two sees the other.
    pub(crate) fn rest(&self, now: impl Fn() -> Snapshot, is_over: impl Fn() -> bool, time: Duration) {
        let mut guard = self.guard.lock();
        self.parked.store(true, SeqCst);
        let mut has_passed = false;
        while !has_passed && self.parked.load(SeqCst) && !now().needs_monitor() && !is_over() {
            has_passed = self.unpark.wait_for(&mut guard, time);
        }
        self.parked.store(false, SeqCst);
    }
}
