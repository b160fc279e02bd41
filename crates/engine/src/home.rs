//! Which process this is. One that the app has forked has a copy of everything and must leave what it shares with its parent
//! alone: sockets, the poll set, the waiting room.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Forks between this process and the first one that asked.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// To be called in each process that was forked, before anything else happens there. May be called where only what is safe in a
/// signal handler is allowed.
pub fn note_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// A number that no process has in common with one that it has forked, or with a few generations of those.
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

/// The process that something was made in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home(u32);

impl Home {
    /// This process.
    pub(crate) fn here() -> Home {
        Home(FORKS.load(Relaxed))
    }

    /// Whether this is still that process: one load.
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}
