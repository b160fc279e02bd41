//! Usage of a flow, and the share that is due to each flow: two numbers on one scale, in nanoseconds on a thread.
//!
//! * [`VirtualTime`]: virtual time, the share that a flow with a constant supply of jobs would have received since the start
//!   of the scale: the time of all running jobs, divided by the number of active flows. A new flow begins here.
//! * [`Usage`]: flow queue, the usage of one flow. Usage beyond the virtual time is a debt. A running job counts from
//!   its first moment, with at least the usual time of the flow's jobs, so that many jobs that begin at once count at
//!   once.

use crate::clock::Nanos;
use crate::cluster::ledger::Seen;
use std::time::Duration;

/// Highest debt, so that one endless request does not block its flow for as long as it took.
const MOST_DEBT: u64 = 10_000_000_000;

/// Fraction (1/`FORGIVEN`) by which a debt shrinks in each call of [`Usage::forgive`].
const FORGIVEN: u64 = 32;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct VirtualTime {
    time: u64,
    /// Time up to which the running jobs are counted.
    counted: Nanos,
    running: u64,
    /// Flows with something to run.
    active: u64,
}

impl VirtualTime {
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        let time = (now - self.counted).as_nanos() as u64;
        self.counted = self.counted.max(now);
        self.spend(time.saturating_mul(self.running));
    }

    /// Threads have spent `time` in total.
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

    pub(super) fn add_flow(&mut self) {
        self.active += 1;
    }

    pub(super) fn remove_flow(&mut self) {
        self.active = self.active.saturating_sub(1);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.active == 0
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Usage {
    used: u64,
    running: u64,
    /// Sum of the times at which the running jobs began. It may wrap; only differences count.
    began: u64,
    /// Expected total time of the running jobs.
    expected: u64,
    /// Usual time of one job.
    usual: u64,
    pub(super) seen: Seen,
}

/// A running job, to be passed to [`Usage::end`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) at: Nanos,
    expected: u64,
}

impl Usage {
    /// `seen`: current sums of the ledger, so that only later usage counts.
    pub(super) fn new(seen: Seen) -> Usage {
        Usage {
            seen,
            ..Usage::default()
        }
    }

    /// The flow has something to run again. It cannot have saved up its share from the time when it had nothing.
    pub(super) fn join(&mut self, virtual_time: &VirtualTime) {
        self.used = self.used.max(virtual_time.time());
    }

    /// Usage, including the running jobs.
    pub(super) fn used(&self, virtual_time: &VirtualTime, now: Nanos) -> u64 {
        let so_far = self.running.wrapping_mul(now.to_number()).wrapping_sub(self.began);
        // A job may have begun a moment after the caller read the clock.
        let so_far = if so_far > u64::MAX / 2 { 0 } else { so_far };
        let used = self.used.saturating_add(so_far.max(self.expected));
        used.min(virtual_time.time() + MOST_DEBT)
    }

    /// Usage after the flow has come back and has run one more job.
    pub(super) fn after_next(&self, virtual_time: &VirtualTime) -> u64 {
        self.used.max(virtual_time.time()).saturating_add(self.usual)
    }

    /// Usual time of one of its jobs.
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

    /// Ends a job. Returns its running time.
    pub(super) fn end(&mut self, begun: Begun, virtual_time: &VirtualTime, now: Nanos) -> u64 {
        let time = (now - begun.at).as_nanos() as u64;
        self.running = self.running.saturating_sub(1);
        self.began = self.began.wrapping_sub(begun.at.to_number());
        self.expected = self.expected.saturating_sub(begun.expected);
        self.usual = (self.usual * 3 + time) / 4;
        self.charge(time, virtual_time);
        time
    }

    pub(super) fn charge(&mut self, time: u64, virtual_time: &VirtualTime) {
        self.used = self.used.saturating_add(time).min(virtual_time.time() + MOST_DEBT);
    }

    pub(super) fn debt(&self, virtual_time: &VirtualTime) -> u64 {
        self.used.saturating_sub(virtual_time.time())
    }

    /// Called once a second: debts fade, so that a debt lasts a minute or two at most.
    pub(super) fn forgive(&mut self, virtual_time: &VirtualTime) {
        self.used -= self.debt(virtual_time).div_ceil(FORGIVEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Nanos {
        Nanos::START + Duration::from_millis(milliseconds)
    }

    fn virtual_time(active: u64) -> VirtualTime {
        VirtualTime {
            counted: at(0),
            active,
            ..VirtualTime::default()
        }
    }

    #[test]
    fn the_pace_is_the_time_of_all_threads_divided_by_those_who_want_some() {
        let mut virtual_time = virtual_time(4);
        virtual_time.begin();
        virtual_time.begin();
        virtual_time.advance(at(10));
        assert_eq!(virtual_time.time(), 5_000_000);
        virtual_time.remove_flow();
        virtual_time.remove_flow();
        virtual_time.end();
        virtual_time.advance(at(12));
        assert_eq!(virtual_time.time(), 6_000_000);
        virtual_time.advance(at(11));
        assert_eq!(virtual_time.time(), 6_000_000, "time does not go back");
    }

    #[test]
    fn jobs_count_while_they_run_and_as_usual_from_their_first_moment() {
        let (virtual_time, mut usage) = (virtual_time(1), Usage::default());
        let (one, other) = (usage.begin(at(0)), usage.begin(at(2)));
        assert_eq!(usage.used(&virtual_time, at(6)), 10_000_000);
        assert_eq!(usage.end(one, &virtual_time, at(8)), 8_000_000);
        usage.end(other, &virtual_time, at(10));
        assert_eq!(
            (usage.used(&virtual_time, at(10)), usage.is_running()),
            (16_000_000, false)
        );
        let next = usage.begin(at(20));
        assert_eq!(usage.used(&virtual_time, at(20)), 16_000_000 + usage.usual);
        usage.end(next, &virtual_time, at(21));
        assert_eq!(
            usage.used(&virtual_time, at(21)),
            17_000_000,
            "the real time, not the expected one"
        );
        assert_eq!(usage.expected, 0);
    }

    #[test]
    fn a_debt_has_a_limit_and_fades() {
        let (virtual_time, mut usage) = (virtual_time(1), Usage::default());
        let begun = usage.begin(at(0));
        assert_eq!(usage.used(&virtual_time, at(3_600_000)), MOST_DEBT);
        usage.end(begun, &virtual_time, at(3_600_000));
        assert_eq!(usage.debt(&virtual_time), MOST_DEBT);
        (0..120).for_each(|_| usage.forgive(&virtual_time));
        assert!(usage.debt(&virtual_time) < MOST_DEBT / 40);
        (0..1_000).for_each(|_| usage.forgive(&virtual_time));
        assert_eq!(usage.debt(&virtual_time), 0);
    }

    #[test]
    fn a_moment_before_a_job_began_counts_as_its_beginning() {
        let (virtual_time, mut usage) = (virtual_time(1), Usage::default());
        usage.begin(at(5));
        assert_eq!(usage.used(&virtual_time, at(4)), 0);
    }
}
