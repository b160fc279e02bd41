//! How long a thread keeps the lock of the language, and when it has had it for long enough.

use crate::clock::Nanos;
use std::time::Duration;

/// The time for which one thread has the lock, as the monitor sees it from tick to tick.
#[derive(Debug)]
pub(super) struct Slice {
    /// The most while others want it; zero: no limit.
    length: Duration,
    /// When it was last seen before it went to the thread that has it, or was last said to be over.
    began: Nanos,
    /// When it was last seen.
    seen: Nanos,
    /// How often the lock had changed hands then.
    switches: u64,
}

impl Slice {
    pub(super) fn new(length: Duration) -> Slice {
        let now = Nanos::now();
        Slice {
            length,
            began: now,
            seen: now,
            switches: 0,
        }
    }

    /// Whether there is a limit at all.
    pub(super) fn is_limited(&self) -> bool {
        !self.length.is_zero()
    }

    /// Whether the thread that has the lock at `now` must pass it on: it has had it for a slice, and another one wants
    /// it. `switches`: how often the lock has changed hands. Once it was true, another slice begins, because that
    /// thread may be where it cannot be interrupted.
    ///
    /// Time in which nobody wanted the lock counts too: whoever comes after that waits for a tick only.
    pub(super) fn is_over(&mut self, switches: u64, is_wanted: bool, now: Nanos) -> bool {
        let before = std::mem::replace(&mut self.seen, now);
        if self.switches != switches {
            self.began = before;
            self.switches = switches;
            return false;
        }
        let is_over = is_wanted && now - self.began >= self.length;
        if is_over {
            self.began = now;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 5;

    /// What a slice of 5 ms says at each tick, given how often the lock has changed hands and whether it is wanted.
    fn ticks(seen: impl IntoIterator<Item = (u64, bool)>) -> Vec<u64> {
        let mut slice = Slice::new(Duration::from_millis(LENGTH));
        (slice.began, slice.seen) = (Nanos::START, Nanos::START);
        let times = (0..).map(|tick| (tick, Nanos::START + Duration::from_millis(tick)));
        let over = times
            .zip(seen)
            .filter(|((_, now), (switches, is_wanted))| slice.is_over(*switches, *is_wanted, *now));
        over.map(|((tick, _), _)| tick).collect()
    }

    #[test]
    fn a_thread_that_computes_while_another_one_waits_is_asked_once_in_each_slice() {
        assert_eq!(ticks((0..18).map(|_| (0, true))), [5, 10, 15]);
    }

    #[test]
    fn a_thread_that_computes_alone_is_never_asked() {
        assert_eq!(ticks((0..100).map(|_| (0, false))), []);
    }

    #[test]
    fn whoever_comes_after_a_long_time_alone_waits_for_one_tick() {
        assert_eq!(ticks((0..30).map(|tick| (0, tick >= 27))), [27]);
    }

    #[test]
    fn each_thread_that_gets_the_lock_has_a_slice_of_its_own() {
        assert_eq!(ticks((0..100).map(|tick| (tick / 4, true))), []);
        assert_eq!(ticks((0..14).map(|tick| (tick / 7, true))), [5, 11]);
    }
}
