//! The ready queue: the jobs that a thread of the app can run, and which is next. First come, first served, or turns by
//! party (`fair.rs`); urgent jobs go ahead of both (`urgent.rs`).

mod absent;
mod account;
mod fair;
mod urgent;

use crate::clock::Nanos;
use crate::cluster::ledger::Ledger;
use crate::config::fair_by::Party;
use crate::sync::{Mutex, MutexGuard};
use fair::{Charge, FairLine};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use urgent::Urgent;

/// What a thread runs in one turn.
pub(crate) trait Queued {
    /// When it arrived, if another worker could run it as well.
    fn arrived(&self) -> Option<Nanos>;

    /// Since when it has waited for its turn, if that began before it came into this queue.
    fn waits_since(&self) -> Option<Nanos> {
        self.arrived()
    }

    /// Whose turn it takes; `None` for what belongs to nobody. Counts only if turns go by party.
    fn party(&self) -> Option<Party>;

    /// Whether it may go ahead of the others.
    fn is_urgent(&self) -> bool;
}

/// Which job is next.
pub(crate) enum Order {
    /// The one that has waited longest.
    Arrival,
    /// That of the party whose turn it is; with what the parties use in other workers, if there are any.
    Party(Option<&'static Ledger>),
}

/// Capacity that is kept when a burst is over.
const USUAL_PLACES: usize = 64;

pub(crate) struct ReadyQueue<J> {
    lines: Mutex<Lines<J>>,
    /// The length, readable without the lock; written only while the lock is held.
    length: AtomicUsize,
    /// How many of them are urgent, in the same way.
    urgent: AtomicUsize,
    /// How many parties have jobs among the rest, in the same way.
    parties: AtomicUsize,
    /// Whether all that wait leave the free threads to others, who are expected.
    is_held_back: AtomicBool,
}

struct Lines<J> {
    urgent: Urgent<J>,
    rest: Line<J>,
}

enum Line<J> {
    Arrival(VecDeque<Waiting<J>>),
    Party(Box<FairLine<J>>),
}

/// A job in the order of arrival.
struct Waiting<J> {
    job: J,
    since: Nanos,
}

/// A job that was taken out of the queue, to be run. Its end must be told with [`ReadyQueue::end`].
pub(crate) struct Turn<J> {
    pub(crate) job: J,
    /// `None` in the usual case.
    pub(super) due: Option<Box<Due>>,
}

/// What the end of a job settles.
#[derive(Debug)]
pub(super) struct Due {
    /// Whether it has gone ahead of others.
    pub(super) has_overtaken: bool,
    charge: Option<Charge>,
}

impl<J> From<J> for Turn<J> {
    /// A job that was never in the queue.
    fn from(job: J) -> Turn<J> {
        Turn { job, due: None }
    }
}

impl<J: Queued> ReadyQueue<J> {
    /// `threads`: most jobs that run at a time.
    pub(crate) fn new(order: &Order, threads: usize) -> ReadyQueue<J> {
        let rest = match order {
            Order::Arrival => Line::Arrival(VecDeque::new()),
            Order::Party(ledger) => Line::Party(Box::new(FairLine::new(threads, *ledger))),
        };
        ReadyQueue {
            lines: Mutex::new(Lines {
                urgent: Urgent::default(),
                rest,
            }),
            length: AtomicUsize::new(0),
            urgent: AtomicUsize::new(0),
            parties: AtomicUsize::new(0),
            is_held_back: AtomicBool::new(false),
        }
    }

    pub(crate) fn push(&self, job: J) {
        let mut lines = self.lines.lock();
        let is_urgent = job.is_urgent();
        match &mut lines.rest {
            Line::Arrival(line) if !is_urgent => {
                let since = job.waits_since().unwrap_or_else(Nanos::now);
                line.push_back(Waiting { job, since });
                self.length.store(line.len() + self.urgent.load(SeqCst), SeqCst);
                return;
            }
            Line::Party(line) if !is_urgent => line.push(job, Nanos::now()),
            _ => lines.urgent.push(job),
        }
        self.is_held_back.store(false, SeqCst);
        self.count(&lines);
    }

    /// Puts a job that could not leave back to its place.
    pub(crate) fn put_back(&self, job: J) {
        let mut lines = self.lines.lock();
        if job.is_urgent() {
            lines.urgent.put_back(job);
        } else {
            match &mut lines.rest {
                Line::Arrival(line) => {
                    let since = job.waits_since().unwrap_or_else(Nanos::now);
                    let index = line.iter().position(|other| other.since > since);
                    line.insert(index.unwrap_or(line.len()), Waiting { job, since });
                }
                Line::Party(line) => line.put_back(job, Nanos::now()),
            }
        }
        self.count(&lines);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Turn<J>> {
        if self.is_empty() {
            return None;
        }
        let mut lines = self.lines.lock();
        if let (Line::Arrival(line), false) = (&mut lines.rest, self.has_urgent()) {
            let job = line.pop_front();
            self.length.store(line.len(), SeqCst);
            lines.urgent.give_way();
            return job.map(|waiting| Turn::from(waiting.job));
        }
        self.pop_in_turn(&mut lines)
    }

    /// As [`ReadyQueue::pop`], where there is more to it than the order of arrival.
    #[inline(never)]
    fn pop_in_turn(&self, lines: &mut MutexGuard<'_, Lines<J>>) -> Option<Turn<J>> {
        let turn = lines.pop();
        self.count(lines);
        if turn.is_none() && !self.is_empty() {
            self.is_held_back.store(true, SeqCst);
        }
        turn
    }

    /// An urgent job that goes ahead of the rest, and of what comes from elsewhere, unless it is their turn.
    pub(super) fn pop_urgent(&self) -> Option<Turn<J>> {
        if !self.has_urgent() {
            return None;
        }
        let mut lines = self.lines.lock();
        let turn = lines.overtake();
        self.count(&lines);
        turn
    }

    /// A job from elsewhere has its turn.
    pub(super) fn give_way(&self) {
        if self.has_urgent() {
            self.lines.lock().urgent.give_way();
        }
    }

    /// Since when the job that is next has waited; `None` if there is none, or turns go by party.
    pub(crate) fn first_waits_since(&self) -> Option<Nanos> {
        if self.is_empty() {
            return None;
        }
        match &self.lines.lock().rest {
            Line::Arrival(line) => line.front().map(|waiting| waiting.since),
            Line::Party(_) => None,
        }
    }

    /// Takes all jobs, none of which will run.
    pub(crate) fn take_all(&self) -> Vec<J> {
        let mut lines = self.lines.lock();
        let mut jobs = lines.urgent.take_all();
        match &mut lines.rest {
            Line::Arrival(line) => jobs.extend(line.drain(..).map(|waiting| waiting.job)),
            Line::Party(line) => jobs.extend(line.take_all()),
        }
        self.count(&lines);
        jobs
    }

    /// The job of a turn has run.
    pub(super) fn end(&self, due: &Due) {
        let mut lines = self.lines.lock();
        if due.has_overtaken {
            lines.urgent.end();
        }
        if let (Some(charge), Line::Party(line)) = (due.charge, &mut lines.rest) {
            line.end(charge, Nanos::now());
            self.is_held_back.store(false, SeqCst);
        }
    }

    /// Looks again at jobs that are held back. True if one may run now.
    pub(super) fn release(&self) -> bool {
        if !self.is_held_back() {
            return false;
        }
        let mut lines = self.lines.lock();
        let Line::Party(line) = &mut lines.rest else {
            return false;
        };
        let is_free = line.len() == 0 || line.next(Nanos::now()).is_some();
        self.is_held_back.store(!is_free, SeqCst);
        is_free
    }

    /// Takes the job that can leave and would be next, after skipping `skipped` of them, if it has waited since before
    /// `time`. Urgent jobs stay.
    pub(crate) fn pop_older_than(&self, time: Nanos, skipped: usize) -> Option<J> {
        if self.is_empty() {
            return None;
        }
        let mut lines = self.lines.lock();
        let job = match &mut lines.rest {
            Line::Arrival(line) => pop_older_than(line, time, skipped),
            Line::Party(line) => line.pop_waiting_since(time, skipped),
        };
        self.count(&lines);
        job
    }

    /// Takes the first urgent job, if it arrived before `time`.
    pub(crate) fn pop_urgent_older_than(&self, time: Nanos) -> Option<J> {
        if !self.has_urgent() {
            return None;
        }
        let mut lines = self.lines.lock();
        let job = lines.urgent.pop_older_than(time);
        self.count(&lines);
        job
    }

    /// Returns the capacity that a burst has left.
    pub(crate) fn shrink(&self) {
        let mut lines = self.lines.lock();
        lines.urgent.shrink();
        match &mut lines.rest {
            Line::Arrival(line) => line.shrink_to(USUAL_PLACES),
            Line::Party(line) => line.shrink(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a thread that is free should take a job.
    pub(crate) fn has_turns(&self) -> bool {
        !self.is_empty() && !self.is_held_back()
    }

    /// Whether jobs wait, but leave the free threads to others.
    pub(crate) fn is_held_back(&self) -> bool {
        self.is_held_back.load(SeqCst)
    }

    /// Whether an urgent job waits.
    pub(crate) fn has_urgent(&self) -> bool {
        self.urgent.load(SeqCst) > 0
    }

    /// How many parties have jobs that wait; 0 if turns do not go by party.
    pub(crate) fn waiting_parties(&self) -> usize {
        self.parties.load(SeqCst)
    }

    fn count(&self, lines: &MutexGuard<'_, Lines<J>>) {
        let rest = match &lines.rest {
            Line::Arrival(line) => line.len(),
            Line::Party(line) => {
                self.parties.store(line.waiting_parties(), SeqCst);
                line.len()
            }
        };
        let urgent = lines.urgent.len();
        if urgent != self.urgent.load(SeqCst) {
            self.urgent.store(urgent, SeqCst);
        }
        self.length.store(rest + urgent, SeqCst);
    }
}

impl<J: Queued> Lines<J> {
    fn pop(&mut self) -> Option<Turn<J>> {
        let has_others = match &self.rest {
            Line::Arrival(line) => !line.is_empty(),
            Line::Party(line) => line.len() > 0,
        };
        if has_others {
            if let Some(turn) = self.overtake().or_else(|| self.pop_rest()) {
                return Some(turn);
            }
        }
        let job = self.urgent.pop()?;
        Some(self.begin_urgent(job, false))
    }

    /// An urgent job that goes ahead of the rest.
    fn overtake(&mut self) -> Option<Turn<J>> {
        let job = self.urgent.overtake()?;
        Some(self.begin_urgent(job, true))
    }

    fn begin_urgent(&mut self, job: J, has_overtaken: bool) -> Turn<J> {
        let charge = match &mut self.rest {
            Line::Arrival(_) => None,
            Line::Party(line) => Some(line.begin(&job, Nanos::now())),
        };
        let due = Some(Box::new(Due { has_overtaken, charge }));
        Turn { job, due }
    }

    fn pop_rest(&mut self) -> Option<Turn<J>> {
        let turn = match &mut self.rest {
            Line::Arrival(line) => line.pop_front().map(|waiting| Turn::from(waiting.job)),
            Line::Party(line) => line.pop(Nanos::now()).map(|(job, charge)| {
                let due = Due {
                    has_overtaken: false,
                    charge: Some(charge),
                };
                let due = Some(Box::new(due));
                Turn { job, due }
            }),
        }?;
        self.urgent.give_way();
        Some(turn)
    }
}

fn pop_older_than<J: Queued>(line: &mut VecDeque<Waiting<J>>, time: Nanos, skipped: usize) -> Option<J> {
    let arrivals = line.iter().map(|waiting| waiting.job.arrived()).enumerate();
    let (index, arrived) = arrivals
        .filter_map(|(index, arrived)| Some((index, arrived?)))
        .nth(skipped)?;
    if arrived > time {
        return None;
    }
    line.remove(index).map(|waiting| waiting.job)
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

        fn party(&self) -> Option<Party> {
            None
        }

        fn is_urgent(&self) -> bool {
            false
        }
    }

    fn at(nanoseconds: u64) -> Nanos {
        Nanos::from_number(nanoseconds)
    }

    /// Requests in order of arrival, and after each a job that cannot leave.
    fn queue(count: u64) -> ReadyQueue<TestJob> {
        let queue = ReadyQueue::new(&Order::Arrival, 1);
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
        let left: Vec<TestJob> = std::iter::from_fn(|| Some(queue.pop()?.job))
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
