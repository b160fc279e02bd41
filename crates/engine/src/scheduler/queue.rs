//! The ready queue: the jobs that a thread of the app can run, first come, first served.

use crate::clock::Nanos;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What a thread runs in one turn.
pub(crate) trait Queued {
    /// When it arrived, if another worker could run it as well.
    fn arrived(&self) -> Option<Nanos>;
}

/// Capacity that is kept when a burst is over.
const USUAL_PLACES: usize = 64;

pub(crate) struct ReadyQueue<J> {
    queue: Mutex<VecDeque<J>>,
    /// The length, readable without the lock; written only while the lock is held.
    length: AtomicUsize,
}

impl<J> Default for ReadyQueue<J> {
    fn default() -> Self {
        ReadyQueue {
            queue: Mutex::default(),
            length: AtomicUsize::new(0),
        }
    }
}

impl<J: Queued> ReadyQueue<J> {
    pub(crate) fn push(&self, job: J) {
        let mut queue = self.queue.lock();
        queue.push_back(job);
        self.length.store(queue.len(), SeqCst);
    }

    /// Puts a job that could not leave back to its place in the order of arrival.
    pub(crate) fn put_back(&self, job: J) {
        let mut queue = self.queue.lock();
        let arrived = job.arrived();
        let is_younger = |other: &J| other.arrived().is_some() && other.arrived() > arrived;
        let index = queue.iter().position(is_younger).unwrap_or(0);
        queue.insert(index, job);
        self.length.store(queue.len(), SeqCst);
    }

    pub(crate) fn pop(&self) -> Option<J> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let job = queue.pop_front();
        self.length.store(queue.len(), SeqCst);
        job
    }

    /// Takes the oldest job that can leave, after skipping `skipped` of them, if it arrived before `time`.
    pub(crate) fn pop_older_than(&self, time: Nanos, skipped: usize) -> Option<J> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let arrivals = queue.iter().map(Queued::arrived).enumerate();
        let (index, arrived) = arrivals
            .filter_map(|(index, arrived)| Some((index, arrived?)))
            .nth(skipped)?;
        if arrived > time {
            return None;
        }
        let job = queue.remove(index);
        self.length.store(queue.len(), SeqCst);
        job
    }

    /// Returns the capacity that a burst has left.
    pub(crate) fn shrink(&self) {
        self.queue.lock().shrink_to(USUAL_PLACES);
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum TestJob {
        Request(u64),
        Own,
    }

    impl Queued for TestJob {
        fn arrived(&self) -> Option<Nanos> {
            match self {
                TestJob::Request(arrived) => Some(at(*arrived)),
                TestJob::Own => None,
            }
        }
    }

    fn at(nanoseconds: u64) -> Nanos {
        Nanos::from_number(nanoseconds)
    }

    /// Requests in order of arrival, and after each a job that cannot leave.
    fn queue(count: u64) -> ReadyQueue<TestJob> {
        let queue = ReadyQueue::default();
        for arrived in 0..count {
            queue.push(TestJob::Request(arrived));
            queue.push(TestJob::Own);
        }
        queue
    }

    #[test]
    fn a_request_that_cannot_leave_keeps_its_place_and_the_next_one_goes() {
        let queue = queue(4);
        let first = queue.pop_older_than(at(9), 0).expect("the first");
        let second = queue.pop_older_than(at(9), 0).expect("the second");
        queue.put_back(second);
        queue.put_back(first);
        assert_eq!(queue.pop_older_than(at(9), 2), Some(TestJob::Request(2)));
        let left: Vec<TestJob> = std::iter::from_fn(|| queue.pop())
            .filter(|task| *task != TestJob::Own)
            .collect();
        assert_eq!(left, [TestJob::Request(0), TestJob::Request(1), TestJob::Request(3)]);
    }

    #[test]
    fn only_requests_older_than_the_given_time_are_taken() {
        let queue = queue(3);
        assert_eq!(queue.pop_older_than(at(1), 2), None);
        assert_eq!(queue.pop_older_than(at(9), 3), None);
        assert_eq!(queue.pop_older_than(at(1), 1), Some(TestJob::Request(1)));
    }
}
