//! What a party has used, and what is due to each: two numbers on one scale, nanoseconds on a thread.
//!
//! * [`Pace`]: what a party that always had something to run would have got since the start of the scale: the time of
//!   all running jobs, divided by the number of parties that have any. A party that comes anew begins there.
//! * [`Account`]: what one party has used. Beyond the pace it is a debt. A running job counts while it runs, and from the
//!   first moment with as much as the party's jobs usually take, so that many that begin at once count at once.

use crate::clock::Nanos;
use crate::cluster::ledger::Seen;
use std::time::Duration;

/// The highest debt, so that one endless request does not shut its party out for as long as it took.
const MOST_DEBT: u64 = 10_000_000_000;

/// By what part of itself a debt shrinks in each call of [`Account::forgive`].
const FORGIVEN: u64 = 32;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Pace {
    time: u64,
    /// Until when the running jobs are counted.
    counted: Nanos,
    running: u64,
    /// Parties with something to run.
    active: u64,
}

impl Pace {
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        let time = (now - self.counted).as_nanos() as u64;
        self.counted = self.counted.max(now);
        self.spend(time.saturating_mul(self.running));
    }

    /// Threads have spent `time` together.
    pub(super) fn spend(&mut self, time: u64) {
        self.time += time / self.active.max(1);
    }

    /// Jobs that run.
    pub(super) fn running(&self) -> usize {
        self.running as usize
    }

    pub(super) fn begin(&mut self) {
        self.running += 1;
    }

    pub(super) fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    pub(super) fn add_party(&mut self) {
        self.active += 1;
    }

    pub(super) fn remove_party(&mut self) {
        self.active = self.active.saturating_sub(1);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.active == 0
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Account {
    used: u64,
    running: u64,
    /// The sum of the moments at which the running jobs began. It may wrap; only differences count.
    began: u64,
    /// What the running jobs are expected to take together.
    expected: u64,
    /// What one job usually takes.
    usual: u64,
    pub(super) seen: Seen,
}

/// A running job, to be handed to [`Account::end`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) at: Nanos,
    expected: u64,
}

impl Account {
    /// `seen`: the sums of the ledger now, so that only what follows counts.
    pub(super) fn new(seen: Seen) -> Account {
        Account {
            seen,
            ..Account::default()
        }
    }

    /// The party has something to run again: it cannot have saved up what was due to it while it had nothing.
    pub(super) fn join(&mut self, pace: &Pace) {
        self.used = self.used.max(pace.time());
    }

    /// What it has used, with its running jobs.
    pub(super) fn used(&self, pace: &Pace, now: Nanos) -> u64 {
        let so_far = self.running.wrapping_mul(now.to_number()).wrapping_sub(self.began);
        // A job may have begun a moment after the caller has read the clock.
        let so_far = if so_far > u64::MAX / 2 { 0 } else { so_far };
        let used = self.used.saturating_add(so_far.max(self.expected));
        used.min(pace.time() + MOST_DEBT)
    }

    /// What it will have used when it comes back and has run one more job.
    pub(super) fn after_next(&self, pace: &Pace) -> u64 {
        self.used.max(pace.time()).saturating_add(self.usual)
    }

    /// What one of its jobs takes.
    pub(super) fn usual(&self) -> Duration {
        Duration::from_nanos(self.usual)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running > 0
    }

    pub(super) fn begin(&mut self, now: Nanos) -> Begun {
        self.running += 1;
        self.began = self.began.wrapping_add(now.to_number());
        self.expected += self.usual;
        Begun {
            at: now,
            expected: self.usual,
        }
    }

    /// Returns how long the job has run.
    pub(super) fn end(&mut self, begun: Begun, pace: &Pace, now: Nanos) -> u64 {
        let time = (now - begun.at).as_nanos() as u64;
        self.running = self.running.saturating_sub(1);
        self.began = self.began.wrapping_sub(begun.at.to_number());
        self.expected = self.expected.saturating_sub(begun.expected);
        self.usual = (self.usual * 3 + time) / 4;
        self.charge(time, pace);
        time
    }

    pub(super) fn charge(&mut self, time: u64, pace: &Pace) {
        self.used = self.used.saturating_add(time).min(pace.time() + MOST_DEBT);
    }

    pub(super) fn debt(&self, pace: &Pace) -> u64 {
        self.used.saturating_sub(pace.time())
    }

    /// To be called once a second: debts fade, so that they are worth a minute or two of it at most.
    pub(super) fn forgive(&mut self, pace: &Pace) {
        self.used -= self.debt(pace).div_ceil(FORGIVEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Nanos {
        Nanos::START + Duration::from_millis(milliseconds)
    }

    fn pace(active: u64) -> Pace {
        Pace {
            counted: at(0),
            active,
            ..Pace::default()
        }
    }

    #[test]
    fn the_pace_is_the_time_of_all_threads_divided_by_those_who_want_some() {
        let mut pace = pace(4);
        pace.begin();
        pace.begin();
        pace.advance(at(10));
        assert_eq!(pace.time(), 5_000_000);
        pace.remove_party();
        pace.remove_party();
        pace.end();
        pace.advance(at(12));
        assert_eq!(pace.time(), 6_000_000);
        pace.advance(at(11));
        assert_eq!(pace.time(), 6_000_000, "time does not go back");
    }

    #[test]
    fn jobs_count_while_they_run_and_as_usual_from_their_first_moment() {
        let (pace, mut account) = (pace(1), Account::default());
        let (one, other) = (account.begin(at(0)), account.begin(at(2)));
        assert_eq!(account.used(&pace, at(6)), 10_000_000);
        assert_eq!(account.end(one, &pace, at(8)), 8_000_000);
        account.end(other, &pace, at(10));
        assert_eq!((account.used(&pace, at(10)), account.is_running()), (16_000_000, false));
        let next = account.begin(at(20));
        assert_eq!(account.used(&pace, at(20)), 16_000_000 + account.usual);
        account.end(next, &pace, at(21));
        assert_eq!(
            account.used(&pace, at(21)),
            17_000_000,
            "what it took, not what was expected"
        );
        assert_eq!(account.expected, 0);
    }

    #[test]
    fn a_debt_has_a_limit_and_fades() {
        let (pace, mut account) = (pace(1), Account::default());
        let begun = account.begin(at(0));
        assert_eq!(account.used(&pace, at(3_600_000)), MOST_DEBT);
        account.end(begun, &pace, at(3_600_000));
        assert_eq!(account.debt(&pace), MOST_DEBT);
        (0..120).for_each(|_| account.forgive(&pace));
        assert!(account.debt(&pace) < MOST_DEBT / 40);
        (0..1_000).for_each(|_| account.forgive(&pace));
        assert_eq!(account.debt(&pace), 0);
    }

    #[test]
    fn a_moment_before_a_job_began_counts_as_its_beginning() {
        let (pace, mut account) = (pace(1), Account::default());
        account.begin(at(5));
        assert_eq!(account.used(&pace, at(4)), 0);
    }
}
