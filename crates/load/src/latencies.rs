//! Latencies of the responses, in two forms.
//!
//! **raw**: from sending a request (including opening the connection, if needed) to the last byte of its response.
//!
//! **corrected** for coordinated omission: the latencies of clients that do not wait for the previous response.
//! - Open loop: from the moment the request was due.
//! - Closed loop: HdrHistogram's correction. A connection that waited for `v` while responses were expected every `e`
//!   would have sent more requests in that time; they are added at `v - e`, `v - 2e`, … The expected interval `e` is
//!   the mean: connections × pipeline × time / responses, that is, the time per request if every connection had been
//!   treated alike. The median is unsuitable: if a server serves half of its clients first, the median shows only the
//!   favoured half; and if fast and slow responses are both normal, every slow one would count as a stall. The added
//!   values lie below the stall that caused them, so the extreme percentiles may even come out a little lower.
//! - Requests without a response (timed out, or still waiting at the end for longer than `e`) count with the time that
//!   they have waited, which is a lower bound.

use crate::clock::{Nanos, Started};
use crate::fairness::Served;
use hdrhistogram::Histogram;

/// The latencies of one thread, or of all.
#[derive(Debug)]
pub(crate) struct Latencies {
    raw: Histogram<u64>,
    /// Measured from the due time, in the open loop only.
    from_due: Option<Histogram<u64>>,
    /// Waiting times of requests that never got a response.
    waited: Histogram<u64>,
}

/// Latencies up to an hour, with three significant digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are constants that hdrhistogram accepts")
}

/// Adds the measurements of another thread.
pub(crate) fn add(to: &mut Histogram<u64>, other: &Histogram<u64>) {
    to.add(other).expect("all histograms have the same bounds");
}

/// The mean time per request if every connection had been treated alike; see the top of this file.
pub(crate) fn expected_interval(connections: &[Served], pipeline: usize, elapsed: Nanos) -> Option<Nanos> {
    let slots = connections.iter().filter(|served| served.asked > 0).count() * pipeline;
    let answered: u64 = connections.iter().map(|served| served.answered).sum();
    let nanos = u128::from(elapsed) * slots as u128 / u128::from(answered).max(1);
    (answered > 0).then(|| u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Latencies {
    pub(crate) fn new(open_loop: bool) -> Latencies {
        Latencies {
            raw: histogram(),
            from_due: open_loop.then(histogram),
            waited: histogram(),
        }
    }

    /// Adds the measurements of another thread.
    pub(crate) fn merge(&mut self, other: &Latencies) {
        add(&mut self.raw, &other.raw);
        if let (Some(ours), Some(theirs)) = (&mut self.from_due, &other.from_due) {
            add(ours, theirs);
        }
        add(&mut self.waited, &other.waited);
    }

    pub(crate) fn answered(&mut self, started: Started, now: Nanos) {
        self.raw.saturating_record(now.saturating_sub(started.sent));
        if let Some(from_due) = &mut self.from_due {
            from_due.saturating_record(now.saturating_sub(started.due));
        }
    }

    /// A request got no response; returns how long it had waited.
    pub(crate) fn unanswered(&mut self, due: Nanos, now: Nanos) -> Nanos {
        let waited = now.saturating_sub(due);
        self.waited.saturating_record(waited);
        waited
    }

    pub(crate) fn raw(&self) -> &Histogram<u64> {
        &self.raw
    }

    /// See the top of this file.
    pub(crate) fn corrected(&self, expected_interval: Option<Nanos>) -> Histogram<u64> {
        let interval = expected_interval.unwrap_or(0);
        let mut late = histogram();
        for waited in self
            .waited
            .iter_recorded()
            .filter(|waited| waited.value_iterated_to() > interval)
        {
            late.saturating_record_n(waited.value_iterated_to(), waited.count_at_value());
        }
        match &self.from_due {
            Some(from_due) => {
                add(&mut late, from_due);
                late
            }
            None => {
                let mut corrected = self.raw.clone_correct(interval);
                add(&mut corrected, &late.clone_correct(interval));
                corrected
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn latencies(answers: &[Nanos]) -> Latencies {
        let mut latencies = Latencies::new(false);
        for &latency in answers {
            latencies.answered(started(0), latency);
        }
        latencies
    }

    fn started(at: Nanos) -> Started {
        Started {
            due: at,
            sent: at,
            counted: true,
        }
    }

    fn served(asked: u64, answered: u64) -> Served {
        Served {
            asked,
            answered,
            failed: 0,
        }
    }

    #[test]
    fn a_stall_shows_in_the_corrected_column() {
        let mut answers = vec![MS; 99];
        answers.push(100 * MS);
        let latencies = latencies(&answers);
        let expected = expected_interval(&[served(100, 100)], 1, 199 * MS);
        assert_eq!(expected, Some(1_990_000));
        assert!(latencies.raw().value_at_quantile(0.9) < 2 * MS);
        assert!(latencies.corrected(expected).value_at_quantile(0.9) > 50 * MS);
    }

    #[test]
    fn an_even_run_needs_no_correction() {
        let latencies = latencies(&[MS; 200]);
        let expected = expected_interval(&[served(100, 100), served(101, 100)], 1, 100 * MS);
        assert_eq!(latencies.corrected(expected).len(), latencies.raw().len());
    }

    #[test]
    fn a_connection_that_asked_for_nothing_expects_nothing() {
        assert_eq!(
            expected_interval(&[served(4, 4), served(0, 0)], 2, 100 * MS),
            Some(50 * MS)
        );
        assert_eq!(expected_interval(&[served(4, 0)], 1, MS), None);
    }

    #[test]
    fn a_request_without_answer_counts_once_it_has_waited_longer_than_expected() {
        let mut latencies = latencies(&[MS; 10]);
        latencies.unanswered(0, MS / 2);
        assert_eq!(latencies.corrected(Some(MS)).len(), 10, "still young");
        latencies.unanswered(0, 20 * MS);
        let corrected = latencies.corrected(Some(MS));
        assert_eq!(corrected.len(), 30);
        assert_eq!(corrected.max() / MS, 20);
    }

    #[test]
    fn the_open_loop_counts_from_the_moment_a_request_was_due() {
        let mut latencies = Latencies::new(true);
        latencies.answered(
            Started {
                due: 0,
                sent: 90 * MS,
                counted: true,
            },
            100 * MS,
        );
        assert_eq!(latencies.raw().max() / MS, 10);
        assert_eq!(latencies.corrected(None).max() / MS, 100);
    }
}
