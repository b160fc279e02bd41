//! One HTTP/2 connection, from its preface to its end.
//!
//! ```text
//!   Greeting -> Established -> Draining -> Over
//!       \____________\__________________/
//! ```
//! Requests are sent when the server's SETTINGS are there, which say how many streams it allows (RFC 9113 §5.1.2). After its
//! GOAWAY no more are sent, but those that it has accepted are answered.

use super::pipe::Pipe;
use super::request::Request;
use super::signal::Signal;
use super::trouble::code;
use bytes::{Bytes, BytesMut};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use std::future::Future;
use std::pin::{pin, Pin};
use std::task::Poll;
use std::time::Duration;

/// How much a server may send on a stream before we say that we have read it, and on all streams together. Large enough for a
/// download over a network; browsers offer about as much.
const STREAM_WINDOW: u32 = 8 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// How long, and how many, streams are remembered that we have given up: the server may not have noticed yet.
const REMEMBERED: Duration = Duration::from_secs(60);
const MOST_REMEMBERED: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Greeting,
    Established,
    Draining,
    Over,
}

#[derive(Debug)]
pub(super) struct Session {
    sender: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    pipe: Pipe,
    signal: Signal,
    state: State,
    /// The connection has said why there will be no more streams.
    told: bool,
    /// The error code of the server's GOAWAY, until it is taken.
    pub(super) goaway: Option<String>,
}

impl Session {
    /// Begins with the client's preface (RFC 9113 §3.4).
    pub(super) fn new() -> Session {
        let (pipe, signal) = (Pipe::default(), Signal::new());
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            // None until the server has said how many.
            .initial_max_send_streams(0)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .reset_stream_duration(REMEMBERED)
            .max_concurrent_reset_streams(MOST_REMEMBERED);
        let begun = match pin!(builder.handshake(pipe.clone())).poll(&mut signal.context()) {
            Poll::Ready(begun) => begun.ok(),
            Poll::Pending => None,
        };
        let (sender, connection) = begun.expect("an empty pipe takes the preface at once");
        Session {
            sender,
            connection,
            pipe,
            signal,
            state: State::Greeting,
            told: false,
            goaway: None,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// How many streams the server allows at the same time.
    pub(super) fn most_streams(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// Sends a request on a new stream. `None` where that is not possible any more.
    pub(super) fn send(&mut self, request: &Request) -> Option<ResponseFuture> {
        let without_body = request.body.is_empty();
        let (response, mut body) = self.sender.send_request(request.head.clone(), without_body).ok()?;
        if !without_body {
            // h2 keeps what the server has no room for. Where the stream is gone already, the response says so.
            let _ = body.send_data(request.body.clone(), true);
        }
        Some(response)
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.pipe.feed(bytes);
        self.signal.raise();
    }

    /// Nothing more will be received.
    pub(super) fn end(&mut self) {
        self.pipe.end();
        self.signal.raise();
    }

    /// Moves what is to be sent to the end of `output`.
    pub(super) fn drain(&mut self, output: &mut BytesMut) {
        if self.pipe.drain(output) {
            self.signal.raise();
        }
    }

    /// Whether there is something to do for `poll`.
    pub(super) fn is_pending(&self) -> bool {
        self.state != State::Over && self.signal.is_raised()
    }

    /// Makes of what was fed and sent what can be made.
    pub(super) fn poll(&mut self) {
        if self.state == State::Over || !self.signal.take() {
            return;
        }
        if Pin::new(&mut self.connection)
            .poll(&mut self.signal.context())
            .is_ready()
        {
            self.state = State::Over;
        } else if self.state == State::Greeting && self.most_streams() > 0 {
            self.state = State::Established;
        }
        if !self.told {
            self.ask_for_streams();
        }
    }

    /// Whether there can be more streams; if not, why.
    fn ask_for_streams(&mut self) {
        let Poll::Ready(Err(error)) = self.sender.poll_ready(&mut self.signal.context()) else {
            return;
        };
        self.told = true;
        if self.state == State::Established {
            self.state = State::Draining;
        }
        if error.is_go_away() && error.is_remote() {
            self.goaway = error.reason().map(code);
        }
    }
}
