//! Good responses (2xx and 3xx) and refusals (any other status), apart from each other, and the good ones that came in time. All
//! latencies are from the moment a request was due.

use crate::clock::{Nanos, Started};
use crate::latencies::{add, histogram};
use hdrhistogram::Histogram;

/// The results of one thread, or of all.
#[derive(Debug)]
pub(crate) struct Goodput {
    limit: Nanos,
    /// Good responses after at most `limit`.
    pub(crate) in_time: u64,
    pub(crate) good: Histogram<u64>,
    pub(crate) refused: Histogram<u64>,
}

impl Goodput {
    pub(crate) fn new(limit: Nanos) -> Goodput {
        Goodput {
            limit,
            in_time: 0,
            good: histogram(),
            refused: histogram(),
        }
    }

    pub(crate) fn answered(&mut self, started: Started, status: u16, now: Nanos) {
        let latency = now.saturating_sub(started.due);
        if !(200..400).contains(&status) {
            return self.refused.saturating_record(latency);
        }
        self.good.saturating_record(latency);
        self.in_time += u64::from(latency <= self.limit);
    }

    /// Adds the results of another thread.
    pub(crate) fn merge(ours: &mut Option<Goodput>, theirs: &Option<Goodput>) {
        if let Some(theirs) = theirs {
            let ours = ours.get_or_insert_with(|| Goodput::new(theirs.limit));
            ours.in_time += theirs.in_time;
            add(&mut ours.good, &theirs.good);
            add(&mut ours.refused, &theirs.refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn goodput(answers: &[(u16, Nanos)]) -> Goodput {
        let mut goodput = Goodput::new(10 * MS);
        for &(status, latency) in answers {
            let started = Started {
                due: MS,
                // A late start is part of the latency.
                sent: 5 * MS,
                counted: true,
            };
            goodput.answered(started, status, MS + latency);
        }
        goodput
    }

    #[test]
    fn good_responses_and_refusals_are_apart() {
        let goodput = goodput(&[(200, 9 * MS), (399, 10 * MS), (200, 11 * MS), (400, MS), (503, 2 * MS)]);
        assert_eq!((goodput.in_time, goodput.good.len(), goodput.refused.len()), (2, 3, 2));
        assert_eq!((goodput.good.max() / MS, goodput.refused.max() / MS), (11, 2));
    }

    #[test]
    fn threads_add_up() {
        let mut sum = None;
        Goodput::merge(&mut sum, &None);
        assert!(sum.is_none());
        for _ in 0..2 {
            Goodput::merge(&mut sum, &Some(goodput(&[(200, MS), (503, MS)])));
        }
        let sum = sum.expect("results");
        assert_eq!((sum.in_time, sum.good.len(), sum.refused.len()), (2, 2, 2));
    }
}
