//! Jobs in the order of arrival.

use super::Queued;
use crate::clock::Nanos;
use std::collections::VecDeque;

/// Capacity that is kept after a burst.
const USUAL_PLACES: usize = 64;

/// See the head of this file.
pub(super) struct ArrivalQueue<J>(VecDeque<Waiting<J>>);

struct Waiting<J> {
    job: J,
    since: Nanos,
}

impl<J> Default for ArrivalQueue<J> {
    fn default() -> Self {
        ArrivalQueue(VecDeque::new())
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
        self.0.len()
    }

    #[inline]
    pub(super) fn push(&mut self, job: J) {
        self.0.push_back(Waiting::new(job));
    }

    /// Puts a job back in its position.
    pub(super) fn put_back(&mut self, job: J) {
        let waiting = Waiting::new(job);
        let index = self.0.iter().position(|other| other.since > waiting.since);
        self.0.insert(index.unwrap_or(self.0.len()), waiting);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<J> {
        self.0.pop_front().map(|waiting| waiting.job)
    }

    /// Time since when the next job has waited.
    pub(super) fn first_waits_since(&self) -> Option<Nanos> {
        self.0.front().map(|waiting| waiting.since)
    }

    /// Takes the next job that can leave, after skipping `skipped` of them, if it arrived before `time`.
    pub(super) fn pop_older_than(&mut self, time: Nanos, skipped: usize) -> Option<J> {
        let arrivals = self.0.iter().map(|waiting| waiting.job.arrived()).enumerate();
        let (index, arrived) = arrivals
            .filter_map(|(index, arrived)| Some((index, arrived?)))
            .nth(skipped)?;
        if arrived > time {
            return None;
        }
        self.0.remove(index).map(|waiting| waiting.job)
    }

    /// Takes all jobs.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = J> + '_ {
        self.0.drain(..).map(|waiting| waiting.job)
    }

    /// Releases the capacity that a burst has left.
    pub(super) fn shrink(&mut self) {
        self.0.shrink_to(USUAL_PLACES);
    }
}
