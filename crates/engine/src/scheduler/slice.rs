//! Decides that a thread has had the lock of the language for long enough.

use crate::clock::Nanos;
use std::time::Duration;

/// Time since the lock was last taken from a thread, as the monitor sees it from tick to tick.
#[derive(Debug)]
pub(super) struct Slice {
    /// Shortest time between two such moments; zero: the lock is never taken.
    length: Duration,
    /// Time at which the lock was last taken.
    began: Nanos,
    /// Number of times that the lock had changed hands at the last tick.
    switches: u64,
}

impl Slice {
    pub(super) fn new(length: Duration) -> Slice {
        Slice {
            length,
            began: Nanos::now(),
            switches: 0,
        }
    }

    /// True if there is a limit at all.
    pub(super) fn is_limited(&self) -> bool {
        !self.length.is_zero()
    }

    /// True if the thread that has the lock at `now` must release it: another thread wants it, a slice is over, and
    /// this thread has had it at least since the last tick. `switches`: number of times that the lock has changed
    /// hands. After a result of true another slice begins, because that thread may be in code that cannot be
    /// interrupted.
    ///
    /// Slices are measured by the clock and not per thread: when threads that wait for something take the lock in
    /// between, each for less than a tick, a computing thread gets it several times in a slice, but does not get a new
    /// slice each time. Time in which no thread wanted the lock counts, too: a thread that wants it afterwards waits
    /// only for a tick.
    pub(super) fn is_over(&mut self, switches: u64, is_wanted: bool, now: Nanos) -> bool {
        let has_changed_hands = std::mem::replace(&mut self.switches, switches) != switches;
        let is_over = is_wanted && !has_changed_hands && now - self.began >= self.length;
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

    /// Ticks at which a slice of 5 ms is over, for the given numbers of switches and wanted locks.
    fn ticks(seen: impl IntoIterator<Item = (u64, bool)>) -> Vec<u64> {
        let mut slice = Slice::new(Duration::from_millis(LENGTH));
        slice.began = Nanos::START;
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
        assert_eq!(ticks((0..100).map(|_| (0, false))), [0; 0]);
    }

    #[test]
    fn whoever_comes_after_a_long_time_alone_waits_for_one_tick() {
        assert_eq!(ticks((0..30).map(|tick| (0, tick >= 27))), [27]);
    }

    #[test]
    fn whoever_has_it_for_less_than_a_tick_is_not_asked() {
        assert_eq!(ticks((0..100).map(|tick| (tick, true))), [0; 0]);
    }

    #[test]
    fn whoever_gets_it_in_between_gets_no_slice_of_its_own() {
        assert_eq!(ticks((0..14).map(|tick| (tick / 4, true))), [5, 10]);
    }
}
