//! Urgent jobs: each goes ahead of the others, but only one at a time, and after each of them another job has its turn.
//! So a client that sends many urgent requests gets at most one thread and every second turn.

use super::{sweep, Queued};
use crate::clock::Nanos;
use std::collections::VecDeque;

/// See the head of this file.
pub(super) struct Urgent<J> {
    waiting: VecDeque<J>,
    /// True while a job runs that has overtaken others.
    runs: bool,
    /// True if no other job has had a turn since.
    others_are_next: bool,
}

impl<J> Default for Urgent<J> {
    fn default() -> Self {
        Urgent {
            waiting: VecDeque::new(),
            runs: false,
            others_are_next: false,
        }
    }
}

impl<J: Queued> Urgent<J> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push(&mut self, job: J) {
        self.waiting.push_back(job);
    }

    pub(super) fn put_back(&mut self, job: J) {
        self.waiting.push_front(job);
    }

    /// Takes the next job, which overtakes others, unless it is their turn. [`Urgent::end`] must be called when the job
    /// has ended.
    pub(super) fn overtake(&mut self) -> Option<J> {
        if self.runs || self.others_are_next {
            return None;
        }
        let job = self.waiting.pop_front()?;
        (self.runs, self.others_are_next) = (true, true);
        Some(job)
    }

    /// Takes the next job, if no other job can run, so that none is overtaken.
    pub(super) fn pop(&mut self) -> Option<J> {
        self.waiting.pop_front()
    }

    /// Notes that another job has its turn.
    pub(super) fn give_way(&mut self) {
        self.others_are_next = false;
    }

    /// The job that had overtaken others has ended.
    pub(super) fn end(&mut self) {
        self.runs = false;
    }

    pub(super) fn pop_older_than(&mut self, time: Nanos) -> Option<J> {
        let first = self.waiting.front()?;
        let is_older = first.arrived().is_some_and(|arrived| arrived <= time);
        if is_older && first.can_leave() {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// Takes the jobs that `leaves` selects among the first `most`.
    pub(super) fn sweep(&mut self, most: usize, leaves: &mut impl FnMut(&mut J) -> bool) -> Vec<J> {
        sweep(&mut self.waiting, &mut 0, most, leaves).into()
    }

    pub(super) fn take_all(&mut self) -> Vec<J> {
        self.waiting.drain(..).collect()
    }

    pub(super) fn shrink(&mut self) {
        self.waiting.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fair_by::Flow;

    impl Queued for u64 {
        fn arrived(&self) -> Option<Nanos> {
            Some(Nanos::from_number(*self))
        }

        fn can_leave(&self) -> bool {
            true
        }

        fn flow(&self) -> Option<Flow> {
            None
        }

        fn is_urgent(&self) -> bool {
            true
        }
    }

    fn urgent(jobs: &[u64]) -> Urgent<u64> {
        let mut urgent = Urgent::default();
        jobs.iter().for_each(|job| urgent.push(*job));
        urgent
    }

    #[test]
    fn the_next_one_waits_for_the_end_of_the_last_one_and_for_a_turn_of_the_others() {
        let mut urgent = urgent(&[1, 2, 3]);
        assert_eq!(urgent.overtake(), Some(1));
        assert_eq!(urgent.overtake(), None);
        urgent.give_way();
        assert_eq!(urgent.overtake(), None, "the first one still runs");
        urgent.end();
        assert_eq!(urgent.overtake(), Some(2));
        urgent.end();
        assert_eq!(urgent.overtake(), None, "other jobs have their turn");
        urgent.give_way();
        assert_eq!(urgent.overtake(), Some(3));
        assert_eq!((urgent.pop(), urgent.len()), (None, 0));
    }

    #[test]
    fn where_nobody_is_overtaken_they_do_not_wait_for_each_other() {
        let mut urgent = urgent(&[1, 2, 3]);
        assert_eq!(urgent.overtake(), Some(1));
        assert_eq!((urgent.pop(), urgent.pop()), (Some(2), Some(3)));
    }

    #[test]
    fn one_that_could_not_leave_is_first_again() {
        let mut urgent = urgent(&[5, 6]);
        assert_eq!(urgent.pop_older_than(Nanos::from_number(4)), None);
        let first = urgent
            .pop_older_than(Nanos::from_number(5))
            .expect("a job that is old enough");
        urgent.put_back(first);
        assert_eq!(urgent.take_all(), [5, 6]);
    }
}
