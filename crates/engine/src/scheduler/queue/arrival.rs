//! Jobs in the order of arrival, in two lines: jobs that another worker may run, and jobs that have to stay. So the search
//! for a job that may leave passes no job that has to stay.

use super::Queued;
use crate::clock::Nanos;
use std::collections::VecDeque;

/// Jobs at the end of a line that are searched for a request.
const EXAMINED: usize = 16;

/// Capacity of a line that is kept after a burst.
const USUAL_PLACES: usize = 64;

/// See the head of this file.
pub(super) struct ArrivalQueue<J> {
    leaving: Line<J>,
    staying: Line<J>,
    /// Number of the last job.
    last: u64,
}

/// Jobs in the order of their numbers.
struct Line<J> {
    waiting: VecDeque<Waiting<J>>,
    /// Index at which the next sweep continues.
    swept_to: usize,
}

struct Waiting<J> {
    job: J,
    since: Nanos,
    /// Place in the order of all jobs.
    number: u64,
}

impl<J> Default for ArrivalQueue<J> {
    fn default() -> Self {
        ArrivalQueue {
            leaving: Line::default(),
            staying: Line::default(),
            last: 0,
        }
    }
}

impl<J> Default for Line<J> {
    fn default() -> Self {
        Line {
            waiting: VecDeque::new(),
            swept_to: 0,
        }
    }
}

impl<J: Queued> Waiting<J> {
    fn new(job: J, number: u64) -> Waiting<J> {
        let since = job.waits_since().unwrap_or_else(Nanos::now);
        Waiting { job, since, number }
    }
}

impl<J: Queued> ArrivalQueue<J> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.leaving.waiting.len() + self.staying.waiting.len()
    }

    #[inline]
    pub(super) fn push(&mut self, job: J) {
        self.last += 1;
        let waiting = Waiting::new(job, self.last);
        self.line_of(&waiting.job).waiting.push_back(waiting);
    }

    /// Puts a job back in its place, which [`ArrivalQueue::pop_older_than`] has returned. The job may have to stay by now.
    pub(super) fn put_back(&mut self, job: J, number: u64) {
        let waiting = Waiting::new(job, number);
        self.line_of(&waiting.job).insert(waiting);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<J> {
        self.first_line().waiting.pop_front().map(|waiting| waiting.job)
    }

    /// Time since when the next job has waited.
    pub(super) fn first_waits_since(&self) -> Option<Nanos> {
        let firsts = [self.leaving.waiting.front(), self.staying.waiting.front()];
        let first = firsts.into_iter().flatten().min_by_key(|first| first.number)?;
        Some(first.since)
    }

    /// Takes the next job that may leave, if it arrived before `time`. Returns its place, too.
    pub(super) fn pop_older_than(&mut self, time: Nanos) -> Option<(J, u64)> {
        let is_older = |first: &Waiting<J>| first.job.arrived().is_some_and(|arrived| arrived <= time);
        self.leaving.waiting.front().filter(|first| is_older(first))?;
        let first = self.leaving.waiting.pop_front()?;
        Some((first.job, first.number))
    }

    /// Takes the last request. Examines only the last [`EXAMINED`] jobs of each line.
    pub(super) fn pop_last(&mut self) -> Option<J> {
        let lines = [&mut self.leaving, &mut self.staying];
        let requests = lines.into_iter().filter_map(|line| Some((line.last_request()?, line)));
        let ((_, index), line) = requests.max_by_key(|((number, _), _)| *number)?;
        line.waiting.remove(index).map(|waiting| waiting.job)
    }

    /// Takes the jobs that `leaves` selects: of each line the first ones, and some of the next `most` jobs. The next call
    /// continues after these.
    pub(super) fn sweep(&mut self, most: usize, leaves: &mut impl FnMut(&mut J) -> bool) -> Vec<J> {
        let mut taken = self.leaving.sweep(most, leaves);
        taken.extend(self.staying.sweep(most, leaves));
        taken
    }

    /// Takes all jobs.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = J> + '_ {
        std::iter::from_fn(move || self.pop())
    }

    /// Releases the capacity that a burst has left.
    pub(super) fn shrink(&mut self) {
        self.leaving.waiting.shrink_to(USUAL_PLACES);
        self.staying.waiting.shrink_to(USUAL_PLACES);
    }

    fn line_of(&mut self, job: &J) -> &mut Line<J> {
        match job.can_leave() {
            true => &mut self.leaving,
            false => &mut self.staying,
        }
    }

    /// The line with the next job.
    fn first_line(&mut self) -> &mut Line<J> {
        match (self.leaving.waiting.front(), self.staying.waiting.front()) {
            (Some(leaving), Some(staying)) if leaving.number < staying.number => &mut self.leaving,
            (_, Some(_)) => &mut self.staying,
            (_, None) => &mut self.leaving,
        }
    }
}

impl<J: Queued> Line<J> {
    fn insert(&mut self, waiting: Waiting<J>) {
        let index = self.waiting.partition_point(|other| other.number < waiting.number);
        self.waiting.insert(index, waiting);
    }

    /// Number and index of the last request.
    fn last_request(&self) -> Option<(u64, usize)> {
        let mut last = self.waiting.iter().enumerate().rev().take(EXAMINED);
        let (index, waiting) = last.find(|(_, waiting)| waiting.job.arrived().is_some())?;
        Some((waiting.number, index))
    }

    fn sweep(&mut self, most: usize, leaves: &mut impl FnMut(&mut J) -> bool) -> Vec<J> {
        let mut taken = Vec::new();
        while taken.len() < most && self.waiting.front_mut().is_some_and(|first| leaves(&mut first.job)) {
            taken.extend(self.waiting.pop_front().map(|first| first.job));
        }
        let leaves = |waiting: &mut Waiting<J>| leaves(&mut waiting.job);
        let swept = sweep(&mut self.waiting, &mut self.swept_to, most, leaves);
        taken.extend(swept.into_iter().map(|waiting| waiting.job));
        taken
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
