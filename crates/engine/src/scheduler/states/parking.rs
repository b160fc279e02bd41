//! Where the monitor rests while no thread does anything that it would have to watch.

use super::Snapshot;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering::SeqCst};
use std::time::Duration;

/// How often a parked monitor looks by itself, should it have been forgotten.
const LOOK: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Parking {
    parked: AtomicBool,
    guard: Mutex<()>,
    unpark: Condvar,
}

impl Parking {
    /// A thread has become active: makes sure that the monitor looks. One load in the usual case.
    pub(crate) fn end(&self) {
        if self.parked.load(SeqCst) {
            let _guard = self.guard.lock();
            self.parked.store(false, SeqCst);
            self.unpark.notify_one();
        }
    }

    /// Waits until a thread becomes active, or [`Parking::end`] is called. The monitor says that it is parked and looks
    /// afterwards; a thread becomes active and looks afterwards whether somebody is parked.
    pub(crate) fn rest(&self, now: impl Fn() -> Snapshot, is_over: impl Fn() -> bool) {
        let mut guard = self.guard.lock();
        self.parked.store(true, SeqCst);
        while self.parked.load(SeqCst) && !now().is_active() && !is_over() {
            self.unpark.wait_for(&mut guard, LOOK);
        }
        self.parked.store(false, SeqCst);
    }
}
