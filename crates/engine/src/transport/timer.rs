//! Time of the next timeout. Threads that park connections write it, the poller reads it.

use super::poller::Poller;
use crate::clock::{AtomicMillis, Millis};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

pub(crate) struct Timer {
    /// Lower bound of all deadlines.
    earliest: AtomicMillis,
    /// Time at which the waiting poller will check; long ago if none waits.
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
    /// Makes sure that the poller checks at `deadline`. In the usual case, a deadline later than others, this is one
    /// load.
    ///
    /// A deadline in the past is counted from now: [`Timer::lateness`] measures the poller, and not a connection that
    /// was parked too late.
    pub(crate) fn expect(&self, deadline: Millis, poller: &Poller) {
        if deadline < self.earliest.load(Relaxed) {
            let deadline = deadline.max(Millis::now());
            self.earliest.fetch_min(deadline, SeqCst);
            if deadline < self.looks_at.load(SeqCst) {
                poller.wake();
            }
        }
    }

    /// True if a timeout may be due.
    pub(crate) fn is_due(&self, now: Millis) -> bool {
        self.earliest.load(Relaxed) <= now
    }

    /// Time since the first deadline, if that is in the past.
    pub(crate) fn lateness(&self, now: Millis) -> Duration {
        now - self.earliest.load(Relaxed)
    }

    /// Called before the deadlines are checked. Deadlines set from here on are kept, so none is lost.
    pub(crate) fn restart(&self) {
        self.earliest.store(Millis::NEVER, SeqCst);
    }

    /// Sets the next deadline that the check has found.
    pub(crate) fn set_next(&self, deadline: Millis) {
        self.earliest.fetch_min(deadline, SeqCst);
    }

    /// Longest time of a wait; end the wait with [`Timer::awake`].
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

    /// Ends the wait.
    pub(crate) fn awake(&self) {
        self.looks_at.store(Millis::LONG_AGO, SeqCst);
    }
}
