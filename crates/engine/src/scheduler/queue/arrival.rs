//! Jobs in the order of arrival.

use super::Queued;
use crate::clock::Nanos;
use std::collections::VecDeque;

/// Jobs at the end of the queue that are searched for a request.
const EXAMINED: usize = 16;

/// Capacity that is kept after a burst.
const USUAL_PLACES: usize = 64;

/// See the head of this file.
pub(super) struct ArrivalQueue<J> {
    waiting: VecDeque<Waiting<J>>,
    /// Position at which the next [`ArrivalQueue::sweep`] continues.
    swept_to: usize,
}

struct Waiting<J> {
    job: J,
    since: Nanos,
}

impl<J> Default for ArrivalQueue<J> {
    fn default() -> Self {
        ArrivalQueue {
            waiting: VecDeque::new(),
            swept_to: 0,
        }
    }
}

impl<J: Queued> Waiting<J> {
    fn new(job: J) -> Waiting<J> {
        let since = job.waits_since().unwrap_or_else(Nanos::now);
        Waiting { job, since }
    }
}

impl<J: Queued> ArrivalQueue<J> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(super) fn push(&mut self, job: J) {
        self.waiting.push_back(Waiting::new(job));
    }

    /// Puts a job back in its position.
    pub(super) fn put_back(&mut self, job: J) {
        let waiting = Waiting::new(job);
        let index = self.waiting.iter().position(|other| other.since > waiting.since);
        self.waiting.insert(index.unwrap_or(self.waiting.len()), waiting);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<J> {
        self.waiting.pop_front().map(|waiting| waiting.job)
    }

    /// Time since when the next job has waited.
    pub(super) fn first_waits_since(&self) -> Option<Nanos> {
        self.waiting.front().map(|waiting| waiting.since)
    }

    /// Takes the next job that can leave, after skipping `skipped` of them, if it arrived before `time`.
    pub(super) fn pop_older_than(&mut self, time: Nanos, skipped: usize) -> Option<J> {
        let arrivals = self.waiting.iter().map(|waiting| waiting.job.arrived()).enumerate();
        let (index, arrived) = arrivals
            .filter_map(|(index, arrived)| Some((index, arrived?)))
            .nth(skipped)?;
        if arrived > time {
            return None;
        }
        self.waiting.remove(index).map(|waiting| waiting.job)
    }

    /// Takes the last job that can leave. Examines only the last [`EXAMINED`] ones.
    pub(super) fn pop_last(&mut self) -> Option<J> {
        let last = self.waiting.iter().enumerate().rev().take(EXAMINED);
        let (index, _) = last.into_iter().find(|(_, waiting)| waiting.job.arrived().is_some())?;
        self.waiting.remove(index).map(|waiting| waiting.job)
    }

    /// Takes the jobs that `leaves` selects: the first ones, and some of the next `most` jobs. The next call continues
    /// after these.
    pub(super) fn sweep(&mut self, most: usize, leaves: &mut impl FnMut(&mut J) -> bool) -> Vec<J> {
        let mut taken = Vec::new();
        while taken.len() < most && self.waiting.front_mut().is_some_and(|first| leaves(&mut first.job)) {
            taken.extend(self.pop());
        }
        let leaves = |waiting: &mut Waiting<J>| leaves(&mut waiting.job);
        let swept = sweep(&mut self.waiting, &mut self.swept_to, most, leaves);
        taken.extend(swept.into_iter().map(|waiting| waiting.job));
        taken
    }

    /// Takes all jobs.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = J> + '_ {
        self.waiting.drain(..).map(|waiting| waiting.job)
    }

    /// Releases the capacity that a burst has left.
    pub(super) fn shrink(&mut self) {
        self.waiting.shrink_to(USUAL_PLACES);
    }
}

/// Takes the elements that `leaves` selects among the next `most` ones from `position`, which is advanced, round and round.
pub(crate) fn sweep<T>(
    queue: &mut VecDeque<T>,
    position: &mut usize,
    most: usize,
    mut leaves: impl FnMut(&mut T) -> bool,
) -> VecDeque<T> {
    let mut taken = VecDeque::new();
    for _ in 0..most.min(queue.len()) {
        if *position >= queue.len() {
            *position = 0;
        }
        if queue.get_mut(*position).is_some_and(&mut leaves) {
            taken.extend(queue.remove(*position));
        } else {
            *position += 1;
        }
    }
    taken
}
