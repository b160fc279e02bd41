//! What is under way on one connection: the requests that it has taken up, and how far they and their answers are.
//!
//! `http1` has one after the other in a pipeline, `http2` several streams at the same time. Neither knows sockets:
//! `connection` carries their bytes, `worker` decides when requests are taken up and what a failure costs.

use crate::clock::{Nanos, Started};
use crate::failure::Failure;
use std::fmt::Debug;

/// The requests and answers of one connection, and of those that replace it. Streams are counted from 0; HTTP/1.1 has the
/// one.
pub(crate) trait Exchange: Debug {
    /// Whether another request may be taken up now.
    fn has_room(&self) -> bool;

    /// Takes up a request of a kind; returns the stream that it is for.
    fn push(&mut self, started: Started, kind: usize) -> usize;

    /// Whether nothing waits for an answer.
    fn is_idle(&self) -> bool;

    /// The request that waits longest for its answer.
    fn oldest(&self) -> Option<Started>;

    /// All requests without an answer, for the end of a run.
    fn unanswered(&self) -> Vec<Started>;

    /// The connection is open, and secure where that was wanted.
    fn opened(&mut self, events: &mut Vec<Event>);

    /// Makes of the requests taken up what is to be sent.
    fn advance(&mut self, events: &mut Vec<Event>) -> Verdict;

    /// What is to be sent next; empty when there is nothing.
    fn output(&mut self) -> &[u8];

    /// So many bytes of it are gone.
    fn sent(&mut self, bytes: usize);

    /// Reads answers out of what was received.
    fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Verdict;

    /// Nothing more will be received, because of `why` unless that was the end of an answer. The connection has to be closed.
    fn end(&mut self, why: Failure, events: &mut Vec<Event>) -> Verdict;

    /// The connection has failed and has to be closed: what that costs.
    fn fail(&mut self, why: Failure, events: &mut Vec<Event>);

    /// Fails what was sent at `before` or earlier. `silent`: nothing was received since. Returns whether the connection has
    /// to be closed.
    fn expire(&mut self, before: Nanos, silent: bool, why: Failure, events: &mut Vec<Event>) -> bool;

    /// The connection is closed. What still waits will be sent again on the next one.
    fn closed(&mut self);
}

/// Whether a connection goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Open,
    /// It cannot carry another request.
    Close,
    /// Something came that nobody has asked for.
    Unasked,
    /// The server does not speak what we do; why, for a person.
    Foreign(String),
}

/// What is to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The server has begun to speak what we do, and allows so many streams at the same time, if it has a limit.
    Established { most_streams: Option<usize> },
    Answered {
        stream: usize,
        started: Started,
        kind: usize,
        status: u16,
    },
    Failed {
        stream: usize,
        started: Started,
        why: Failure,
        /// The error code that the server gave (RFC 9113 §7).
        code: Option<String>,
    },
    /// The server has announced the end of the connection with an error code (RFC 9113 §6.8).
    GoAway { code: String },
}
