//! The end of an idle server.

use crate::machine::Moment;
use fairlead_engine::Stats;
use std::time::Duration;

/// The longest time between two checks.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Notices that a server has been idle for the time of the option idle_timeout. It checks the statistics from time to
/// time, so a request costs nothing. Time in which the server could not run does not count, as in every [`Moment`].
#[derive(Debug)]
pub struct Idleness {
    time: Duration,
    done: Option<u64>,
    since: Moment,
}

impl Idleness {
    /// `time`: idle_timeout.
    pub fn new(time: Duration, now: Moment) -> Idleness {
        Idleness {
            time,
            done: None,
            since: now,
        }
    }

    /// Time until the next check.
    pub fn pause(&self) -> Duration {
        (self.time / 4).min(LONGEST_PAUSE)
    }

    /// Checks the statistics of all workers, and returns true if the time is over.
    pub fn is_over(&mut self, now: Moment, workers: &[Stats]) -> bool {
        let done = Some(workers.iter().map(done).fold(0, u64::wrapping_add));
        if done != self.done || workers.iter().any(is_busy) {
            self.since = now;
        }
        self.done = done;
        now.saturating_sub(self.since) >= self.time
    }
}

/// Number of all actions of clients and of the application.
fn done(stats: &Stats) -> u64 {
    stats
        .requests
        .wrapping_add(stats.refused_requests)
        .wrapping_add(stats.events)
}

/// An open WebSocket counts, an idle connection does not.
fn is_busy(stats: &Stats) -> bool {
    stats.queued > 0 || stats.busy_threads > 0 || stats.clients > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idleness of ten seconds after its first check.
    fn begun() -> (Idleness, [Stats; 2]) {
        let quiet = Stats {
            requests: 7,
            ..Stats::default()
        };
        let mut idleness = Idleness::new(at(10.0), at(0.0));
        assert!(!idleness.is_over(at(0.0), &[quiet, quiet]));
        (idleness, [quiet, quiet])
    }

    fn at(seconds: f64) -> Moment {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn it_is_over_when_nothing_has_changed_for_the_time() {
        let (mut idleness, workers) = begun();
        assert!(!idleness.is_over(at(9.9), &workers));
        assert!(idleness.is_over(at(10.0), &workers));
    }

    #[test]
    fn everything_that_is_done_begins_the_time_anew() {
        let (mut idleness, mut workers) = begun();
        let counters: [fn(&mut Stats) -> &mut u64; 3] = [
            |stats| &mut stats.requests,
            |stats| &mut stats.refused_requests,
            |stats| &mut stats.events,
        ];
        for (index, counter) in counters.into_iter().enumerate() {
            *counter(&mut workers[1]) += 1;
            let before = index as f64 * 10.0;
            assert!(!idleness.is_over(at(before + 9.0), &workers));
            assert!(!idleness.is_over(at(before + 18.0), &workers));
        }
        assert!(idleness.is_over(at(39.0), &workers));
    }

    #[test]
    fn as_long_as_there_is_something_to_do_it_is_not_over() {
        let gauges: [fn(&mut Stats) -> &mut i64; 3] = [
            |stats| &mut stats.queued,
            |stats| &mut stats.busy_threads,
            |stats| &mut stats.clients,
        ];
        for gauge in gauges {
            let (mut idleness, mut workers) = begun();
            *gauge(&mut workers[0]) = 1;
            assert!(!idleness.is_over(at(1000.0), &workers));
            *gauge(&mut workers[0]) = 0;
            assert!(!idleness.is_over(at(1009.0), &workers));
            assert!(idleness.is_over(at(1010.0), &workers));
        }
    }

    #[test]
    fn it_looks_often_enough() {
        assert_eq!(begun().0.pause(), at(1.0));
        assert_eq!(Idleness::new(at(0.2), at(0.0)).pause(), at(0.05));
    }
}
