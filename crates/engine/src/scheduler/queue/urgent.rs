//! Urgent jobs: each goes ahead of the others, but only one at a time, and after each of them another job has its turn.
//! So whoever sends urgent requests only, and many of them, gets one thread and every second turn at most.

use super::Queued;
use crate::clock::Nanos;
use std::collections::VecDeque;

/// See the head of this file.
pub(super) struct Urgent<J> {
    waiting: VecDeque<J>,
    /// Whether one runs that has overtaken others.
    runs: bool,
    /// Whether no other job has had a turn since.
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

    /// The job that is next and whether it overtakes others, unless it is the turn of the others. Where there are none,
    /// nobody is overtaken. To be called for each turn.
    pub(super) fn pop(&mut self, has_others: bool) -> Option<(J, bool)> {
        if has_others && (self.runs || self.others_are_next || self.waiting.is_empty()) {
            self.others_are_next = false;
            return None;
        }
        let job = self.waiting.pop_front()?;
        if has_others {
            (self.runs, self.others_are_next) = (true, true);
        }
        Some((job, has_others))
    }

    /// The one that has overtaken others has ended.
    pub(super) fn end(&mut self) {
        self.runs = false;
    }

    pub(super) fn pop_older_than(&mut self, time: Nanos) -> Option<J> {
        let is_older = self.waiting.front()?.arrived().is_some_and(|arrived| arrived <= time);
        if is_older {
            self.waiting.pop_front()
        } else {
            None
        }
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
    use crate::config::fair_by::Party;

    impl Queued for u64 {
        fn arrived(&self) -> Option<Nanos> {
            Some(Nanos::from_number(*self))
        }

        fn party(&self) -> Option<Party> {
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
        assert_eq!(urgent.pop(true), Some((1, true)));
        assert_eq!(urgent.pop(true), None, "it is the turn of the others");
        assert_eq!(urgent.pop(true), None, "the first one still runs");
        urgent.end();
        assert_eq!(urgent.pop(true), Some((2, true)));
        urgent.end();
        assert_eq!(urgent.pop(true), None, "it is the turn of the others");
        assert_eq!(urgent.pop(true), Some((3, true)));
        assert_eq!(urgent.len(), 0);
    }

    #[test]
    fn where_nobody_else_waits_nobody_is_overtaken() {
        let mut urgent = urgent(&[1, 2, 3]);
        assert_eq!(urgent.pop(true), Some((1, true)));
        assert_eq!(urgent.pop(false), Some((2, false)));
        assert_eq!(urgent.pop(false), Some((3, false)));
        assert_eq!(urgent.pop(false), None);
    }

    #[test]
    fn one_that_could_not_leave_is_first_again() {
        let mut urgent = urgent(&[5, 6]);
        assert_eq!(urgent.pop_older_than(Nanos::from_number(4)), None);
        let first = urgent.pop_older_than(Nanos::from_number(5)).expect("it is old enough");
        urgent.put_back(first);
        assert_eq!(urgent.take_all(), [5, 6]);
    }
}
