//! When the next time-out is due. Threads that park connections write it, the poller reads it.

use super::poller::Poller;
use crate::clock::{milliseconds, NEVER};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

pub(crate) struct Timer {
    /// A lower bound of all deadlines, in milliseconds.
    earliest: AtomicU64,
    /// When the poller that waits now will look; 0 while nobody waits.
    looks_at: AtomicU64,
}

impl Default for Timer {
    fn default() -> Self {
        Timer {
            earliest: AtomicU64::new(NEVER),
            looks_at: AtomicU64::new(0),
        }
    }
}

impl Timer {
    /// Makes sure that somebody looks at `deadline`. The usual case, a deadline later than others, is one load.
    pub(crate) fn expect(&self, deadline: u64, poller: &Poller) {
        if deadline < self.earliest.load(Relaxed) {
            self.earliest.fetch_min(deadline, SeqCst);
            if deadline < self.looks_at.load(SeqCst) {
                poller.wake();
            }
        }
    }

    /// Whether a time-out may be due.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.earliest.load(Relaxed) <= now
    }

    /// Somebody looks now: deadlines that are set from here on count from scratch, so that none is forgotten meanwhile.
    pub(crate) fn restart(&self) {
        self.earliest.store(NEVER, SeqCst);
    }

    /// What whoever looked has found to be next.
    pub(crate) fn set_next(&self, deadline: u64) {
        self.earliest.fetch_min(deadline, SeqCst);
    }

    /// How long a wait may last; to be ended by [`Timer::awake`].
    pub(crate) fn sleep(&self, most: Option<Duration>) -> Option<Duration> {
        let now = milliseconds();
        let mut until = self.earliest.load(SeqCst);
        self.looks_at.store(until, SeqCst);
        // A deadline may have come in between; whoever set it saw no waiting poller.
        until = until.min(self.earliest.load(SeqCst));
        let own = (until != NEVER).then(|| Duration::from_millis(until.saturating_sub(now) + 1));
        match (own, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        }
    }

    /// The wait is over.
    pub(crate) fn awake(&self) {
        self.looks_at.store(0, SeqCst);
    }
}
