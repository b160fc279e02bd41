//! Decides which worker takes over the next connection, or client, that migrates, if several could: the one with the fewest.
//!
//! ```text
//!   in line ──ahead of another worker──▶ resting ──no longer ahead, or nothing waits──▶ in line
//!      ▲                                 │    ▲
//!      │ in vain: for some takings       ▼    │ the others have taken half of what waited
//!      └───────────────────────────── after WINDOW
//! ```
//! A worker that ends sends connections as fast as others take them. So something always waits, and that does not show
//! that the other workers hang, as with new connections (`accept_order.rs`). But nobody reads a connection that waits: if
//! the others have not taken in time half of what waited, the rest was in vain, and the worker takes some, and more after another
//! rest in vain.

use crate::clock::Nanos;
use std::time::Duration;

/// Time in which the other workers take half of what waits, unless one of them hangs.
const WINDOW: Duration = Duration::from_millis(20);

/// Takings after the first rest in vain, and after each further one.
const FEW: u32 = 8;
const MANY: u32 = 32;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct MigrationOrder {
    rest: Option<Rest>,
    /// Takings that are left after a rest in vain.
    hurried: u32,
    /// True if the last rest was in vain.
    was_in_vain: bool,
}

#[derive(Debug)]
struct Rest {
    until: Nanos,
    /// At its beginning.
    line: Line,
}

/// The state of a queue and of its workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Another worker that takes from the queue has clearly fewer connections than this one.
    pub(crate) is_ahead: bool,
    /// Number of connections in the queue.
    pub(crate) waiting: u64,
    /// Number of connections that the other workers have ever taken, if `is_ahead`.
    pub(crate) taken_elsewhere: u64,
}

impl MigrationOrder {
    /// True if this worker leaves the queue to others now.
    pub(super) fn rests(&mut self, now: Nanos, line: Line) -> bool {
        if !line.is_ahead || line.waiting == 0 {
            *self = MigrationOrder::default();
            return false;
        }
        if self.hurried > 0 {
            return false;
        }
        let rest = self.rest.get_or_insert(Rest::new(now, line));
        if now < rest.until {
            return true;
        }
        let is_in_vain = rest.is_in_vain(line);
        self.rest = None;
        if is_in_vain {
            self.hurried = if self.was_in_vain { MANY } else { FEW };
            self.was_in_vain = true;
            return false;
        }
        self.was_in_vain = false;
        self.rest = Some(Rest::new(now, line));
        true
    }

    /// Notes that this worker has taken one.
    pub(super) fn taken(&mut self) {
        self.hurried = self.hurried.saturating_sub(1);
    }
}

impl Rest {
    fn new(now: Nanos, line: Line) -> Rest {
        Rest {
            until: now + WINDOW,
            line,
        }
    }

    /// True if the other workers have not taken half of what waited at the beginning.
    fn is_in_vain(&self, now: Line) -> bool {
        now.taken_elsewhere < self.line.taken_elsewhere + self.line.waiting.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);
    const NONE: [u64; 0] = [];

    /// A worker that is ahead, and a queue that is never empty.
    #[derive(Default)]
    struct Worker {
        order: MigrationOrder,
        time: u64,
        taken_elsewhere: u64,
        taken: u64,
    }

    impl Worker {
        fn line(&self) -> Line {
            Line {
                is_ahead: true,
                waiting: 128,
                taken_elsewhere: self.taken_elsewhere,
            }
        }

        /// A millisecond, in which the other workers take so many. Returns the number that this one takes.
        fn step(&mut self, others: u64) -> u64 {
            let now = Nanos::START + MILLISECOND * self.time as u32;
            let before = self.taken;
            while !self.order.rests(now, self.line()) {
                self.order.taken();
                self.taken += 1;
            }
            self.time += 1;
            self.taken_elsewhere += others;
            self.taken - before
        }

        fn steps(&mut self, others: u64, count: usize) -> Vec<u64> {
            let taken: Vec<u64> = (0..count).map(|_| self.step(others)).collect();
            taken.into_iter().filter(|count| *count > 0).collect()
        }
    }

    #[test]
    fn a_worker_that_is_ahead_takes_nothing_as_long_as_the_others_take_what_waits() {
        let mut worker = Worker::default();
        assert_eq!(worker.steps(4, 1_000), NONE);
    }

    #[test]
    fn a_worker_that_is_ahead_takes_more_and_more_if_the_others_hang_or_are_slow() {
        for others in [0, 3] {
            let mut worker = Worker::default();
            assert_eq!(worker.steps(others, 20), NONE, "the first rest");
            assert_eq!(worker.steps(others, 80), [8, 32, 32, 32]);
        }
    }

    #[test]
    fn a_rest_that_was_not_in_vain_resets_the_number() {
        let mut worker = Worker::default();
        assert_eq!(worker.steps(0, 41), [8, 32]);
        assert_eq!(worker.steps(10, 40), NONE);
        assert_eq!(worker.steps(0, 39), [8]);
    }

    #[test]
    fn a_worker_that_is_not_ahead_and_one_without_anything_to_take_are_in_line() {
        let mut worker = Worker::default();
        worker.steps(0, 41);
        for line in [
            Line {
                is_ahead: false,
                ..worker.line()
            },
            Line {
                waiting: 0,
                ..worker.line()
            },
        ] {
            assert!(worker.order.rests(Nanos::START, worker.line()));
            assert!(!worker.order.rests(Nanos::START, line));
            assert!(!worker.order.was_in_vain);
        }
    }
}
