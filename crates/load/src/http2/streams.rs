//! The streams of one client: lanes, over consecutive connections.
//!
//! Until the first connection is established there is one request, the reason for opening the connection. The others
//! follow when the server has sent its limit of streams. A lane that has its response goes to the end of the queue of
//! free lanes, so each lane gets its turn even with a rate.

use super::lane::{Lane, Progress, Taken};
use super::request::Request;
use super::session::{Session, State};
use super::trouble::Cost;
use crate::clock::{Nanos, Started};
use crate::exchange::{Event, Exchange, Verdict};
use crate::failure::Failure;
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Streams<'a> {
    requests: &'a [Request],
    lanes: Vec<Lane>,
    /// Lanes that may start a request, the longest free one first.
    free: VecDeque<usize>,
    /// Lanes with a request that waits for a stream.
    waiting: VecDeque<usize>,
    /// Number of streams that the server allows, at most the number of lanes.
    allowed: usize,
    session: Option<Session>,
    /// Something was received on this connection.
    heard: bool,
    established: bool,
    output: BytesMut,
}

impl<'a> Streams<'a> {
    /// `requests`: one for each kind; `lanes`: streams open at the same time.
    pub(crate) fn new(requests: &'a [Request], lanes: usize) -> Streams<'a> {
        Streams {
            requests,
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
            free: (0..lanes).collect(),
            waiting: VecDeque::new(),
            allowed: lanes,
            session: None,
            heard: false,
            established: false,
            output: BytesMut::new(),
        }
    }

    fn state(&self) -> Option<State> {
        self.session.as_ref().map(Session::state)
    }

    /// Handles a change of the connection's state.
    fn look(&mut self, events: &mut Vec<Event>) {
        let Some(session) = &mut self.session else { return };
        if let Some(code) = session.goaway.take() {
            events.push(Event::GoAway { code });
        }
        if session.state() == State::Greeting || session.most_streams() == 0 {
            return;
        }
        let most = session.most_streams();
        if !self.established && session.state() == State::Established {
            self.established = true;
            let most_streams = (most < usize::MAX).then_some(most);
            events.push(Event::Established { most_streams });
        }
        let allowed = most.min(self.lanes.len());
        if self.allowed != allowed {
            self.allowed = allowed;
            self.free = (0..allowed).filter(|&lane| self.lanes[lane].is_free()).collect();
        }
    }

    /// Opens streams for the waiting requests.
    fn send(&mut self) {
        let Some(session) = self
            .session
            .as_mut()
            .filter(|session| session.state() == State::Established)
        else {
            return;
        };
        if self.waiting.is_empty() {
            return;
        }
        let mut open = self.lanes.iter().filter(|lane| lane.is_open()).count();
        while open < self.allowed {
            let Some(&lane) = self.waiting.front() else { return };
            if let Some(taken) = self.lanes[lane].taken() {
                let Some(response) = session.send(&self.requests[taken.kind]) else {
                    return;
                };
                self.lanes[lane].sent(response);
                open += 1;
            }
            self.waiting.pop_front();
        }
    }

    /// Collects responses and failures from the lanes.
    fn collect(&mut self, events: &mut Vec<Event>) {
        for stream in 0..self.lanes.len() {
            match self.lanes[stream].poll() {
                Progress::Nothing => {}
                Progress::Answered(Taken { started, kind }, status) => {
                    events.push(Event::Answered {
                        stream,
                        started,
                        kind,
                        status,
                    });
                    self.release(stream);
                }
                Progress::Failed(taken, Cost::Nothing) => self.wait(stream, taken),
                Progress::Failed(taken, Cost::Request(why, code)) => {
                    self.failed(stream, taken.started, why, code, events);
                }
            }
        }
    }

    fn wait(&mut self, lane: usize, taken: Taken) {
        self.lanes[lane].wait(taken);
        self.waiting.push_back(lane);
    }

    fn failed(&mut self, stream: usize, started: Started, why: Failure, code: Option<String>, events: &mut Vec<Event>) {
        events.push(Event::Failed {
            stream,
            started,
            why,
            code,
        });
        self.release(stream);
    }

    /// A lane is free again.
    fn release(&mut self, lane: usize) {
        if lane < self.allowed {
            self.free.push_back(lane);
        }
    }

    /// Gives up the requests of the lanes that `wanted` picks.
    fn give_up(&mut self, wanted: impl Fn(&Lane) -> bool, why: Failure, events: &mut Vec<Event>) -> usize {
        let mut count = 0;
        for stream in 0..self.lanes.len() {
            if !wanted(&self.lanes[stream]) {
                continue;
            }
            if let Some(taken) = self.lanes[stream].clear() {
                self.waiting.retain(|&lane| lane != stream);
                self.failed(stream, taken.started, why, None, events);
                count += 1;
            }
        }
        count
    }

    /// Returns why the server does not speak HTTP/2, if its first bytes show that.
    fn foreign(&mut self, bytes: &[u8]) -> Option<Verdict> {
        let first = !std::mem::replace(&mut self.heard, true);
        (first && bytes.starts_with(b"HTTP/1"))
            .then(|| Verdict::Foreign("the server responds in HTTP/1.1, so it does not speak HTTP/2 here".into()))
    }
}

impl Exchange for Streams<'_> {
    fn has_room(&self) -> bool {
        match self.state() {
            None | Some(State::Greeting) => self.free.len() == self.allowed && !self.free.is_empty(),
            Some(State::Established) => !self.free.is_empty(),
            Some(State::Draining | State::Over) => false,
        }
    }

    fn push(&mut self, started: Started, kind: usize) -> usize {
        let lane = self.free.pop_front().expect("there is room");
        self.wait(lane, Taken { started, kind });
        lane
    }

    fn is_idle(&self) -> bool {
        self.lanes.iter().all(Lane::is_free)
    }

    fn oldest(&self) -> Option<Started> {
        let taken = self.lanes.iter().filter_map(Lane::taken);
        taken.map(|taken| taken.started).min_by_key(|started| started.sent)
    }

    fn unanswered(&self) -> Vec<Started> {
        let taken = self.lanes.iter().filter_map(Lane::taken);
        taken.map(|taken| taken.started).collect()
    }

    fn opened(&mut self, _: &mut Vec<Event>) {
        self.session = Some(Session::new());
    }

    fn advance(&mut self, events: &mut Vec<Event>) -> Verdict {
        self.send();
        while self.session.as_ref().is_some_and(Session::is_pending) {
            if let Some(session) = &mut self.session {
                session.poll();
            }
            self.look(events);
            self.collect(events);
            self.send();
        }
        if self.state() == Some(State::Over) {
            self.give_up(Lane::is_open, Failure::Closed, events);
        }
        match (self.state(), self.established) {
            (Some(State::Over), false) => Verdict::Foreign("the server does not speak HTTP/2 here".into()),
            (Some(State::Over), true) => Verdict::Close,
            _ => Verdict::Open,
        }
    }

    fn output(&mut self) -> &[u8] {
        if let Some(session) = self.session.as_mut().filter(|_| self.output.is_empty()) {
            session.drain(&mut self.output);
        }
        &self.output
    }

    fn sent(&mut self, bytes: usize) {
        self.output.advance(bytes);
    }

    fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Verdict {
        if let Some(verdict) = self.foreign(bytes) {
            return verdict;
        }
        if let Some(session) = &mut self.session {
            session.feed(bytes);
        }
        self.advance(events)
    }

    fn end(&mut self, why: Failure, events: &mut Vec<Event>) -> Verdict {
        if let (Some(session), Failure::Closed) = (&mut self.session, why) {
            session.end();
            // The result is ignored: the connection has ended in any case.
            self.advance(events);
        }
        if self.session.is_some() && !self.established {
            return Verdict::Foreign("the server closed the connection instead of speaking HTTP/2".into());
        }
        self.fail(why, events);
        Verdict::Close
    }

    /// Fails the requests that have a stream; before there are streams, the request for which the connection was
    /// opened.
    fn fail(&mut self, why: Failure, events: &mut Vec<Event>) {
        if self.give_up(Lane::is_open, why, events) == 0 && !self.established {
            let oldest = self.oldest();
            let is_oldest = |lane: &Lane| lane.taken().map(|taken| taken.started) == oldest && oldest.is_some();
            self.give_up(is_oldest, why, events);
        }
    }

    /// Times out each stream on its own; closes the connection if it was silent.
    fn expire(&mut self, before: Nanos, silent: bool, why: Failure, events: &mut Vec<Event>) -> bool {
        let is_late = |lane: &Lane| lane.taken().is_some_and(|taken| taken.started.sent <= before);
        self.give_up(is_late, why, events);
        silent || !self.established
    }

    fn closed(&mut self) {
        self.session = None;
        self.heard = false;
        self.established = false;
        self.output.clear();
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].is_open() {
                if let Some(taken) = self.lanes[lane].clear() {
                    self.wait(lane, taken);
                }
            }
        }
    }
}
