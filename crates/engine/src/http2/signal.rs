//! Who drives a session: whichever thread finds it free when there is something to do. A thread that finds it taken leaves its
//! work to the one that has it, which looks again when it has given it up. So no work is left, and nobody waits.
//!
//! Tried by a model checker, with the primitives of `sync.rs`: `tests/schedule/signal.rs`.

use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst};

/// Tells that there is something to do.
#[derive(Default)]
pub(crate) struct Signal {
    is_set: AtomicBool,
}

impl Signal {
    /// There is something to do. Whoever says so calls [`Signal::serve`] afterwards, or holds what that would lock.
    pub(crate) fn set(&self) {
        self.is_set.store(true, SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(SeqCst)
    }

    /// What there is to do is done now: to be called before one looks what it is.
    pub(crate) fn clear(&self) {
        self.is_set.store(false, SeqCst);
    }

    /// Drives `driven` until there is nothing to do, or another thread does it. To be called without its lock, and
    /// whenever that was given up. `drive` clears the signal.
    pub(crate) fn serve<T>(&self, driven: &Mutex<T>, mut drive: impl FnMut(&mut T)) {
        while self.is_set() {
            let Some(mut driven) = driven.try_lock() else { return };
            drive(&mut driven);
        }
    }
}
