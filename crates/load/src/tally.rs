//! Results of the HTTP requests: counts by kind, by connection and stream, and latencies.

use crate::clock::{Nanos, Started};
use crate::exchange::Event;
use crate::failure::Failure;
use crate::fairness::Served;
use crate::goodput::Goodput;
use crate::handshakes::Handshakes;
use crate::latencies::Latencies;
use crate::options::{Carried, Share};
use crate::sample::Sample;
use std::collections::BTreeMap;

/// The measurements of one thread, or of all.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) connections: Vec<Served>,
    /// The same for each stream of each connection; none in HTTP/1.1.
    pub(crate) streams: Vec<Vec<Served>>,
    /// Class and number of streams of each connection.
    carried: Vec<Carried>,
    /// Latencies of each class of connections; none in HTTP/1.1.
    pub(crate) classes_of_streams: Vec<Latencies>,
    /// Responses by the first digit of their status, from 1 to 5.
    pub(crate) classes: [u64; 5],
    pub(crate) failures: [u64; Failure::ALL.len()],
    pub(crate) bytes: u64,
    /// Opened connections over which the server spoke the requested protocol.
    pub(crate) opened: u64,
    /// The lowest limit of streams that a server set for a connection; `None`: it set no limit.
    pub(crate) most_streams: Option<usize>,
    /// Streams that the server reset, by error code.
    pub(crate) resets: BTreeMap<String, u64>,
    /// Requests that were sent again, because the server had closed their kept connection.
    pub(crate) repeated: u64,
    /// Connections that the server ended with GOAWAY, by error code, including the warm-up.
    pub(crate) goaways: BTreeMap<String, u64>,
    /// Requests that were sent, at least in part, and had no response when the run ended.
    pub(crate) unanswered: u64,
    /// Requests that were due, or left of the requested number, and not sent when the run ended.
    pub(crate) unsent: u64,
    /// Time since the oldest request of these two groups became due, at the end of the run.
    pub(crate) longest_wait: Nanos,
    pub(crate) latencies: Latencies,
    /// The same for each kind of request of a mix; none without a mix.
    pub(crate) kinds: Vec<Sample>,
    pub(crate) handshakes: Handshakes,
    /// Good responses apart from the others, if wanted.
    pub(crate) goodput: Option<Goodput>,
}

impl Tally {
    /// For connections that carry `carried`, in `classes` classes.
    pub(crate) fn new(carried: Vec<Carried>, classes: usize, open_loop: bool, kinds: usize) -> Tally {
        let latencies = |count| (0..count).map(|_| Latencies::new(open_loop)).collect();
        Tally {
            connections: vec![Served::default(); carried.len()],
            streams: carried
                .iter()
                .map(|each| vec![Served::default(); each.streams])
                .collect(),
            carried,
            classes_of_streams: latencies(classes),
            classes: [0; 5],
            failures: [0; Failure::ALL.len()],
            bytes: 0,
            opened: 0,
            most_streams: None,
            resets: BTreeMap::new(),
            repeated: 0,
            goaways: BTreeMap::new(),
            unanswered: 0,
            unsent: 0,
            longest_wait: 0,
            latencies: Latencies::new(open_loop),
            kinds: (0..kinds).map(|_| Sample::default()).collect(),
            handshakes: Handshakes::new(),
            goodput: None,
        }
    }

    /// Adds the measurements of another thread; its connections follow ours.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.connections.extend_from_slice(&other.connections);
        self.streams.extend_from_slice(&other.streams);
        self.carried.extend_from_slice(&other.carried);
        merge(&mut self.classes_of_streams, &other.classes_of_streams);
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
        self.allowed(other.most_streams);
        add(&mut self.resets, &other.resets);
        self.repeated += other.repeated;
        add(&mut self.goaways, &other.goaways);
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.latencies.merge(&other.latencies);
        for (ours, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            ours.merge(theirs);
        }
        self.handshakes.merge(&other.handshakes);
        Goodput::merge(&mut self.goodput, &other.goodput);
    }

    /// A connection has started a request on one of its streams.
    pub(crate) fn asked(&mut self, connection: usize, stream: usize, started: Started) {
        if started.counted {
            self.served(connection, stream, |served| served.asked += 1);
        }
    }

    /// Counts an event of a connection, for a request of the mix or of the only kind.
    pub(crate) fn add(&mut self, connection: usize, event: Event, mix: &[Share], now: Nanos) {
        match event {
            Event::Established { most_streams } => {
                self.opened += 1;
                self.allowed(most_streams);
            }
            Event::Answered {
                stream,
                started,
                kind,
                status,
            } => {
                let name = mix.get(kind).map_or(0, |share| share.kind);
                self.answer((connection, stream), name, started, status, now);
            }
            Event::Failed {
                stream,
                started,
                why,
                code,
            } => {
                self.failure((connection, stream), started, why, now);
                if let (true, Some(code)) = (started.counted, code) {
                    *self.resets.entry(code).or_default() += 1;
                }
            }
            Event::Repeated { started } => self.repeated += u64::from(started.counted),
            Event::GoAway { code } => *self.goaways.entry(code).or_default() += 1,
        }
    }

    /// `place`: a connection and one of its streams.
    pub(crate) fn answer(&mut self, place: (usize, usize), kind: usize, started: Started, status: u16, now: Nanos) {
        if !started.counted {
            return;
        }
        self.served(place.0, place.1, |served| served.answered += 1);
        self.classes[usize::from(status / 100).clamp(1, 5) - 1] += 1;
        self.latencies.answered(started, now);
        if let Some(goodput) = &mut self.goodput {
            goodput.answered(started, status, now);
        }
        if let Some(sample) = self.kinds.get_mut(kind) {
            sample.record(now.saturating_sub(started.sent));
        }
        if let Some(latencies) = self.classes_of_streams.get_mut(self.carried[place.0].class) {
            latencies.answered(started, now);
        }
    }

    fn failure(&mut self, place: (usize, usize), started: Started, why: Failure, now: Nanos) {
        if !started.counted {
            return;
        }
        self.served(place.0, place.1, |served| served.failed += 1);
        self.failures[why as usize] += 1;
        if why == Failure::Timeout {
            self.latencies.unanswered(started.due, now);
        }
    }

    fn served(&mut self, connection: usize, stream: usize, count: impl Fn(&mut Served)) {
        count(&mut self.connections[connection]);
        self.streams[connection].get_mut(stream).map(count);
    }

    fn allowed(&mut self, most_streams: Option<usize>) {
        self.most_streams = [self.most_streams, most_streams].into_iter().flatten().min();
    }

    /// A response without a request, on an idle connection.
    pub(crate) fn unasked(&mut self) {
        self.failures[Failure::Malformed as usize] += 1;
    }

    /// The run ended before a request got its response…
    pub(crate) fn unanswered(&mut self, due: Nanos, now: Nanos) {
        self.unanswered += 1;
        self.longest_wait = self.longest_wait.max(self.latencies.unanswered(due, now));
    }

    /// …or before a due request was sent.
    pub(crate) fn unsent(&mut self, due: Nanos, now: Nanos) {
        self.unsent += 1;
        self.longest_wait = self.longest_wait.max(self.latencies.unanswered(due, now));
    }

    pub(crate) fn answered(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Responses other than 2xx and 3xx.
    pub(crate) fn refusals(&self) -> u64 {
        let [informational, _, _, client, server] = self.classes;
        informational + client + server
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }
}

fn merge(ours: &mut [Latencies], theirs: &[Latencies]) {
    ours.iter_mut()
        .zip(theirs)
        .for_each(|(ours, theirs)| ours.merge(theirs));
}

fn add(to: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    for (code, count) in other {
        *to.entry(code.clone()).or_default() += count;
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
        let mut tally = Tally::new(vec![Carried::default(); answers.len()], 0, false, 0);
        for (connection, &answers) in answers.iter().enumerate() {
            tally.connections[connection].asked = answers + 1;
            (0..answers).for_each(|_| tally.answer((connection, 0), 0, started(0), 200, MS));
        }
        tally
    }

    #[test]
    fn the_warm_up_leaves_no_trace() {
        let mut tally = Tally::new(vec![Carried::default()], 0, false, 0);
        let warm_up = Started {
            counted: false,
            ..started(0)
        };
        tally.answer((0, 0), 0, warm_up, 500, MS);
        tally.failure((0, 0), warm_up, Failure::Timeout, MS);
        assert_eq!(
            (tally.answered(), tally.failed(), tally.latencies.corrected(None).len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn merging_adds_counts_and_appends_connections() {
        let mut tally = served(&[1, 2]);
        let mut other = served(&[3]);
        other.failure((0, 0), started(0), Failure::Closed, MS);
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

    #[test]
    fn streams_and_classes_are_counted_for_themselves() {
        let carried = |class, streams| Carried { class, streams };
        let mut tally = Tally::new(vec![carried(0, 3), carried(1, 1)], 2, false, 0);
        for (connection, stream) in [(0, 2), (0, 2), (1, 0)] {
            tally.asked(connection, stream, started(0));
            tally.answer((connection, stream), 0, started(0), 200, MS);
        }
        let answered = |connection: usize| tally.streams[connection].iter().map(|served| served.answered).collect();
        let (first, second): (Vec<u64>, Vec<u64>) = (answered(0), answered(1));
        assert_eq!((first, second), (vec![0, 0, 2], vec![1]));
        let counts: Vec<u64> = tally.classes_of_streams.iter().map(|each| each.raw().len()).collect();
        assert_eq!((counts, tally.connections[0].asked), (vec![2, 1], 2));
    }

    #[test]
    fn the_least_limit_of_streams_is_kept() {
        let mut tally = served(&[1]);
        for most_streams in [None, Some(128), Some(100), None] {
            tally.add(0, Event::Established { most_streams }, &[], MS);
        }
        assert_eq!((tally.opened, tally.most_streams), (4, Some(100)));
    }
}
