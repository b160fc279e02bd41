//! What was measured: counts, latencies, and what they say about fairness.
//!
//! Latencies are kept twice.
//!
//! **raw**: from sending a request (opening the connection included, where that was needed) to the last byte of its answer.
//!
//! **corrected** for coordinated omission: what clients would have seen that do not wait politely.
//! - Open loop: from the moment the request was due.
//! - Closed loop: HdrHistogram's correction. A connection that waited for `v` while answers were to be expected every
//!   `e` would have sent further requests meanwhile; they are added at `v - e`, `v - 2e`, … The expected interval `e` is
//!   the mean: connections × pipeline × time / answers, that is, the time per request if every connection
//!   had been treated alike. The median would not do: where a server serves half of its clients first, the
//!   median is what the favoured half sees; and where fast and slow answers are both normal, it would call every slow one a stall.
//!   What is added lies below the stall that caused it, so the extreme percentiles may even come out a little lower.
//! - Requests that never got an answer (timed out, or still waiting at the end for longer than `e`) count with the time
//!   they had waited, which is the least they can have taken.

use crate::pacing::{Nanos, Started};
use hdrhistogram::Histogram;

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Connect,
    Read,
    Write,
    Timeout,
    Closed,
    Malformed,
}

impl Failure {
    pub(crate) const ALL: [Failure; 6] = [
        Failure::Connect,
        Failure::Read,
        Failure::Write,
        Failure::Timeout,
        Failure::Closed,
        Failure::Malformed,
    ];

    /// The key in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Failure::Connect => "connect",
            Failure::Read => "read",
            Failure::Write => "write",
            Failure::Timeout => "timeout",
            Failure::Closed => "closed",
            Failure::Malformed => "malformed",
        }
    }

    /// What a person reads.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Failure::Connect => "could not connect",
            Failure::Read => "read failed",
            Failure::Write => "write failed",
            Failure::Timeout => "timed out",
            Failure::Closed => "closed before the answer was complete",
            Failure::Malformed => "not an HTTP answer",
        }
    }
}

/// What one connection got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Requests it wanted to send.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
}

/// The measurements of one thread, or of all.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) connections: Vec<Served>,
    /// Answers by first digit of their status, from 1 to 5.
    pub(crate) classes: [u64; 5],
    pub(crate) failures: [u64; Failure::ALL.len()],
    pub(crate) bytes: u64,
    /// Connections opened.
    pub(crate) opened: u64,
    /// Requests sent, or begun to be sent, that had no answer when the run ended.
    pub(crate) unanswered: u64,
    /// Requests that were due, or left of the number asked for, and not sent when the run ended.
    pub(crate) unsent: u64,
    /// How long the oldest of these two had been due when the run ended.
    pub(crate) longest_wait: Nanos,
    raw: Histogram<u64>,
    /// From the moment they were due, in the open loop only.
    from_due: Option<Histogram<u64>>,
    /// How long requests had waited that never got an answer.
    waited: Histogram<u64>,
}

/// Latencies up to an hour, to three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are constants that hdrhistogram accepts")
}

fn add(to: &mut Histogram<u64>, other: &Histogram<u64>) {
    to.add(other).expect("all histograms have the same bounds");
}

impl Tally {
    pub(crate) fn new(connections: usize, open_loop: bool) -> Tally {
        Tally {
            connections: vec![Served::default(); connections],
            classes: [0; 5],
            failures: [0; Failure::ALL.len()],
            bytes: 0,
            opened: 0,
            unanswered: 0,
            unsent: 0,
            longest_wait: 0,
            raw: histogram(),
            from_due: open_loop.then(histogram),
            waited: histogram(),
        }
    }

    /// Adds what another thread measured; its connections follow ours.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.connections.extend_from_slice(&other.connections);
        self.classes
            .iter_mut()
            .zip(other.classes)
            .for_each(|(ours, theirs)| *ours += theirs);
        self.failures
            .iter_mut()
            .zip(other.failures)
            .for_each(|(ours, theirs)| *ours += theirs);
        self.bytes += other.bytes;
        self.opened += other.opened;
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        add(&mut self.raw, &other.raw);
        if let (Some(ours), Some(theirs)) = (&mut self.from_due, &other.from_due) {
            add(ours, theirs);
        }
        add(&mut self.waited, &other.waited);
    }

    pub(crate) fn answer(&mut self, connection: usize, started: Started, status: u16, now: Nanos) {
        if !started.counted {
            return;
        }
        self.connections[connection].answered += 1;
        self.classes[usize::from(status / 100).clamp(1, 5) - 1] += 1;
        self.raw.saturating_record(now - started.sent);
        if let Some(from_due) = &mut self.from_due {
            from_due.saturating_record(now - started.due);
        }
    }

    pub(crate) fn failure(&mut self, connection: usize, started: Started, why: Failure, now: Nanos) {
        if !started.counted {
            return;
        }
        self.connections[connection].failed += 1;
        self.failures[why as usize] += 1;
        if why == Failure::Timeout {
            self.waited(started.due, now);
        }
    }

    /// An answer nobody asked for, on an idle connection.
    pub(crate) fn unasked(&mut self) {
        self.failures[Failure::Malformed as usize] += 1;
    }

    /// The run ended before a request got its answer…
    pub(crate) fn unanswered(&mut self, due: Nanos, now: Nanos) {
        self.unanswered += 1;
        self.longest_wait = self.longest_wait.max(self.waited(due, now));
    }

    /// …or before a request that was due could even be sent.
    pub(crate) fn unsent(&mut self, due: Nanos, now: Nanos) {
        self.unsent += 1;
        self.longest_wait = self.longest_wait.max(self.waited(due, now));
    }

    fn waited(&mut self, due: Nanos, now: Nanos) -> Nanos {
        let waited = now.saturating_sub(due);
        self.waited.saturating_record(waited);
        waited
    }

    pub(crate) fn answered(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Answers other than 2xx and 3xx.
    pub(crate) fn refusals(&self) -> u64 {
        let [informational, _, _, client, server] = self.classes;
        informational + client + server
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// The mean time per request if every connection had been treated alike; see the top of this file.
    pub(crate) fn expected_interval(&self, pipeline: usize, elapsed: Nanos) -> Option<Nanos> {
        let slots = self.connections.iter().filter(|served| served.asked > 0).count() * pipeline;
        let nanos = u128::from(elapsed) * slots as u128 / u128::from(self.answered()).max(1);
        (self.answered() > 0).then(|| u64::try_from(nanos).unwrap_or(u64::MAX))
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

    pub(crate) fn fairness(&self) -> Fairness {
        let counts = || {
            self.connections
                .iter()
                .filter(|served| served.asked > 0)
                .map(|served| served.answered)
        };
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let (sum, squares) = counts().fold((0.0, 0.0), |(sum, squares), n| {
            (sum + n as f64, squares + (n as f64).powi(2))
        });
        let jain = (squares > 0.0).then(|| sum * sum / (counts().count() as f64 * squares));
        let hungry = |served: &Served| most > 0 && served.asked > 0 && served.answered == 0;
        let never_served = (1..)
            .zip(&self.connections)
            .filter(|(_, served)| hungry(served))
            .map(|(number, _)| number);
        Fairness {
            jain,
            least,
            most,
            never_served: never_served.collect(),
        }
    }
}

/// How evenly the answers were spread over the connections that asked for any.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fairness {
    /// Jain's index: (Σx)² / (n Σx²); 1 when all got the same, 1/n when one got everything. `None` without answers.
    pub(crate) jain: Option<f64>,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Numbers (from 1) of the connections that asked and got nothing while others were answered.
    pub(crate) never_served: Vec<usize>,
}

impl Fairness {
    pub(crate) fn least_to_most(&self) -> Option<f64> {
        (self.most > 0).then(|| self.least as f64 / self.most as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn started(at: Nanos) -> Started {
        Started {
            due: at,
            sent: at,
            counted: true,
        }
    }

    fn served(answers: &[u64]) -> Tally {
        let mut tally = Tally::new(answers.len(), false);
        for (connection, &answers) in answers.iter().enumerate() {
            tally.connections[connection].asked = answers + 1;
            (0..answers).for_each(|_| tally.answer(connection, started(0), 200, MS));
        }
        tally
    }

    #[test]
    fn jain_is_one_when_all_got_the_same_and_one_nth_when_one_got_everything() {
        let jain = |answers: &[u64]| served(answers).fairness().jain;
        assert_eq!(jain(&[7, 7, 7, 7]), Some(1.0));
        assert_eq!(jain(&[9, 0, 0, 0]), Some(0.25));
        assert_eq!(jain(&[0, 0]), None);
    }

    #[test]
    fn never_served_needs_a_request_and_a_luckier_neighbour() {
        let mut tally = served(&[5, 0, 3, 0]);
        tally.connections[3].asked = 0;
        let fairness = tally.fairness();
        assert_eq!(fairness.never_served, [2]);
        assert_eq!(
            (fairness.least, fairness.most, fairness.least_to_most()),
            (0, 5, Some(0.0))
        );
        assert_eq!(served(&[0, 0]).fairness().never_served, Vec::<usize>::new());
    }

    #[test]
    fn a_stall_shows_in_the_corrected_column() {
        let mut tally = served(&[]);
        tally.connections = vec![Served {
            asked: 100,
            ..Served::default()
        }];
        (0..99).for_each(|_| tally.answer(0, started(0), 200, MS));
        tally.answer(0, started(0), 200, 100 * MS);
        let expected = tally.expected_interval(1, 199 * MS);
        assert_eq!(expected, Some(1_990_000));
        assert!(tally.raw().value_at_quantile(0.9) < 2 * MS);
        assert!(tally.corrected(expected).value_at_quantile(0.9) > 50 * MS);
    }

    #[test]
    fn an_even_run_needs_no_correction() {
        let tally = served(&[100, 100]);
        let corrected = tally.corrected(tally.expected_interval(1, 100 * MS));
        assert_eq!(corrected.len(), tally.raw().len());
    }

    #[test]
    fn a_request_without_answer_counts_once_it_has_waited_longer_than_expected() {
        let mut tally = served(&[10]);
        tally.unanswered(0, MS / 2);
        assert_eq!(tally.corrected(Some(MS)).len(), 10, "still young");
        tally.failure(0, started(0), Failure::Timeout, 20 * MS);
        let corrected = tally.corrected(Some(MS));
        assert_eq!(corrected.len(), 30);
        assert_eq!(corrected.max() / MS, 20);
    }

    #[test]
    fn the_open_loop_counts_from_the_moment_a_request_was_due() {
        let mut tally = Tally::new(1, true);
        tally.answer(
            0,
            Started {
                due: 0,
                sent: 90 * MS,
                counted: true,
            },
            200,
            100 * MS,
        );
        assert_eq!(tally.raw().max() / MS, 10);
        assert_eq!(tally.corrected(None).max() / MS, 100);
    }

    #[test]
    fn the_warm_up_leaves_no_trace() {
        let mut tally = Tally::new(1, false);
        let warm_up = Started {
            counted: false,
            ..started(0)
        };
        tally.answer(0, warm_up, 500, MS);
        tally.failure(0, warm_up, Failure::Timeout, MS);
        assert_eq!(
            (tally.answered(), tally.failed(), tally.raw().len(), tally.waited.len()),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn merging_adds_counts_and_appends_connections() {
        let mut tally = served(&[1, 2]);
        let mut other = served(&[3]);
        other.failure(0, started(0), Failure::Closed, MS);
        tally.merge(&other);
        assert_eq!((tally.answered(), tally.failed(), tally.raw().len()), (6, 1, 6));
        assert_eq!(
            tally
                .connections
                .iter()
                .map(|served| served.answered)
                .collect::<Vec<_>>(),
            [1, 2, 3]
        );
    }
}
