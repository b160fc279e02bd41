//! When the next time-out is due. Threads that park connections write it, the poller reads it.

use super::poller::Poller;
use crate::clock::{AtomicMillis, Millis};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

pub(crate) struct Timer {
    /// A lower bound of all deadlines.
    earliest: AtomicMillis,
    /// When the waiting poller will check; long ago if none waits.
    looks_at: AtomicMillis,
}

impl Default for Timer {
    fn default() -> Self {
        Timer {
            earliest: AtomicMillis::new(Millis::NEVER),
            looks_at: AtomicMillis::new(Millis::LONG_AGO),
        }
    }
}

impl Timer {
    /// Makes sure that the poller checks at `deadline`. The usual case, a deadline later than others, is one load.
    ///
    /// A deadline of the past counts from now on: [`Timer::lateness`] tells of the poller, and not of a connection that
    /// has been parked too late.
    pub(crate) fn expect(&self, deadline: Millis, poller: &Poller) {
        if deadline < self.earliest.load(Relaxed) {
            let deadline = deadline.max(Millis::now());
            self.earliest.fetch_min(deadline, SeqCst);
            if deadline < self.looks_at.load(SeqCst) {
                poller.wake();
            }
        }
    }

    /// Whether a time-out may be due.
    pub(crate) fn is_due(&self, now: Millis) -> bool {
        self.earliest.load(Relaxed) <= now
    }

    /// Time since the first deadline, if that is over.
    pub(crate) fn lateness(&self, now: Millis) -> Duration {
        now - self.earliest.load(Relaxed)
    }

    /// Called before the deadlines are checked. Those that are set from here on are kept, so none is forgotten.
    pub(crate) fn restart(&self) {
        self.earliest.store(Millis::NEVER, SeqCst);
    }

    /// Sets the next deadline that the check has found.
    pub(crate) fn set_next(&self, deadline: Millis) {
        self.earliest.fetch_min(deadline, SeqCst);
    }

    /// How long a wait may last; to be ended by [`Timer::awake`].
    pub(crate) fn sleep(&self, most: Option<Duration>) -> Option<Duration> {
        let now = Millis::now();
        let mut until = self.earliest.load(SeqCst);
        self.looks_at.store(until, SeqCst);
        // A deadline may have been set in between, by a thread that saw no waiting poller.
        until = until.min(self.earliest.load(SeqCst));
        let own = (until != Millis::NEVER).then(|| until - now + Duration::from_millis(1));
        match (own, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        }
    }

    /// The wait is over.
    pub(crate) fn awake(&self) {
        self.looks_at.store(Millis::LONG_AGO, SeqCst);
    }
}
