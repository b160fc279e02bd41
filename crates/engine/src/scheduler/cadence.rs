//! What the threads go by from job to job; none of it is a state that another thread relies on.

use crate::clock::Nanos;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Requests for which the next thread is woken at once, after one had to be rescued by the monitor.
const EAGER_REQUESTS: usize = 64;

/// A request that took this long is taken to have waited for something.
const LONG: Duration = Duration::from_nanos(500_000);

#[derive(Default)]
pub(super) struct Cadence {
    /// Requests for which hand-over happens before the app is called.
    eager: AtomicUsize,
    /// Jobs that may run before the poller has to be asked again, so that no pipeline keeps the others out.
    until_poll: AtomicUsize,
}

impl Cadence {
    /// Makes the next requests hand over before they run, because one was found waiting.
    pub(super) fn become_eager(&self) {
        self.eager.store(EAGER_REQUESTS, Relaxed);
    }

    /// A poll has left that many jobs in the ready queue.
    pub(super) fn polled(&self, ready: usize) {
        self.until_poll.store(ready, Relaxed);
    }

    /// Whether another job may run before the next poll.
    pub(super) fn may_go_on(&self) -> bool {
        let left = self.until_poll.load(Relaxed);
        if left > 0 {
            self.until_poll.store(left - 1, Relaxed);
        }
        left > 0
    }

    /// Hands over before a job if one was found waiting lately. The result is for [`Cadence::end`].
    pub(super) fn begin(&self, hand_over: impl FnOnce()) -> Option<(usize, Nanos)> {
        let eager = self.eager.load(Relaxed);
        (eager > 0).then(|| {
            let began = Nanos::now();
            hand_over();
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
