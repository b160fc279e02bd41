//! Ready queue: jobs that a thread of the app can run, and their order. Order of arrival (`arrival.rs`), or turns by flow
//! (`fair.rs`); urgent jobs go ahead of both (`urgent.rs`).

mod absent;
mod arrival;
mod fair;
mod urgent;
mod usage;

use crate::clock::Nanos;
use crate::cluster::ledger::Ledger;
use crate::config::fair_by::Flow;
use crate::sync::{Mutex, MutexGuard};
pub(crate) use arrival::sweep;

use arrival::ArrivalQueue;
use fair::{Charge, FairQueue};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use urgent::Urgent;

/// Job that a thread runs in one turn.
pub(crate) trait Queued {
    /// Time of arrival, if the job is a request.
    fn arrived(&self) -> Option<Nanos>;

    /// True if another worker could run the job as well, as far as is known. A job in the queue does not change this.
    fn can_leave(&self) -> bool;

    /// Time since when the job has waited for its turn, if that was before it entered this queue.
    fn waits_since(&self) -> Option<Nanos> {
        self.arrived()
    }

    /// Flow that the job counts for, if any. Used only if turns go by flow.
    fn flow(&self) -> Option<Flow>;

    /// True if the job may go ahead of the others.
    fn is_urgent(&self) -> bool;
}

/// Order of the jobs.
pub(crate) enum Order {
    /// The oldest job is next.
    Arrival,
    /// By flow; with the usage of the flows in other workers, if there are any.
    Flow(Option<&'static Ledger>),
}

pub(crate) struct ReadyQueue<J> {
    queues: Mutex<Queues<J>>,
    /// Length, readable without the lock; written only while the lock is held.
    length: AtomicUsize,
    /// Number of urgent jobs, in the same way.
    urgent: AtomicUsize,
    /// Number of flows with other jobs, in the same way.
    flows: AtomicUsize,
    /// True if all waiting jobs leave the free threads to flows that are expected back soon.
    is_held_back: AtomicBool,
}

struct Queues<J> {
    urgent: Urgent<J>,
    rest: Rest<J>,
}

enum Rest<J> {
    Arrival(ArrivalQueue<J>),
    Flow(Box<FairQueue<J>>),
}

/// Place of a job that was taken out of the queue to leave, and that may be put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(u64);

/// A job that was taken out of the queue to be run. [`ReadyQueue::end`] must be called at its end.
pub(crate) struct Taken<J> {
    pub(crate) job: J,
    /// Usually `None`.
    pub(super) due: Option<Box<Due>>,
}

/// Updates to make at the end of a job.
#[derive(Debug)]
pub(super) struct Due {
    /// True if the job has gone ahead of others.
    pub(super) has_overtaken: bool,
    charge: Option<Charge>,
}

impl<J> From<J> for Taken<J> {
    /// Wraps a job that was never in the queue.
    fn from(job: J) -> Taken<J> {
        Taken { job, due: None }
    }
}

impl<J: Queued> ReadyQueue<J> {
    /// `threads`: most jobs that run at a time.
    pub(crate) fn new(order: &Order, threads: usize) -> ReadyQueue<J> {
        let rest = match order {
            Order::Arrival => Rest::Arrival(ArrivalQueue::default()),
            Order::Flow(ledger) => Rest::Flow(Box::new(FairQueue::new(threads, *ledger))),
        };
        ReadyQueue {
            queues: Mutex::new(Queues {
                urgent: Urgent::default(),
                rest,
            }),
            length: AtomicUsize::new(0),
            urgent: AtomicUsize::new(0),
            flows: AtomicUsize::new(0),
            is_held_back: AtomicBool::new(false),
        }
    }

    pub(crate) fn push(&self, job: J) {
        let mut queues = self.queues.lock();
        let is_urgent = job.is_urgent();
        match &mut queues.rest {
            Rest::Arrival(queue) if !is_urgent => {
                queue.push(job);
                self.length.store(queue.len() + self.urgent.load(SeqCst), SeqCst);
                return;
            }
            Rest::Flow(queue) if !is_urgent => queue.push(job, Nanos::now()),
            _ => queues.urgent.push(job),
        }
        self.is_held_back.store(false, SeqCst);
        self.count(&queues);
    }

    /// Puts a job that could not leave back in its position.
    pub(crate) fn put_back(&self, job: J, Position(number): Position) {
        let mut queues = self.queues.lock();
        if job.is_urgent() {
            queues.urgent.put_back(job);
        } else {
            match &mut queues.rest {
                Rest::Arrival(queue) => queue.put_back(job, number),
                Rest::Flow(queue) => queue.put_back(job, Nanos::now()),
            }
        }
        self.count(&queues);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Taken<J>> {
        if self.is_empty() {
            return None;
        }
        let mut queues = self.queues.lock();
        if let (Rest::Arrival(queue), false) = (&mut queues.rest, self.has_urgent()) {
            let job = queue.pop();
            self.length.store(queue.len(), SeqCst);
            queues.urgent.give_way();
            return job.map(Taken::from);
        }
        self.pop_in_turn(&mut queues)
    }

    /// As [`ReadyQueue::pop`], if the order is not simply the order of arrival.
    #[inline(never)]
    fn pop_in_turn(&self, queues: &mut MutexGuard<'_, Queues<J>>) -> Option<Taken<J>> {
        let turn = queues.pop();
        self.count(queues);
        if turn.is_none() && !self.is_empty() {
            self.is_held_back.store(true, SeqCst);
        }
        turn
    }

    /// Takes an urgent job that goes ahead of the rest and of requests in the waiting room, unless it is the turn of
    /// another job.
    pub(super) fn pop_urgent(&self) -> Option<Taken<J>> {
        if !self.has_urgent() {
            return None;
        }
        let mut queues = self.queues.lock();
        let turn = queues.overtake();
        self.count(&queues);
        turn
    }

    /// Gives a job from the waiting room its turn.
    pub(super) fn give_way(&self) {
        if self.has_urgent() {
            self.queues.lock().urgent.give_way();
        }
    }

    /// Time since when the next job has waited; `None` if there is none, or if turns go by flow.
    pub(crate) fn first_waits_since(&self) -> Option<Nanos> {
        if self.is_empty() {
            return None;
        }
        match &self.queues.lock().rest {
            Rest::Arrival(queue) => queue.first_waits_since(),
            Rest::Flow(_) => None,
        }
    }

    /// Takes all jobs, none of which will run.
    pub(crate) fn take_all(&self) -> Vec<J> {
        let mut queues = self.queues.lock();
        let mut jobs = queues.urgent.take_all();
        match &mut queues.rest {
            Rest::Arrival(queue) => jobs.extend(queue.take_all()),
            Rest::Flow(queue) => jobs.extend(queue.take_all()),
        }
        self.count(&queues);
        jobs
    }

    /// Settles the turn of a job that has run.
    pub(super) fn end(&self, due: &Due) {
        let mut queues = self.queues.lock();
        if due.has_overtaken {
            queues.urgent.end();
        }
        if let (Some(charge), Rest::Flow(queue)) = (due.charge, &mut queues.rest) {
            queue.end(charge, Nanos::now());
            self.is_held_back.store(false, SeqCst);
        }
    }

    /// Checks again if jobs that are held back may run. Returns true if one may run now.
    pub(super) fn release(&self) -> bool {
        if !self.is_held_back() {
            return false;
        }
        let mut queues = self.queues.lock();
        let Rest::Flow(queue) = &mut queues.rest else {
            return false;
        };
        let is_free = queue.len() == 0 || queue.next(Nanos::now()).is_some();
        self.is_held_back.store(!is_free, SeqCst);
        is_free
    }

    /// Takes the next job that can leave, if it has waited since before `time`. Urgent jobs stay.
    pub(crate) fn pop_older_than(&self, time: Nanos) -> Option<(J, Position)> {
        if self.is_empty() {
            return None;
        }
        let mut queues = self.queues.lock();
        let job = match &mut queues.rest {
            Rest::Arrival(queue) => queue.pop_older_than(time),
            Rest::Flow(queue) => queue.pop_waiting_since(time).map(|job| (job, 0)),
        };
        self.count(&queues);
        job.map(|(job, number)| (job, Position(number)))
    }

    /// Takes the first urgent job, if it can leave and arrived before `time`.
    pub(crate) fn pop_urgent_older_than(&self, time: Nanos) -> Option<(J, Position)> {
        if !self.has_urgent() {
            return None;
        }
        let mut queues = self.queues.lock();
        let job = queues.urgent.pop_older_than(time);
        self.count(&queues);
        job.map(|job| (job, Position(0)))
    }

    /// Takes the last request, because the queue is too long since a job of `flow` has joined it: with turns by flow, the
    /// last one of the flow with most of them. Urgent jobs stay.
    pub(crate) fn pop_last(&self, flow: Option<Flow>) -> Option<J> {
        let mut queues = self.queues.lock();
        let job = match &mut queues.rest {
            Rest::Arrival(queue) => queue.pop_last(),
            Rest::Flow(queue) => queue.pop_last(flow),
        };
        self.count(&queues);
        job
    }

    /// Takes the jobs that `leaves` selects among some of the next jobs, at most `most` of each order. The next call
    /// continues after these, so many calls reach every job.
    pub(crate) fn sweep(&self, most: usize, mut leaves: impl FnMut(&mut J) -> bool) -> Vec<J> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut queues = self.queues.lock();
        let mut taken = queues.urgent.sweep(most, &mut leaves);
        taken.extend(match &mut queues.rest {
            Rest::Arrival(queue) => queue.sweep(most, &mut leaves),
            Rest::Flow(queue) => queue.sweep(most, &mut leaves),
        });
        self.count(&queues);
        taken
    }

    /// Releases the capacity that a burst has left.
    pub(crate) fn shrink(&self) {
        let mut queues = self.queues.lock();
        queues.urgent.shrink();
        match &mut queues.rest {
            Rest::Arrival(queue) => queue.shrink(),
            Rest::Flow(queue) => queue.shrink(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(SeqCst)
    }

    /// Number of jobs that are not urgent.
    pub(crate) fn ordinary(&self) -> usize {
        self.len().saturating_sub(self.urgent.load(SeqCst))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if a free thread should take a job.
    pub(crate) fn has_turns(&self) -> bool {
        !self.is_empty() && !self.is_held_back()
    }

    /// True if jobs wait, but leave the free threads to others.
    pub(crate) fn is_held_back(&self) -> bool {
        self.is_held_back.load(SeqCst)
    }

    /// True if an urgent job waits.
    pub(crate) fn has_urgent(&self) -> bool {
        self.urgent.load(SeqCst) > 0
    }

    /// Number of flows with waiting jobs; 0 if turns do not go by flow.
    pub(crate) fn waiting_flows(&self) -> usize {
        self.flows.load(SeqCst)
    }

    fn count(&self, queues: &MutexGuard<'_, Queues<J>>) {
        let rest = match &queues.rest {
            Rest::Arrival(queue) => queue.len(),
            Rest::Flow(queue) => {
                self.flows.store(queue.waiting_flows(), SeqCst);
                queue.len()
            }
        };
        let urgent = queues.urgent.len();
        if urgent != self.urgent.load(SeqCst) {
            self.urgent.store(urgent, SeqCst);
        }
        self.length.store(rest + urgent, SeqCst);
    }
}

impl<J: Queued> Queues<J> {
    fn pop(&mut self) -> Option<Taken<J>> {
        let has_others = match &self.rest {
            Rest::Arrival(queue) => queue.len() > 0,
            Rest::Flow(queue) => queue.len() > 0,
        };
        if has_others {
            if let Some(turn) = self.overtake().or_else(|| self.pop_rest()) {
                return Some(turn);
            }
        }
        let job = self.urgent.pop()?;
        Some(self.begin_urgent(job, false))
    }

    /// Takes an urgent job that goes ahead of the rest.
    fn overtake(&mut self) -> Option<Taken<J>> {
        let job = self.urgent.overtake()?;
        Some(self.begin_urgent(job, true))
    }

    fn begin_urgent(&mut self, job: J, has_overtaken: bool) -> Taken<J> {
        let charge = match &mut self.rest {
            Rest::Arrival(_) => None,
            Rest::Flow(queue) => Some(queue.begin(&job, Nanos::now())),
        };
        let due = Some(Box::new(Due { has_overtaken, charge }));
        Taken { job, due }
    }

    fn pop_rest(&mut self) -> Option<Taken<J>> {
        let turn = match &mut self.rest {
            Rest::Arrival(queue) => queue.pop().map(Taken::from),
            Rest::Flow(queue) => queue.pop(Nanos::now()).map(|(job, charge)| {
                let due = Due {
                    has_overtaken: false,
                    charge: Some(charge),
                };
                let due = Some(Box::new(due));
                Taken { job, due }
            }),
        }?;
        self.urgent.give_way();
        Some(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[derive(Debug, PartialEq, Eq)]
    enum TestJob {
        Request(u64),
        /// A request that has to stay.
        Staying(u64),
        Own,
    }

    thread_local! {
        /// Number of jobs that the queue has asked for their time of arrival.
        static EXAMINED: Cell<usize> = const { Cell::new(0) };
    }

    impl Queued for TestJob {
        fn arrived(&self) -> Option<Nanos> {
            EXAMINED.set(EXAMINED.get() + 1);
            match self {
                TestJob::Request(arrived) | TestJob::Staying(arrived) => Some(at(*arrived)),
                TestJob::Own => None,
            }
        }

        fn waits_since(&self) -> Option<Nanos> {
            None
        }

        fn can_leave(&self) -> bool {
            matches!(self, TestJob::Request(_))
        }

        fn flow(&self) -> Option<Flow> {
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
        let (first, its_place) = queue.pop_older_than(at(9)).expect("the first");
        let (_, second_place) = queue.pop_older_than(at(9)).expect("the second");
        queue.put_back(TestJob::Staying(1), second_place);
        queue.put_back(first, its_place);
        let next = || queue.pop_older_than(at(9)).map(|(job, _)| job);
        assert_eq!([next(), next()], [0, 2].map(|number| Some(TestJob::Request(number))));
        let left: Vec<TestJob> = std::iter::from_fn(|| Some(queue.pop()?.job)).collect();
        let own = || TestJob::Own;
        let in_order = [own(), TestJob::Staying(1), own(), own(), TestJob::Request(3), own()];
        assert_eq!(left, in_order);
    }

    #[test]
    fn the_search_passes_no_request_that_has_to_stay() {
        let queue = ReadyQueue::new(&Order::Arrival, 1);
        for arrived in 0..1_000 {
            queue.push(TestJob::Staying(arrived));
            queue.push(TestJob::Own);
        }
        queue.push(TestJob::Request(1_000));
        EXAMINED.set(0);
        assert_eq!(queue.pop_older_than(at(999)), None);
        let (last, its_place) = queue.pop_older_than(at(1_000)).expect("the last one");
        queue.put_back(last, its_place);
        assert!(EXAMINED.get() < 10, "examined {} jobs", EXAMINED.get());
        assert_eq!(queue.pop_last(None), Some(TestJob::Request(1_000)));
        assert_eq!(
            queue.pop_last(None),
            Some(TestJob::Staying(999)),
            "the limit holds for each request"
        );
    }

    #[test]
    fn only_requests_older_than_the_given_time_are_taken() {
        let queue = queue(3);
        let next = |time| queue.pop_older_than(at(time)).map(|(job, _)| job);
        assert_eq!([next(1), next(1)], [0, 1].map(|number| Some(TestJob::Request(number))));
        assert_eq!(next(1), None);
        assert_eq!([next(9), next(9)], [Some(TestJob::Request(2)), None]);
    }

    #[test]
    fn several_sweeps_reach_every_job_and_leave_the_order_of_the_others() {
        let queue = queue(20);
        let mut taken = Vec::new();
        // The first job is not selected, so the start of the queue does not help.
        let mut odd = |job: &mut TestJob| matches!(job, TestJob::Request(number) if *number % 2 == 1);
        for _ in 0..10 {
            taken.extend(queue.sweep(8, &mut odd));
        }
        let requests = |from| (from..20).step_by(2).map(TestJob::Request).collect::<Vec<_>>();
        assert_eq!(taken, requests(1));
        let left: Vec<TestJob> = std::iter::from_fn(|| Some(queue.pop()?.job))
            .filter(|job| *job != TestJob::Own)
            .collect();
        assert_eq!(left, requests(0));
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn jobs_at_the_start_of_the_queue_leave_in_the_first_sweep() {
        let queue = queue(20);
        let _ = queue.sweep(8, |_| false);
        assert_eq!(queue.sweep(8, |job| *job == TestJob::Request(0)), [TestJob::Request(0)]);
    }

    #[test]
    fn the_last_request_leaves_and_other_jobs_stay() {
        let queue = queue(3);
        assert_eq!(queue.pop_last(None), Some(TestJob::Request(2)));
        assert_eq!(queue.pop_last(None), Some(TestJob::Request(1)));
        assert_eq!(queue.len(), 4);
    }
}
