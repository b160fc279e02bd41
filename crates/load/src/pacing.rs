//! Decides when a connection may send its next request: at once (closed loop) or according to a schedule (open loop).
//!
//! In the open loop request `i` is due at `i / rate` and belongs to connection `i mod connections`, as in wrk2. Every
//! connection is a client with its own rate, so a connection that is not served falls behind visibly instead of passing
//! its requests to another one.

use crate::clock::{nanos, Nanos, Started};
use crate::options::Options;
use std::sync::atomic::{AtomicU64, Ordering};

/// The pacing of a run. `Budget` is shared by all threads.
#[derive(Debug)]
pub(crate) enum Pacing {
    Closed(Budget),
    Rate(Schedule),
}

/// The closed loop: as fast as responses come, until all requests have been sent.
#[derive(Debug)]
pub(crate) struct Budget {
    /// `None`: no limit.
    left: Option<AtomicU64>,
    counted_from: Nanos,
}

/// The open loop: the schedule of the requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    per_second: f64,
    connections: u64,
    /// Requests before this one belong to the warm-up.
    first_counted: u64,
    /// The first request that is not sent any more.
    end: u64,
}

impl Pacing {
    pub(crate) fn new(options: &Options) -> Pacing {
        match options.rate {
            None => Pacing::Closed(Budget::new(options.requests, nanos(options.warmup))),
            Some(per_second) => {
                let schedule = Schedule {
                    per_second,
                    connections: options.connections as u64,
                    first_counted: 0,
                    end: 0,
                };
                let first_counted = schedule.first_due_from(nanos(options.warmup));
                let last = options.duration.map_or(u64::MAX, |duration| {
                    schedule.first_due_from(nanos(options.warmup).saturating_add(nanos(duration)))
                });
                let limit = options
                    .requests
                    .map_or(u64::MAX, |requests| first_counted.saturating_add(requests));
                Pacing::Rate(Schedule {
                    first_counted,
                    end: last.min(limit),
                    ..schedule
                })
            }
        }
    }

    /// Takes the next request of a connection, if it may be sent now. `turn` is the position of the connection in the
    /// schedule.
    pub(crate) fn take(&self, turn: &mut u64, now: Nanos) -> Option<Started> {
        match self {
            Pacing::Closed(budget) => budget.take(now),
            Pacing::Rate(schedule) => schedule.take(turn, now),
        }
    }

    /// Number of requests of a limited run that never started.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Pacing::Closed(budget) => budget.left(),
            Pacing::Rate(_) => 0,
        }
    }
}

impl Budget {
    pub(crate) fn new(requests: Option<u64>, counted_from: Nanos) -> Budget {
        Budget {
            left: requests.map(AtomicU64::new),
            counted_from,
        }
    }

    /// Number of requests of a limited run that never started.
    pub(crate) fn left(&self) -> u64 {
        self.left.as_ref().map_or(0, |left| left.load(Ordering::Relaxed))
    }

    pub(crate) fn take(&self, now: Nanos) -> Option<Started> {
        let counted = now >= self.counted_from;
        if let (true, Some(left)) = (counted, &self.left) {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .ok()?;
        }
        Some(Started {
            due: now,
            sent: now,
            counted,
        })
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }
}

impl Schedule {
    pub(crate) fn due(&self, index: u64) -> Nanos {
        (index as f64 / self.per_second * 1e9) as Nanos
    }

    /// The first request that is due at or after `time`.
    fn first_due_from(&self, time: Nanos) -> u64 {
        // One less than the quotient, because floating-point arithmetic may have rounded it up.
        let mut index = ((time as f64 / 1e9 * self.per_second) as u64).saturating_sub(1);
        while self.due(index) < time {
            index += 1;
        }
        index
    }

    pub(crate) fn has(&self, index: u64) -> bool {
        index < self.end
    }

    /// Returns `true` if a request counts for the measurement.
    pub(crate) fn counts(&self, index: u64) -> bool {
        index >= self.first_counted
    }

    /// The request after `index` on the same connection.
    pub(crate) fn next(&self, index: u64) -> u64 {
        index.saturating_add(self.connections)
    }

    fn take(&self, turn: &mut u64, now: Nanos) -> Option<Started> {
        let (index, due) = (*turn, self.due(*turn));
        if !self.has(index) || due > now {
            return None;
        }
        *turn = self.next(index);
        Some(Started {
            due,
            sent: now,
            counted: self.counts(index),
        })
    }
}

/// Walks through the schedule in chronological order, over the connections of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    connections: u64,
    /// Numbers of the thread's connections in the whole run.
    own: std::ops::Range<u64>,
    index: u64,
}

impl Cursor {
    pub(crate) fn new(connections: usize, own: std::ops::Range<usize>) -> Cursor {
        let own = own.start as u64..own.end as u64;
        Cursor {
            connections: connections as u64,
            index: own.start,
            own,
        }
    }

    /// The next request for one of the thread's connections.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// Index of its connection among the thread's connections.
    pub(crate) fn connection(&self) -> usize {
        (self.index % self.connections - self.own.start) as usize
    }

    pub(crate) fn advance(&mut self) {
        self.index += 1;
        if self.index % self.connections == self.own.end % self.connections {
            self.index += self.connections - (self.own.end - self.own.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options;

    const SECOND: Nanos = 1_000_000_000;

    fn pacing(args: &[&str]) -> Pacing {
        Pacing::new(&options(&[&["http://h/"], args].concat()))
    }

    #[test]
    fn the_closed_loop_hands_out_exactly_the_budget() {
        let pacing = pacing(&["-n", "3"]);
        assert_eq!((0..9).filter_map(|now| pacing.take(&mut 0, now)).count(), 3);
        assert_eq!(pacing.left(), 0);
    }

    #[test]
    fn the_warm_up_does_not_use_up_the_budget() {
        let pacing = pacing(&["-n", "1", "--warmup", "1"]);
        for now in [0, 1, SECOND - 1] {
            assert_eq!(
                pacing.take(&mut 0, now),
                Some(Started {
                    due: now,
                    sent: now,
                    counted: false
                })
            );
        }
        assert!(pacing.take(&mut 0, SECOND).is_some_and(|started| started.counted));
        assert_eq!(pacing.take(&mut 0, SECOND), None);
    }

    #[test]
    fn each_connection_keeps_its_own_pace() {
        let pacing = pacing(&["--rate", "4", "-c", "2"]);
        let mut turn = 1;
        assert_eq!(pacing.take(&mut turn, SECOND / 4 - 1), None, "not due yet");
        let late = 2 * SECOND;
        let due: Vec<Nanos> = std::iter::from_fn(|| pacing.take(&mut turn, late))
            .map(|started| started.due)
            .collect();
        assert_eq!(due, [SECOND / 4, 3 * SECOND / 4, 5 * SECOND / 4, 7 * SECOND / 4]);
    }

    #[test]
    fn a_limited_schedule_counts_from_the_end_of_the_warm_up() {
        let pacing = pacing(&["--rate", "10", "-c", "1", "-n", "2", "--warmup", "0.3"]);
        let mut turn = 0;
        let counted: Vec<bool> = std::iter::from_fn(|| pacing.take(&mut turn, 9 * SECOND))
            .map(|s| s.counted)
            .collect();
        assert_eq!(counted, [false, false, false, true, true]);
    }

    #[test]
    fn nothing_is_due_at_the_end_or_later() {
        for (rate, duration, requests) in [("100", "0.5", 50), ("10", "1.1", 11), ("3", "0.7", 3), ("0.5", "1", 1)] {
            let pacing = pacing(&["--rate", rate, "-c", "1", "-d", duration]);
            let mut turn = 0;
            let count = std::iter::from_fn(|| pacing.take(&mut turn, 9 * SECOND)).count();
            assert_eq!(count, requests, "{rate} per second for {duration} s");
        }
    }

    #[test]
    fn cursors_of_all_threads_together_cover_the_schedule() {
        for cuts in [&[0, 5][..], &[0, 2, 5], &[0, 1, 2, 5]] {
            let mut seen = Vec::new();
            for own in cuts.windows(2).map(|cut| cut[0]..cut[1]) {
                let mut cursor = Cursor::new(5, own.clone());
                while cursor.index() < 20 {
                    assert_eq!(own.start + cursor.connection(), (cursor.index() % 5) as usize);
                    seen.push(cursor.index());
                    cursor.advance();
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..20).collect::<Vec<_>>(), "{cuts:?}");
        }
    }
}
