//! The requests in progress on one connection, and the state of each.
//!
//! `http1` has one request after the other in a pipeline, `http2` several streams at the same time. Neither knows
//! sockets: `connection` carries their bytes, `worker` decides when requests start and what a failure costs.

use crate::clock::{Nanos, Started};
use crate::failure::Failure;
use std::fmt::Debug;

/// The requests and responses of one connection and of its replacements. Streams are numbered from 0; HTTP/1.1 has one.
pub(crate) trait Exchange: Debug {
    /// Returns `true` if another request may start now.
    fn has_room(&self) -> bool;

    /// Starts a request of a kind; returns its stream.
    fn push(&mut self, started: Started, kind: usize) -> usize;

    /// Returns `true` if no request waits for a response.
    fn is_idle(&self) -> bool;

    /// The request that has waited longest for its response.
    fn oldest(&self) -> Option<Started>;

    /// All requests without a response, at the end of a run.
    fn unanswered(&self) -> Vec<Started>;

    /// The connection is open, and its TLS handshake is complete if there is one.
    fn opened(&mut self, events: &mut Vec<Event>);

    /// Prepares the output for the requests that have started.
    fn advance(&mut self, events: &mut Vec<Event>) -> Verdict;

    /// The next bytes to send; empty if there are none.
    fn output(&mut self) -> &[u8];

    /// The first `bytes` bytes of the output have been sent.
    fn sent(&mut self, bytes: usize);

    /// Reads responses from the received bytes.
    fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Verdict;

    /// Nothing more will be received. The reason is `why`, unless the end of the connection ends a response, or its request
    /// can be sent again. The connection has to be closed.
    fn end(&mut self, why: Failure, events: &mut Vec<Event>) -> Verdict;

    /// The connection has failed and has to be closed. Reports the failed requests.
    fn fail(&mut self, why: Failure, events: &mut Vec<Event>);

    /// Fails the requests sent at `before` or earlier. `silent`: nothing has been received since. Returns `true` if the
    /// connection has to be closed.
    fn expire(&mut self, before: Nanos, silent: bool, why: Failure, events: &mut Vec<Event>) -> bool;

    /// The connection is closed. Requests that still wait will be sent again on the next one.
    fn closed(&mut self);
}

/// Decision about the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Open,
    /// It cannot carry another request.
    Close,
    /// Received data that no request asked for.
    Unasked,
    /// The server does not speak the requested protocol; why, in words.
    Foreign(String),
}

/// Events to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The server has begun to speak the requested protocol, and allows this many streams at the same time, if it has a
    /// limit.
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
        /// The error code from the server (RFC 9113 §7).
        code: Option<String>,
    },
    /// The server has closed a kept connection before it responded, and the request will be sent again.
    Repeated { started: Started },
    /// The server has announced the end of the connection with an error code (RFC 9113 §6.8).
    GoAway { code: String },
}
