//! One HTTP/2 connection, from its preface to its end.
//!
//! ```text
//!   Greeting -> Established -> Draining -> Over
//!       \____________\__________________/
//! ```
//! Requests are sent once the server's SETTINGS have arrived, which limit the number of streams (RFC 9113 §5.1.2).
//! After the server's GOAWAY no new requests are sent, but the accepted ones still get their responses.

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

/// Flow-control windows for one stream and for the connection. Large enough for a download over a network; browsers
/// offer about as much.
const STREAM_WINDOW: u32 = 8 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// Limits, in time and number, for remembering streams that we reset: the server may not know of the reset yet.
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
    /// The connection has reported why it allows no more streams.
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
            // No streams until the server has sent its limit.
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

    /// Number of streams that the server allows at the same time.
    pub(super) fn most_streams(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// Sends a request on a new stream. Returns `None` if the connection allows no more streams.
    pub(super) fn send(&mut self, request: &Request) -> Option<ResponseFuture> {
        let without_body = request.body.is_empty();
        let (response, mut body) = self.sender.send_request(request.head.clone(), without_body).ok()?;
        if !without_body {
            // h2 keeps the data that exceeds the server's window. If the stream is already gone, the response reports
            // it.
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

    /// Appends the bytes to send to `output`.
    pub(super) fn drain(&mut self, output: &mut BytesMut) {
        if self.pipe.drain(output) {
            self.signal.raise();
        }
    }

    /// Returns `true` if there is a reason to call `poll`.
    pub(super) fn is_pending(&self) -> bool {
        self.state != State::Over && self.signal.is_raised()
    }

    /// Processes the received bytes and prepares the bytes to send.
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

    /// Checks that more streams are possible; if not, records why.
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
