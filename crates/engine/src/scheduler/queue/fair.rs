//! Turns by party: deficit round robin, where what a turn costs is known only afterwards.
//!
//! In each round a party may use up [`QUANTUM`] of the time of threads; within the round parties alternate, one job at a
//! time, in the order in which they came. Whoever has used more sits out as many rounds. So nothing is gained by many
//! connections, by pipelining or by long requests: over any time, parties that always have something to run get the same
//! time, up to a quantum and what runs at a moment. The next round begins when nobody is left in this one.
//!
//! The rounds are numbered: a party is in the round `used / QUANTUM`, and new ones come into that of the pace
//! (`account.rs`). Jobs without a party (tasks, messages for the process) are in that round too, each for itself.
//!
//! A job that has begun is not interrupted. So a party that has used more than was due to it does not take every thread:
//! it leaves one to each of those who were here a moment ago, and one to all who were here lately (`absent.rs`).
//!
//! What is remembered: parties with something to run, and [`MOST_IDLE`] that have run something lately.

use super::absent::{Absent, Standing};
use super::account::{Account, Begun, Pace};
use super::Queued;
use crate::clock::Nanos;
use crate::cluster::ledger::Ledger;
use crate::config::fair_by::Party;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

/// What a party may use in a round, in nanoseconds.
const QUANTUM: u64 = 1_000_000;

/// Parties with nothing to run that are remembered for what they have used.
const MOST_IDLE: usize = 4_096;

/// How often debts fade, and parties without one are forgotten.
const SWEEP: Duration = Duration::from_secs(1);

/// How many parties are looked at for a job that may leave.
const DEPARTING: usize = 16;

/// How many parties that leave their threads to others are passed over.
const MOST_HELD: usize = 16;

/// See the head of this file.
pub(super) struct FairLine<J> {
    parties: HashMap<Party, Member<J>>,
    /// Whose turn it is when.
    turns: BTreeMap<Place, Next<J>>,
    pace: Pace,
    length: usize,
    /// Jobs without a party.
    own: usize,
    /// Numbers places in order; the middle of the numbers at first, so that some may be put before all others.
    last: u64,
    first: u64,
    swept: Nanos,
    /// Most jobs that run at a time.
    threads: usize,
    absent: Absent,
    ledger: Option<&'static Ledger>,
}

/// The round, and the number within it.
type Place = (u64, u64);

enum Next<J> {
    Of(Party),
    Own(J),
}

struct Member<J> {
    account: Account,
    /// With the moment at which each came.
    waiting: VecDeque<(Nanos, J)>,
    /// Its place among the turns, while something waits.
    place: Place,
    /// When its last job ended, if nothing of it waits.
    left: Nanos,
}

impl<J> Member<J> {
    fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.account.is_running()
    }
}

/// A job that was taken out and runs: whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge(Option<(Party, Begun)>);

impl<J: Queued> FairLine<J> {
    /// `threads`: most jobs that run at a time. `ledger`: that of all workers, if there are any.
    pub(super) fn new(threads: usize, ledger: Option<&'static Ledger>) -> FairLine<J> {
        FairLine {
            parties: HashMap::new(),
            turns: BTreeMap::new(),
            pace: Pace::default(),
            length: 0,
            own: 0,
            last: u64::MAX / 2,
            first: u64::MAX / 2,
            swept: Nanos::default(),
            threads,
            absent: Absent::default(),
            ledger,
        }
    }

    /// Jobs that wait.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Parties with jobs that wait.
    pub(super) fn waiting_parties(&self) -> usize {
        self.turns.len() - self.own
    }

    pub(super) fn push(&mut self, job: J, now: Nanos) {
        self.pace.advance(now);
        self.length += 1;
        let Some(party) = job.party() else {
            let place = (self.pace.time() / QUANTUM, self.number());
            self.turns.insert(place, Next::Own(job));
            self.own += 1;
            return;
        };
        let waiting = &mut self.join(party).waiting;
        waiting.push_back((now, job));
        if waiting.len() == 1 {
            let number = self.number();
            self.line_up(party, number, now);
        }
    }

    /// Puts a job back before all others of its party, which has the first turn of its round again.
    pub(super) fn put_back(&mut self, job: J, now: Nanos) {
        let Some(party) = job.party() else {
            return self.push(job, now);
        };
        self.length += 1;
        let member = self.join(party);
        // It has waited long enough to leave, and may try again.
        member.waiting.push_front((Nanos::default(), job));
        let place = member.place;
        self.turns.remove(&place);
        self.first -= 1;
        self.line_up(party, self.first, now);
    }

    pub(super) fn pop(&mut self, now: Nanos) -> Option<(J, Charge)> {
        let place = self.next(now)?;
        let next = self.turns.remove(&place)?;
        self.length -= 1;
        self.pace.begin();
        let party = match next {
            Next::Own(job) => {
                self.own -= 1;
                return Some((job, Charge(None)));
            }
            Next::Of(party) => party,
        };
        let member = self.parties.get_mut(&party)?;
        let (_, job) = member.waiting.pop_front()?;
        let begun = member.account.begin(now);
        if !member.waiting.is_empty() {
            let number = self.number();
            self.line_up(party, number, now);
        }
        Some((job, Charge(Some((party, begun)))))
    }

    /// Whose turn it is; `None` if nothing waits but what leaves its thread to others.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Place> {
        self.pace.advance(now);
        if now - self.swept >= SWEEP {
            self.sweep(now);
        }
        let mut passed = (0, 0);
        let mut held = 0;
        while held < MOST_HELD {
            let (place, next) = self.turns.range((Excluded(passed), Unbounded)).next()?;
            let (place, Next::Of(party)) = (*place, next) else {
                return Some(*place);
            };
            let party = *party;
            self.charge_elsewhere(party);
            let account = &self.parties.get(&party)?.account;
            if account.used(&self.pace, now) / QUANTUM > place.0 {
                // It has used more since it got its place.
                self.turns.remove(&place);
                let number = self.number();
                self.line_up(party, number, now);
            } else if self.is_held_back(party, now) {
                (passed, held) = (place, held + 1);
            } else {
                return Some(place);
            }
        }
        None
    }

    /// Whether a party leaves the free threads to others: those who are about to come back, and will still have used less
    /// than this one when they have run their next job.
    fn is_held_back(&self, party: Party, now: Nanos) -> bool {
        let free = self.threads.saturating_sub(self.pace.running());
        let Some(member) = self.parties.get(&party) else {
            return false;
        };
        let used = member.account.used(&self.pace, now);
        if free >= self.threads || used <= self.pace.time() + QUANTUM {
            return false;
        }
        let standing = |other: Party, left: Nanos| {
            let member = self.parties.get(&other);
            let next = member.map_or(self.pace.time(), |member| member.account.after_next(&self.pace));
            match member {
                _ if other == party || next + QUANTUM >= used => Standing::Even,
                Some(member) if member.left == left && !member.is_active() => Standing::Away,
                _ => Standing::Back,
            }
        };
        self.absent.want(free, member.account.usual(), now, standing)
    }

    /// A job that never was in this line runs.
    pub(super) fn begin(&mut self, job: &J, now: Nanos) -> Charge {
        self.pace.advance(now);
        self.pace.begin();
        let party = job.party();
        Charge(party.map(|party| (party, self.join(party).account.begin(now))))
    }

    /// The job has ended.
    pub(super) fn end(&mut self, charge: Charge, now: Nanos) {
        self.pace.advance(now);
        self.pace.end();
        if let Charge(Some((party, begun))) = charge {
            if let Some(member) = self.parties.get_mut(&party) {
                let time = member.account.end(begun, &self.pace, now);
                if let Some(ledger) = self.ledger {
                    ledger.add(party, time, &mut member.account.seen);
                }
                if !member.is_active() {
                    self.pace.remove_party();
                    member.left = now;
                    self.absent.note(party, now);
                }
            }
        }
        if self.pace.is_idle() {
            // Nobody waits, so nobody owes anything.
            self.parties.clear();
        }
    }

    /// Takes the job that may leave, has waited since before `time`, and has the earliest turn, after skipping
    /// `skipped` of them. Only the first job of each of the first parties is looked at.
    pub(super) fn pop_waiting_since(&mut self, time: Nanos, skipped: usize) -> Option<J> {
        let may_leave = |(place, next): (&Place, &Next<J>)| {
            let Next::Of(party) = next else { return None };
            let (came, job) = self.parties.get(party)?.waiting.front()?;
            (*came <= time && job.arrived().is_some()).then_some((*place, *party))
        };
        let mut leaving = self.turns.iter().take(DEPARTING).filter_map(may_leave);
        let (place, party) = leaving.nth(skipped)?;
        self.turns.remove(&place);
        let member = self.parties.get_mut(&party)?;
        let (_, job) = member.waiting.pop_front()?;
        self.length -= 1;
        if !member.waiting.is_empty() {
            self.turns.insert(place, Next::Of(party));
        } else if !member.account.is_running() {
            self.pace.remove_party();
        }
        Some(job)
    }

    /// Takes all jobs, none of which will run.
    pub(super) fn take_all(&mut self) -> Vec<J> {
        (self.length, self.own) = (0, 0);
        let mut jobs = Vec::new();
        for next in std::mem::take(&mut self.turns).into_values() {
            match next {
                Next::Own(job) => jobs.push(job),
                Next::Of(party) => {
                    let Some(member) = self.parties.get_mut(&party) else {
                        continue;
                    };
                    jobs.extend(member.waiting.drain(..).map(|(_, job)| job));
                    if !member.is_active() {
                        self.pace.remove_party();
                    }
                }
            }
        }
        jobs
    }

    /// Returns the capacity that a burst has left.
    pub(super) fn shrink(&mut self) {
        self.parties.shrink_to(MOST_IDLE);
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The party, which is about to have something to run.
    fn join(&mut self, party: Party) -> &mut Member<J> {
        self.charge_elsewhere(party);
        self.make_room();
        let member = self.parties.entry(party).or_insert_with(|| Member {
            account: Account::new(self.ledger.map(|ledger| ledger.look(party)).unwrap_or_default()),
            waiting: VecDeque::new(),
            place: (0, 0),
            left: Nanos::default(),
        });
        if !member.is_active() {
            member.account.join(&self.pace);
            self.pace.add_party();
        }
        member
    }

    /// Gives a party its place in the round that it is in.
    fn line_up(&mut self, party: Party, number: u64, now: Nanos) {
        let Some(member) = self.parties.get_mut(&party) else {
            return;
        };
        member.place = (member.account.used(&self.pace, now) / QUANTUM, number);
        self.turns.insert(member.place, Next::Of(party));
    }

    /// Charges a party with what it has used in other workers.
    fn charge_elsewhere(&mut self, party: Party) {
        let (Some(ledger), Some(member)) = (self.ledger, self.parties.get_mut(&party)) else {
            return;
        };
        let time = ledger.elsewhere(party, &mut member.account.seen);
        if time > 0 && member.is_active() {
            self.pace.spend(time);
        }
        member.account.charge(time, &self.pace);
    }

    /// Lets debts fade, and forgets parties that have none.
    fn sweep(&mut self, now: Nanos) {
        self.swept = now;
        for (party, member) in &mut self.parties {
            member.account.forgive(&self.pace);
            if member.waiting.is_empty() {
                continue;
            }
            let place = (member.account.used(&self.pace, now) / QUANTUM, member.place.1);
            if place < member.place {
                self.turns.remove(&member.place);
                self.turns.insert(place, Next::Of(*party));
                member.place = place;
            }
        }
        self.forget(0);
    }

    /// Makes room for one more party.
    fn make_room(&mut self) {
        let most = 2 * self.turns.len() + MOST_IDLE;
        if self.parties.len() < most {
            return;
        }
        self.forget(0);
        if self.parties.len() >= most {
            let idle = self.parties.values().filter(|member| !member.is_active());
            let mut debts: Vec<u64> = idle.map(|member| member.account.debt(&self.pace)).collect();
            debts.sort_unstable();
            self.forget(debts.get(debts.len() / 2).copied().unwrap_or(0));
        }
    }

    /// Forgets the idle parties that owe at most `debt`.
    fn forget(&mut self, debt: u64) {
        let pace = &self.pace;
        self.parties
            .retain(|_, member| member.is_active() || member.account.debt(pace) > debt);
    }
}

#[cfg(test)]
mod tests;
