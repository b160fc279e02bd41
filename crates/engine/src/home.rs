//! Identifies this process. A process that the app has forked has a copy of everything, and must not touch the
//! resources that it shares with its parent: sockets, the poll set, the waiting room.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Forks between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Notes a fork. Call it in each forked process, before anything else happens there. Async-signal-safe.
pub fn note_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// Returns a number that differs between a process and its descendants.
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

/// Process in which something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home(u32);

impl Home {
    /// Returns this process.
    pub(crate) fn here() -> Home {
        Home(FORKS.load(Relaxed))
    }

    /// True if this is still that process: one load.
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}
