//! HTTP/1.1 from the client's side: requests written one after the other, responses that come in the same order.
//!
//! The requests outlive the connection: requests behind a failed one, or behind a response that closed the connection,
//! are sent again on the next (RFC 9112 §9.3.2). So is a request for which a kept connection was too old: the server may
//! close such a connection at any time (§9.3.1).

use crate::clock::{Nanos, Started};
use crate::exchange::{Event, Exchange, Verdict};
use crate::failure::Failure;
use crate::request::Wire;
use crate::response::ResponseReader;
use std::collections::VecDeque;

/// The only stream of a connection.
const STREAM: usize = 0;

/// Settings for sending requests, the same for all connections of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner<'a> {
    pub(crate) method: &'a str,
    /// Limit for requests in progress.
    pub(crate) pipeline: usize,
    pub(crate) keep_alive: bool,
    /// The bytes of each kind of request.
    pub(crate) wires: &'a [Wire],
}

#[derive(Debug)]
pub(crate) struct Pipeline<'a> {
    manner: Manner<'a>,
    /// Requests that have started and have no response, oldest first.
    waiting: VecDeque<Started>,
    /// Number of requests, at the back, that are not completely written…
    unwritten: usize,
    /// …and the written bytes of the first of these.
    offset: usize,
    reader: ResponseReader,
    /// The connection has carried a response before.
    was_kept: bool,
    /// Kind of the request in progress. With a mix there is one at a time.
    kind: usize,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(manner: Manner<'a>) -> Pipeline<'a> {
        Pipeline {
            manner,
            waiting: VecDeque::with_capacity(manner.pipeline),
            unwritten: 0,
            offset: 0,
            reader: ResponseReader::new(manner.method),
            was_kept: false,
            kind: 0,
        }
    }

    /// Removes the oldest request; `true` if it was completely written.
    fn pop(&mut self) -> Option<(Started, bool)> {
        let written = self.waiting.len() > self.unwritten;
        let started = self.waiting.pop_front()?;
        if !written {
            self.unwritten -= 1;
            self.offset = 0;
        }
        Some((started, written))
    }

    /// The oldest request may be sent again: the server has closed a kept connection before it began to respond, and to
    /// process the request twice does no harm. A request that fails on a new connection is not sent again.
    fn may_repeat(&self) -> bool {
        self.was_kept && !self.reader.has_begun() && self.manner.wires[self.kind].is_idempotent
    }

    /// The oldest request got its response; returns `true` if it was completely written before.
    fn answered(&mut self, status: u16, events: &mut Vec<Event>) -> bool {
        let kind = self.kind;
        let Some((started, written)) = self.pop() else {
            return false;
        };
        events.push(Event::Answered {
            stream: STREAM,
            started,
            kind,
            status,
        });
        written
    }
}

impl Exchange for Pipeline<'_> {
    fn has_room(&self) -> bool {
        self.waiting.len() < self.manner.pipeline
    }

    fn push(&mut self, started: Started, kind: usize) -> usize {
        self.kind = kind;
        self.waiting.push_back(started);
        self.unwritten += 1;
        STREAM
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    fn oldest(&self) -> Option<Started> {
        self.waiting.front().copied()
    }

    fn unanswered(&self) -> Vec<Started> {
        self.waiting.iter().copied().collect()
    }

    fn opened(&mut self, events: &mut Vec<Event>) {
        events.push(Event::Established { most_streams: None });
    }

    fn advance(&mut self, _: &mut Vec<Event>) -> Verdict {
        Verdict::Open
    }

    fn output(&mut self) -> &[u8] {
        match self.unwritten {
            0 => &[],
            unwritten => self.manner.wires[self.kind].slice(self.offset, unwritten),
        }
    }

    fn sent(&mut self, bytes: usize) {
        let length = self.manner.wires[self.kind].len;
        let total = self.offset + bytes;
        self.unwritten -= total / length;
        self.offset = total % length;
    }

    fn receive(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Verdict {
        while !bytes.is_empty() {
            if self.waiting.is_empty() {
                return Verdict::Unasked;
            }
            match self.reader.read(&mut bytes) {
                Ok(Some(answer)) => {
                    self.was_kept = true;
                    let written = self.answered(answer.status, events);
                    if !(written && answer.keep_alive && self.manner.keep_alive) {
                        return Verdict::Close;
                    }
                }
                Ok(None) => return Verdict::Open,
                Err(_) => {
                    self.fail(Failure::Malformed, events);
                    return Verdict::Close;
                }
            }
        }
        Verdict::Open
    }

    fn end(&mut self, why: Failure, events: &mut Vec<Event>) -> Verdict {
        let whole = match why {
            Failure::Closed => self.reader.end(),
            _ => None,
        };
        match whole {
            Some(answer) => {
                self.answered(answer.status, events);
            }
            None if self.may_repeat() => {
                let repeated = self.oldest().map(|started| Event::Repeated { started });
                events.extend(repeated);
            }
            None => self.fail(why, events),
        }
        Verdict::Close
    }

    /// Fails the oldest request, if there is one.
    fn fail(&mut self, why: Failure, events: &mut Vec<Event>) {
        if let Some((started, _)) = self.pop() {
            events.push(Event::Failed {
                stream: STREAM,
                started,
                why,
                code: None,
            });
        }
    }

    fn expire(&mut self, before: Nanos, _: bool, why: Failure, events: &mut Vec<Event>) -> bool {
        let mut any = false;
        while self.oldest().is_some_and(|oldest| oldest.sent <= before) {
            self.fail(why, events);
            any = true;
        }
        any
    }

    fn closed(&mut self) {
        self.unwritten = self.waiting.len();
        self.offset = 0;
        self.was_kept = false;
        self.reader.reset();
    }
}
