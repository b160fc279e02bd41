//! Turns by flow: deficit round robin, where the cost of a turn is known only afterwards.
//!
//! In each round a flow may use [`QUANTUM`] of thread time; within the round flows alternate, one job at a time, in the
//! order of arrival. A flow that has used more skips as many rounds. So a client gains nothing by many connections, by
//! pipelining or by long requests: over any period, flows with a constant supply of jobs get the same time, up to a
//! quantum and the jobs that run at the moment. The next round begins when no flow is left in this one.
//!
//! The rounds are numbered: a flow is in round `used / QUANTUM`, and a new flow enters the round of the virtual time
//! (`usage.rs`). Jobs without a flow (tasks, messages for the process) are in that round, too, each for itself.
//!
//! A job that has begun is not interrupted. So a flow that has used more than its share does not take every thread: it
//! leaves one thread to each flow that left a moment ago, and one to all flows that left lately (`absent.rs`).
//!
//! The queue remembers flows with something to run, and [`MOST_IDLE`] flows that have run something lately.

use super::absent::{Absent, Presence};
use super::usage::{Begun, Usage, VirtualTime};
use super::Queued;
use crate::clock::Nanos;
use crate::cluster::ledger::Ledger;
use crate::config::fair_by::Flow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

/// Time that a flow may use in a round, in nanoseconds.
const QUANTUM: u64 = 1_000_000;

/// Flows with nothing to run that are remembered for their usage.
const MOST_IDLE: usize = 4_096;

/// Interval at which debts fade, and flows without a debt are forgotten.
const FADING: Duration = Duration::from_secs(1);

/// Most flows that are searched for a job that may leave.
const DEPARTING: usize = 16;

/// Most flows that are skipped because they leave their threads to others.
const MOST_HELD: usize = 16;

/// See the head of this file.
pub(super) struct FairQueue<J> {
    flows: HashMap<Flow, Member<J>>,
    /// Order of the turns.
    turns: BTreeMap<Place, Next<J>>,
    /// Flows with waiting jobs, by the number of these.
    lengths: BTreeSet<(usize, Flow)>,
    virtual_time: VirtualTime,
    length: usize,
    /// Jobs without a flow.
    own: usize,
    /// Numbers the places in order; begins in the middle, so that places before all others are possible.
    last: u64,
    first: u64,
    /// Time at which debts last faded.
    faded: Nanos,
    /// Most jobs that run at a time.
    threads: usize,
    absent: Absent,
    ledger: Option<&'static Ledger>,
    /// Turn, and job of its flow, at which the next [`FairQueue::sweep`] continues.
    swept_to: (Place, usize),
}

/// Round, and the number within it.
type Place = (u64, u64);

enum Next<J> {
    Of(Flow),
    Own(J),
}

struct Member<J> {
    usage: Usage,
    /// Jobs, with their times of arrival.
    waiting: VecDeque<(Nanos, J)>,
    /// Place in the order of turns, while a job waits.
    place: Place,
    /// End of its last job, if no other job waits.
    left: Nanos,
}

impl<J> Member<J> {
    fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.usage.is_running()
    }
}

/// A job that was taken out and runs, with its flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge(Option<(Flow, Begun)>);

impl<J: Queued> FairQueue<J> {
    /// `threads`: most jobs that run at a time. `ledger`: the ledger of all workers, if there are any.
    pub(super) fn new(threads: usize, ledger: Option<&'static Ledger>) -> FairQueue<J> {
        FairQueue {
            flows: HashMap::new(),
            turns: BTreeMap::new(),
            lengths: BTreeSet::new(),
            virtual_time: VirtualTime::default(),
            length: 0,
            own: 0,
            last: u64::MAX / 2,
            first: u64::MAX / 2,
            faded: Nanos::default(),
            threads,
            absent: Absent::default(),
            ledger,
            swept_to: ((0, 0), 0),
        }
    }

    /// Jobs that wait.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Flows with jobs that wait.
    pub(super) fn waiting_flows(&self) -> usize {
        self.turns.len() - self.own
    }

    pub(super) fn push(&mut self, job: J, now: Nanos) {
        self.virtual_time.advance(now);
        self.length += 1;
        let Some(flow) = job.flow() else {
            let place = (self.virtual_time.time() / QUANTUM, self.number());
            self.turns.insert(place, Next::Own(job));
            self.own += 1;
            return;
        };
        let waiting = &mut self.join(flow).waiting;
        waiting.push_back((now, job));
        let length = waiting.len();
        self.note_length(flow, length - 1, length);
        if length == 1 {
            let number = self.number();
            self.enqueue(flow, number, now);
        }
    }

    /// Puts a job back before all others of its flow, which gets the first turn of its round again.
    pub(super) fn put_back(&mut self, job: J, now: Nanos) {
        let Some(flow) = job.flow() else {
            return self.push(job, now);
        };
        self.length += 1;
        let member = self.join(flow);
        // The job has waited long enough to leave, and may try again.
        member.waiting.push_front((Nanos::default(), job));
        let (place, length) = (member.place, member.waiting.len());
        self.note_length(flow, length - 1, length);
        self.turns.remove(&place);
        self.first -= 1;
        self.enqueue(flow, self.first, now);
    }

    pub(super) fn pop(&mut self, now: Nanos) -> Option<(J, Charge)> {
        let place = self.next(now)?;
        let next = self.turns.remove(&place)?;
        self.length -= 1;
        self.virtual_time.begin();
        let flow = match next {
            Next::Own(job) => {
                self.own -= 1;
                return Some((job, Charge(None)));
            }
            Next::Of(flow) => flow,
        };
        let member = self.flows.get_mut(&flow)?;
        let (_, job) = member.waiting.pop_front()?;
        let (begun, length) = (member.usage.begin(now), member.waiting.len());
        self.note_length(flow, length + 1, length);
        if length > 0 {
            let number = self.number();
            self.enqueue(flow, number, now);
        }
        Some((job, Charge(Some((flow, begun)))))
    }

    /// Place of the next turn; `None` if all waiting jobs leave their threads to others.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Place> {
        self.virtual_time.advance(now);
        if now - self.faded >= FADING {
            self.fade_debts(now);
        }
        let mut passed = (0, 0);
        let mut held = 0;
        while held < MOST_HELD {
            let (place, next) = self.turns.range((Excluded(passed), Unbounded)).next()?;
            let (place, Next::Of(flow)) = (*place, next) else {
                return Some(*place);
            };
            let flow = *flow;
            self.charge_elsewhere(flow);
            let usage = &self.flows.get(&flow)?.usage;
            if usage.used(&self.virtual_time, now) / QUANTUM > place.0 {
                // The flow has used more since it got its place.
                self.turns.remove(&place);
                let number = self.number();
                self.enqueue(flow, number, now);
            } else if self.is_held_back(flow, now) {
                (passed, held) = (place, held + 1);
            } else {
                return Some(place);
            }
        }
        None
    }

    /// True if a flow leaves the free threads to others: flows that are expected back soon, and that will still have
    /// used less than this flow after their next job.
    fn is_held_back(&self, flow: Flow, now: Nanos) -> bool {
        let free = self.threads.saturating_sub(self.virtual_time.running());
        let Some(member) = self.flows.get(&flow) else {
            return false;
        };
        let used = member.usage.used(&self.virtual_time, now);
        if free >= self.threads || used <= self.virtual_time.time() + QUANTUM {
            return false;
        }
        let presence = |other: Flow, left: Nanos| {
            let member = self.flows.get(&other);
            let next = member.map_or(self.virtual_time.time(), |member| {
                member.usage.after_next(&self.virtual_time)
            });
            match member {
                _ if other == flow || next + QUANTUM >= used => Presence::Even,
                Some(member) if member.left == left && !member.is_active() => Presence::Away,
                _ => Presence::Back,
            }
        };
        self.absent.want(free, member.usage.usual(), now, presence)
    }

    /// Begins a job that never was in this queue.
    pub(super) fn begin(&mut self, job: &J, now: Nanos) -> Charge {
        self.virtual_time.advance(now);
        self.virtual_time.begin();
        let flow = job.flow();
        Charge(flow.map(|flow| (flow, self.join(flow).usage.begin(now))))
    }

    /// Ends a job.
    pub(super) fn end(&mut self, charge: Charge, now: Nanos) {
        self.virtual_time.advance(now);
        self.virtual_time.end();
        if let Charge(Some((flow, begun))) = charge {
            if let Some(member) = self.flows.get_mut(&flow) {
                let time = member.usage.end(begun, &self.virtual_time, now);
                if let Some(ledger) = self.ledger {
                    ledger.add(flow, time, &mut member.usage.seen);
                }
                if !member.is_active() {
                    self.virtual_time.remove_flow();
                    member.left = now;
                    self.absent.note(flow, now);
                }
            }
        }
        if self.virtual_time.is_idle() {
            // No job waits, so no debt matters.
            self.flows.clear();
        }
    }

    /// Takes the job that may leave, has waited since before `time`, and has the earliest turn. Examines only the first
    /// job of each of the first flows.
    pub(super) fn pop_waiting_since(&mut self, time: Nanos) -> Option<J> {
        let may_leave = |(place, next): (&Place, &Next<J>)| {
            let Next::Of(flow) = next else { return None };
            let (came, job) = self.flows.get(flow)?.waiting.front()?;
            (*came <= time && job.can_leave()).then_some((*place, *flow))
        };
        let mut leaving = self.turns.iter().take(DEPARTING).filter_map(may_leave);
        let (place, flow) = leaving.next()?;
        self.take_out(place, flow, 0)
    }

    /// Takes the last request of the flow with most waiting jobs; of `newcomer`, if no other flow has more.
    pub(super) fn pop_last(&mut self, newcomer: Option<Flow>) -> Option<J> {
        let (most, _) = *self.lengths.last()?;
        let is_longest = |flow: &Flow| self.lengths.contains(&(most, *flow));
        let longest = self.lengths.iter().rev().take(DEPARTING).map(|(_, flow)| *flow);
        // A flow may have only jobs that are no requests.
        let flows = newcomer.filter(is_longest).into_iter().chain(longest).chain(newcomer);
        let last_request = |flow| {
            let member = self.flows.get(&flow)?;
            let index = member.waiting.iter().rposition(|(_, job)| job.arrived().is_some())?;
            Some((member.place, flow, index))
        };
        let (place, flow, index) = flows.into_iter().find_map(last_request)?;
        self.take_out(place, flow, index)
    }

    /// Takes the jobs that `leaves` selects among the next `most` jobs. The next call continues after these.
    pub(super) fn sweep(&mut self, most: usize, leaves: &mut impl FnMut(&mut J) -> bool) -> Vec<J> {
        let mut taken = Vec::new();
        for _ in 0..most {
            let (from, index) = self.swept_to;
            let Some((place, next)) = self.turns.range(from..).next() else {
                self.swept_to = ((0, 0), 0);
                break;
            };
            let (place, index) = (*place, if *place == from { index } else { 0 });
            self.swept_to = ((place.0, place.1 + 1), 0);
            let Next::Of(flow) = *next else { continue };
            let waiting = self.flows.get_mut(&flow).map(|member| &mut member.waiting);
            let Some((_, job)) = waiting.and_then(|waiting| waiting.get_mut(index)) else {
                continue;
            };
            match leaves(job) {
                true => {
                    taken.extend(self.take_out(place, flow, index));
                    self.swept_to = (place, index);
                }
                false => self.swept_to = (place, index + 1),
            }
        }
        taken
    }

    /// Takes a job of a flow, which keeps its turn if it has another one. It will not run here.
    fn take_out(&mut self, place: Place, flow: Flow, index: usize) -> Option<J> {
        let member = self.flows.get_mut(&flow)?;
        let (_, job) = member.waiting.remove(index)?;
        self.length -= 1;
        let length = member.waiting.len();
        if length == 0 {
            self.turns.remove(&place);
            if !member.usage.is_running() {
                self.virtual_time.remove_flow();
            }
        }
        self.note_length(flow, length + 1, length);
        Some(job)
    }

    fn note_length(&mut self, flow: Flow, before: usize, now: usize) {
        self.lengths.remove(&(before, flow));
        if now > 0 {
            self.lengths.insert((now, flow));
        }
    }

    /// Takes all jobs, none of which will run.
    pub(super) fn take_all(&mut self) -> Vec<J> {
        (self.length, self.own) = (0, 0);
        self.lengths.clear();
        let mut jobs = Vec::new();
        for next in std::mem::take(&mut self.turns).into_values() {
            match next {
                Next::Own(job) => jobs.push(job),
                Next::Of(flow) => {
                    let Some(member) = self.flows.get_mut(&flow) else {
                        continue;
                    };
                    jobs.extend(member.waiting.drain(..).map(|(_, job)| job));
                    if !member.is_active() {
                        self.virtual_time.remove_flow();
                    }
                }
            }
        }
        jobs
    }

    /// Releases the capacity that a burst has left.
    pub(super) fn shrink(&mut self) {
        self.flows.shrink_to(MOST_IDLE);
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns a flow that is about to have something to run.
    fn join(&mut self, flow: Flow) -> &mut Member<J> {
        self.charge_elsewhere(flow);
        self.make_room();
        let member = self.flows.entry(flow).or_insert_with(|| Member {
            usage: Usage::new(self.ledger.map(|ledger| ledger.look(flow)).unwrap_or_default()),
            waiting: VecDeque::new(),
            place: (0, 0),
            left: Nanos::default(),
        });
        if !member.is_active() {
            member.usage.join(&self.virtual_time);
            self.virtual_time.add_flow();
        }
        member
    }

    /// Gives a flow its place in the current round of the flow.
    fn enqueue(&mut self, flow: Flow, number: u64, now: Nanos) {
        let Some(member) = self.flows.get_mut(&flow) else {
            return;
        };
        member.place = (member.usage.used(&self.virtual_time, now) / QUANTUM, number);
        self.turns.insert(member.place, Next::Of(flow));
    }

    /// Charges a flow for its usage in other workers.
    fn charge_elsewhere(&mut self, flow: Flow) {
        let (Some(ledger), Some(member)) = (self.ledger, self.flows.get_mut(&flow)) else {
            return;
        };
        let time = ledger.elsewhere(flow, &mut member.usage.seen);
        if time > 0 && member.is_active() {
            self.virtual_time.spend(time);
        }
        member.usage.charge(time, &self.virtual_time);
    }

    /// Lets debts fade, and forgets flows that have none.
    fn fade_debts(&mut self, now: Nanos) {
        self.faded = now;
        for (flow, member) in &mut self.flows {
            member.usage.forgive(&self.virtual_time);
            if member.waiting.is_empty() {
                continue;
            }
            let place = (member.usage.used(&self.virtual_time, now) / QUANTUM, member.place.1);
            if place < member.place {
                self.turns.remove(&member.place);
                self.turns.insert(place, Next::Of(*flow));
                member.place = place;
            }
        }
        self.forget(0);
    }

    /// Makes room for one more flow.
    fn make_room(&mut self) {
        let most = 2 * self.turns.len() + MOST_IDLE;
        if self.flows.len() < most {
            return;
        }
        self.forget(0);
        if self.flows.len() >= most {
            let idle = self.flows.values().filter(|member| !member.is_active());
            let mut debts: Vec<u64> = idle.map(|member| member.usage.debt(&self.virtual_time)).collect();
            debts.sort_unstable();
            self.forget(debts.get(debts.len() / 2).copied().unwrap_or(0));
        }
    }

    /// Forgets the idle flows that owe at most `debt`.
    fn forget(&mut self, debt: u64) {
        let virtual_time = &self.virtual_time;
        self.flows
            .retain(|_, member| member.is_active() || member.usage.debt(virtual_time) > debt);
    }
}

#[cfg(test)]
mod tests;
