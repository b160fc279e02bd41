//! Tells a standing queue from a burst (CoDel, as servers use it): in a burst some request soon finds a free thread, so
//! the shortest wait within an interval stays short. If even the shortest wait of an interval exceeds the target, the
//! server gets more requests than it can serve.
//!
//! All workers share one measurement: a request that waits in one worker may run in another.

use crate::clock::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// See the head of this file. Zero bytes are a valid beginning.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct QueueDelay {
    /// End of the interval, in nanoseconds on the monotonic clock.
    end: AtomicU64,
    /// Shortest wait in the interval, subtracted from `u64::MAX`; 0 before the first one.
    shortest: AtomicU64,
    /// 1 if the last interval exceeded the target.
    is_standing: AtomicU64,
}

/// The limit for [`QueueDelay`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) wait: Duration,
    pub(crate) interval: Duration,
}

impl QueueDelay {
    /// Notes the wait of a request that leaves the queue now. No lock; usually two loads.
    pub(crate) fn note(&self, wait: Duration, now: Nanos, target: Target) {
        let (now, end) = (now.to_number(), self.end.load(Relaxed));
        if now >= end {
            let interval = nanoseconds(target.interval);
            let next = now.saturating_add(interval);
            // Only one thread of all workers ends the interval.
            if self.end.compare_exchange(end, next, Relaxed, Relaxed).is_ok() {
                let shortest = self.shortest.swap(0, Relaxed);
                // After a silence, the interval before it says nothing about now.
                let is_recent = now - end < interval;
                let exceeds = is_recent && shortest != 0 && u64::MAX - shortest > nanoseconds(target.wait);
                self.is_standing.store(exceeds.into(), Relaxed);
            }
        }
        let wait = u64::MAX - nanoseconds(wait);
        if wait > self.shortest.load(Relaxed) {
            self.shortest.fetch_max(wait, Relaxed);
        }
    }

    /// True if the queue was standing in the last interval.
    pub(crate) fn is_standing(&self) -> bool {
        self.is_standing.load(Relaxed) == 1
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const TARGET: Target = Target {
        wait: Duration::from_millis(50),
        interval: Duration::from_millis(100),
    };

    /// Notes waits, each at its time in milliseconds after the start.
    fn note(delay: &QueueDelay, waits: &[(u32, u32)]) {
        for (time, wait) in waits {
            delay.note(MS * *wait, Nanos::START + MS * *time, TARGET);
        }
    }

    #[test]
    fn a_burst_is_no_standing_queue() {
        let delay = QueueDelay::default();
        note(
            &delay,
            &[(0, 900), (50, 800), (99, 10), (101, 900), (150, 20), (201, 900)],
        );
        assert!(!delay.is_standing());
    }

    #[test]
    fn the_queue_stands_if_the_shortest_wait_of_an_interval_exceeds_the_target() {
        let delay = QueueDelay::default();
        note(&delay, &[(0, 60), (50, 70)]);
        assert!(!delay.is_standing(), "the interval has not ended");
        note(&delay, &[(100, 80)]);
        assert!(delay.is_standing());
        note(&delay, &[(150, 49)]);
        assert!(delay.is_standing(), "the interval has not ended");
        note(&delay, &[(200, 80)]);
        assert!(!delay.is_standing());
    }

    #[test]
    fn an_interval_without_requests_says_nothing() {
        let delay = QueueDelay::default();
        note(&delay, &[(0, 900), (100, 900)]);
        assert!(delay.is_standing());
        note(&delay, &[(150, 900), (10_000, 900)]);
        assert!(!delay.is_standing(), "the wait before the silence says nothing");
    }

    #[test]
    fn a_wait_that_no_clock_can_have_is_a_long_one() {
        let delay = QueueDelay::default();
        delay.note(Duration::MAX, Nanos::START, TARGET);
        delay.note(Duration::MAX, Nanos::START + TARGET.interval, TARGET);
        assert!(delay.is_standing());
    }
}
