//! Chooses the thread that drives an HTTP/2 connection: a thread that has something to do for an unlocked connection. A
//! thread that finds it locked sets the signal and goes on; the thread that holds the lock checks the signal after it
//! unlocks. So no work is left, and no thread waits.
//!
//! A model checker tests this, with the primitives of `sync.rs`: `tests/schedule/signal.rs`.

use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst};

/// Says that there is something to do.
#[derive(Default)]
pub(crate) struct Signal {
    is_set: AtomicBool,
}

impl Signal {
    /// Sets the signal. The caller calls [`Signal::serve`] afterwards, or holds the lock that it would take.
    pub(crate) fn set(&self) {
        self.is_set.store(true, SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(SeqCst)
    }

    /// Clears the signal; to be called before the work is looked at, because that work is done now.
    pub(crate) fn clear(&self) {
        self.is_set.store(false, SeqCst);
    }

    /// Drives `driven` until there is nothing to do, or another thread does it. To be called without its lock, and each
    /// time after the lock was released. `drive` clears the signal.
    pub(crate) fn serve<T>(&self, driven: &Mutex<T>, mut drive: impl FnMut(&mut T)) {
        while self.is_set() {
            let Some(mut driven) = driven.try_lock() else { return };
            drive(&mut driven);
        }
    }
}
