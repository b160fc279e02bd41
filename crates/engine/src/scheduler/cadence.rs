//! Counters on which the threads base decisions between jobs. Correctness does not depend on them.

use crate::clock::Nanos;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Requests that wake the next thread before they run, after the monitor had to rescue a waiting request.
const EAGER_REQUESTS: usize = 64;

/// A request that took this long is assumed to have waited for something.
const LONG: Duration = Duration::from_nanos(500_000);

#[derive(Default)]
pub(super) struct Cadence {
    /// Requests that still wake the next thread before the app is called.
    eager: AtomicUsize,
    /// Jobs that may run before the next poll, so that a pipeline cannot block other connections.
    until_poll: AtomicUsize,
}

impl Cadence {
    /// Makes the next requests wake a thread before they run, because a request was found waiting.
    pub(super) fn become_eager(&self) {
        self.eager.store(EAGER_REQUESTS, Relaxed);
    }

    /// A poll has left `ready` jobs in the ready queue.
    pub(super) fn polled(&self, ready: usize) {
        self.until_poll.store(ready, Relaxed);
    }

    /// Returns true if another job may run before the next poll.
    pub(super) fn may_go_on(&self) -> bool {
        let left = self.until_poll.load(Relaxed);
        if left > 0 {
            self.until_poll.store(left - 1, Relaxed);
        }
        left > 0
    }

    /// Wakes the next thread before a job if a request was found waiting recently. The result is for [`Cadence::end`].
    pub(super) fn begin(&self, wake_next: impl FnOnce()) -> Option<(usize, Nanos)> {
        let eager = self.eager.load(Relaxed);
        (eager > 0).then(|| {
            let began = Nanos::now();
            wake_next();
            (eager, began)
        })
    }

    pub(super) fn end(&self, begun: Option<(usize, Nanos)>) {
        if let Some((eager, began)) = begun {
            let was_quick = Nanos::now() - began < LONG;
            self.eager
                .store(if was_quick { eager - 1 } else { EAGER_REQUESTS }, Relaxed);
        }
    }
}
