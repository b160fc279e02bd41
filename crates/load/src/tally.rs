//! What HTTP requests came to: counts by kind, by connection, and latencies.

use crate::fairness::Served;
use crate::latencies::Latencies;
use crate::pacing::{Nanos, Started};

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
    pub(crate) latencies: Latencies,
    /// The same for each kind of request of a mix; none without a mix.
    pub(crate) kinds: Vec<Latencies>,
}

impl Tally {
    pub(crate) fn new(connections: usize, open_loop: bool, kinds: usize) -> Tally {
        Tally {
            connections: vec![Served::default(); connections],
            classes: [0; 5],
            failures: [0; Failure::ALL.len()],
            bytes: 0,
            opened: 0,
            unanswered: 0,
            unsent: 0,
            longest_wait: 0,
            latencies: Latencies::new(open_loop),
            kinds: (0..kinds).map(|_| Latencies::new(open_loop)).collect(),
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
        self.latencies.merge(&other.latencies);
        self.kinds
            .iter_mut()
            .zip(&other.kinds)
            .for_each(|(ours, theirs)| ours.merge(theirs));
    }

    pub(crate) fn answer(&mut self, connection: usize, kind: usize, started: Started, status: u16, now: Nanos) {
        if !started.counted {
            return;
        }
        self.connections[connection].answered += 1;
        self.classes[usize::from(status / 100).clamp(1, 5) - 1] += 1;
        self.latencies.answered(started, now);
        if let Some(latencies) = self.kinds.get_mut(kind) {
            latencies.answered(started, now);
        }
    }

    pub(crate) fn failure(&mut self, connection: usize, started: Started, why: Failure, now: Nanos) {
        if !started.counted {
            return;
        }
        self.connections[connection].failed += 1;
        self.failures[why as usize] += 1;
        if why == Failure::Timeout {
            self.latencies.unanswered(started.due, now);
        }
    }

    /// An answer nobody asked for, on an idle connection.
    pub(crate) fn unasked(&mut self) {
        self.failures[Failure::Malformed as usize] += 1;
    }

    /// The run ended before a request got its answer…
    pub(crate) fn unanswered(&mut self, due: Nanos, now: Nanos) {
        self.unanswered += 1;
        self.longest_wait = self.longest_wait.max(self.latencies.unanswered(due, now));
    }

    /// …or before a request that was due could even be sent.
    pub(crate) fn unsent(&mut self, due: Nanos, now: Nanos) {
        self.unsent += 1;
        self.longest_wait = self.longest_wait.max(self.latencies.unanswered(due, now));
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
        let mut tally = Tally::new(answers.len(), false, 0);
        for (connection, &answers) in answers.iter().enumerate() {
            tally.connections[connection].asked = answers + 1;
            (0..answers).for_each(|_| tally.answer(connection, 0, started(0), 200, MS));
        }
        tally
    }

    #[test]
    fn the_warm_up_leaves_no_trace() {
        let mut tally = Tally::new(1, false, 0);
        let warm_up = Started {
            counted: false,
            ..started(0)
        };
        tally.answer(0, 0, warm_up, 500, MS);
        tally.failure(0, warm_up, Failure::Timeout, MS);
        assert_eq!(
            (tally.answered(), tally.failed(), tally.latencies.corrected(None).len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn merging_adds_counts_and_appends_connections() {
        let mut tally = served(&[1, 2]);
        let mut other = served(&[3]);
        other.failure(0, started(0), Failure::Closed, MS);
        tally.merge(&other);
        assert_eq!(
            (tally.answered(), tally.failed(), tally.latencies.raw().len()),
            (6, 1, 6)
        );
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
