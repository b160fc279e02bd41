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

    pub(super) fn shrink(&mut self) {
        self.waiting.shrink_to(0);
    }
}
