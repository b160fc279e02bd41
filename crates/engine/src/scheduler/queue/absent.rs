//! Flows that had a job a moment ago and may have another soon: many programs send the next request as soon as they
//! have a response. Flows that have used more leave threads free for them.

use crate::clock::Nanos;
use crate::config::fair_by::Flow;
use std::collections::VecDeque;
use std::time::Duration;

/// Time for which a thread is kept free for a flow that has left.
const ABSENCE: Duration = Duration::from_millis(20);

/// Longest time for which one thread is kept free for all flows that have left; less if the job that would take it
/// usually takes less.
const LONG_ABSENCE: Duration = Duration::from_secs(10);

/// Most departures that are remembered.
const MOST: usize = 64;

/// Flows that had no more jobs, with the time; includes flows that have come back.
#[derive(Debug, Default)]
pub(super) struct Absent(VecDeque<(Nanos, Flow)>);

/// State of a flow, compared with the flow that would be next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has not used less.
    Even,
    /// It has used less, and has been back since it left.
    Back,
    /// It has used less, and is still away.
    Away,
}

impl Absent {
    /// Notes that a flow has left.
    pub(super) fn note(&mut self, flow: Flow, now: Nanos) {
        self.0.push_back((now, flow));
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// Returns true if all `free` threads are to be kept free: one for each flow that left a moment ago, and one for
    /// all flows that left within the usual time of a job (`usual`). `presence`: state of a flow that left at that
    /// time.
    pub(super) fn want(
        &self,
        free: usize,
        usual: Duration,
        now: Nanos,
        presence: impl Fn(Flow, Nanos) -> Presence,
    ) -> bool {
        let lately = usual.clamp(ABSENCE, LONG_ABSENCE);
        let departed = self.0.iter().rev().take_while(|(left, _)| now - *left < lately);
        let mut wanted = 0;
        for (left, flow) in departed {
            let is_expected = match presence(*flow, *left) {
                Presence::Even => continue,
                Presence::Back => false,
                Presence::Away => now - *left < ABSENCE,
            };
            wanted += usize::from(is_expected || wanted == 0);
            if wanted >= free {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Nanos {
        Nanos::START + Duration::from_millis(milliseconds)
    }

    fn absent(moments: &[u64]) -> Absent {
        let mut absent = Absent::default();
        let flows = moments.iter().zip(0..);
        flows.for_each(|(moment, flow)| absent.note(Flow(flow), at(*moment)));
        absent
    }

    #[test]
    fn each_of_those_who_left_a_moment_ago_wants_a_thread() {
        let absent = absent(&[0, 1, 2]);
        let wanted = |now, presence| {
            (1..9)
                .take_while(|free| absent.want(*free, ABSENCE, at(now), |_, _| presence))
                .count()
        };
        assert_eq!(wanted(5, Presence::Away), 3);
        assert_eq!(wanted(21, Presence::Away), 1);
        assert_eq!(wanted(22, Presence::Away), 0);
        assert_eq!(wanted(5, Presence::Back), 1, "one thread for all of them");
        assert_eq!(wanted(5, Presence::Even), 0);
    }

    #[test]
    fn one_is_kept_free_for_as_long_as_a_job_would_take_it() {
        let absent = absent(&[0, 1, 2]);
        let is_wanted = |free, usual, now| {
            let usual = Duration::from_millis(usual);
            absent.want(free, usual, at(now), |_, _| Presence::Away)
        };
        assert!(is_wanted(1, 3_000, 3_000) && !is_wanted(1, 3_000, 3_003));
        assert!(!is_wanted(2, 3_000, 100));
        assert!(is_wanted(1, 3_600_000, 10_000) && !is_wanted(1, 3_600_000, 10_003));
    }

    #[test]
    fn a_crowd_that_leaves_is_not_remembered_for_ever() {
        let absent = absent(&[0; 1_000]);
        assert_eq!(absent.0.len(), MOST);
    }
}
