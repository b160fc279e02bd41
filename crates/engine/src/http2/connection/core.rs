//! The core of an HTTP/2 connection: the state of `h2`, and the state of the connection. The thread that has locked it
//! drives it.
//!
//! ```text
//!   Preface ──▶ Open ──▶ Closing (GOAWAY is sent; further input is discarded) ─────▶ Over
//!      └─────────┴── end of input, error ───────────────────────────────────────────────▲
//! ```

use super::carrier::Carrier;
use super::streams::Streams;
use super::Arrival;
use crate::clock::Millis;
use crate::connection::place::Place;
use crate::http2::pipe::Pipe;
use crate::limits::budget::Kind;
use crate::spool::{Charge, ReadRate, Slowness};
use crate::transport::{Shutdown, LINGER, READ_TURN};
use bytes::Bytes;
use fairlead_wire::http2::Flood;
use h2::server::{Connection, Handshake};
use h2::Reason;
use rustix::io::Errno;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};

/// Unsent bytes are counted in steps of this size. Fewer bytes are usually sent at once and need no counting.
const COUNTED_BYTES: usize = 16 * 1024;

/// See the head of this file.
pub(super) struct Core {
    state: State,
    /// The events that the poller watches the socket for.
    interest: Interest,
    /// The client was told that the connection ends.
    is_leaving: bool,
    /// Requests that the poller has not taken yet.
    pub(super) arrivals: Vec<Arrival>,
    pub(super) end: Option<End>,
    place: Option<Place>,
    /// Counts the bytes of responses that the client does not take.
    unsent: Option<Charge>,
    /// The rate at which the client takes them, while they count.
    read_rate: ReadRate,
}

/// The events that the poller watches a socket for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Interest {
    reads: bool,
    writes: bool,
}

/// ```text
///   Preface ──the client's preface──▶ Open ──end──▶ Closing ──sent, or deadline──▶ Over
///      └── timeout, flood, violation ─────────────────▲
/// ```
enum State {
    Preface(Box<Handshake<Pipe, Bytes>>),
    Open(Box<Connection<Pipe, Bytes>>),
    Closing(Millis),
    Over,
}

/// The reason why an HTTP/2 connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Neither side has more to send, or the client is gone.
    Usual,
    /// The client has sent too much of something.
    Flood(Flood),
    /// The client has violated the protocol.
    Violation(Reason),
    /// The connection was idle for too long.
    Idle,
    /// The client took too long to send a frame, or takes nothing.
    Slow,
    /// The connection had the largest share of a shared limit, and other connections needed some.
    GaveWay,
}

impl Core {
    pub(super) fn new(handshake: Handshake<Pipe, Bytes>, place: Place) -> Core {
        Core {
            state: State::Preface(Box::new(handshake)),
            interest: Interest::default(),
            is_leaving: false,
            arrivals: Vec::new(),
            end: None,
            place: Some(place),
            unsent: None,
            read_rate: ReadRate::default(),
        }
    }

    /// Returns true if `h2` may still be driven.
    pub(super) fn is_driven(&self) -> bool {
        matches!(self.state, State::Preface(_) | State::Open(_))
    }

    /// Returns true if all further input is discarded.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing(_))
    }

    /// Lets `h2` do everything that is possible now. New requests are in [`Core::arrivals`] afterwards.
    pub(super) fn step(&mut self, carrier: &Carrier, context: &mut Context<'_>, now: Millis) {
        if let State::Preface(handshake) = &mut self.state {
            match Pin::new(&mut **handshake).poll(context) {
                Poll::Pending => return,
                Poll::Ready(Ok(connection)) => self.state = State::Open(Box::new(connection)),
                Poll::Ready(Err(error)) => return self.end_by(carrier, Some(&error), now),
            }
        }
        while let State::Open(connection) = &mut self.state {
            match connection.poll_accept(context) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok((request, respond)))) => self.arrivals.push(Arrival { request, respond }),
                Poll::Ready(Some(Err(error))) => self.end_by(carrier, Some(&error), now),
                Poll::Ready(None) => self.end_by(carrier, None, now),
            }
        }
    }

    /// Ends the connection because `h2` has ended it.
    fn end_by(&mut self, carrier: &Carrier, error: Option<&h2::Error>, now: Millis) {
        let reason = error
            .filter(|error| !error.is_io() && !error.is_remote())
            .and_then(h2::Error::reason);
        let flood = carrier.pipe.flood().or_else(|| carrier.pipe.flood_told());
        self.end.get_or_insert(match (reason, flood) {
            (None | Some(Reason::NO_ERROR), _) => End::Usual,
            (Some(Reason::ENHANCE_YOUR_CALM), Some(flood)) => End::Flood(flood),
            (Some(reason), _) => End::Violation(reason),
        });
        match error {
            // The client is gone.
            Some(error) if error.is_io() => self.finish(carrier),
            _ => self.close(carrier, now),
        }
    }

    /// Ends the connection for a reason, and tells the client if possible.
    pub(super) fn end_with(&mut self, end: End, carrier: &Carrier, context: &mut Context<'_>, now: Millis) {
        self.end = Some(end);
        self.say_goodbye(context);
        self.close(carrier, now);
    }

    /// Sends GOAWAY, as far as the socket takes it at once.
    fn say_goodbye(&mut self, context: &mut Context<'_>) {
        let State::Open(connection) = &mut self.state else {
            return;
        };
        connection.abrupt_shutdown(match self.end {
            Some(End::Flood(_) | End::Slow | End::GaveWay) => Reason::ENHANCE_YOUR_CALM,
            _ => Reason::NO_ERROR,
        });
        let _ = connection.poll_closed(context);
    }

    /// Sends nothing more, and discards further input, so that no reset overtakes the bytes that were sent.
    fn close(&mut self, carrier: &Carrier, now: Millis) {
        self.state = State::Closing(now);
        self.unsent = None;
        carrier.is_over.store(true, SeqCst);
        if carrier.transport.shut_down(Shutdown::Write).is_err() {
            self.finish(carrier);
        }
    }

    pub(super) fn finish(&mut self, carrier: &Carrier) {
        self.state = State::Over;
        self.unsent = None;
        carrier.is_over.store(true, SeqCst);
    }

    /// Tells the client that no further requests are served. Returns false if it was told before.
    pub(super) fn leave(&mut self, carrier: &Carrier) -> bool {
        if std::mem::replace(&mut self.is_leaving, true) {
            return false;
        }
        match &mut self.state {
            State::Open(connection) => connection.graceful_shutdown(),
            State::Preface(_) => self.finish(carrier),
            _ => {}
        }
        true
    }

    /// Drops input that arrives after the end.
    pub(super) fn discard(&mut self, carrier: &Carrier, scratch: &mut [u8]) {
        for _ in 0..READ_TURN / scratch.len().max(1) {
            match carrier.transport.receive(scratch) {
                Ok(1..) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(0) | Err(_) => return self.finish(carrier),
            }
        }
    }

    /// Returns the slot and the reason, once, after the end.
    pub(super) fn close_for_engine(&mut self) -> Option<(Place, End)> {
        let place = self.place.take_if(|_| matches!(self.state, State::Over))?;
        Some((place, self.end.unwrap_or(End::Usual)))
    }

    /// Returns true if the slot was given back after the end.
    pub(super) fn is_buried(&self) -> bool {
        matches!(self.state, State::Over) && self.place.is_none()
    }

    /// Tells the poller which events to watch for, and counts the bytes that the client does not take.
    pub(super) fn watch(&mut self, carrier: &Carrier, streams: &Streams) {
        let interest = self.wanted(carrier);
        if self.interest != interest && self.place.is_some() {
            self.interest = interest;
            if carrier.watch(interest.reads, interest.writes).is_err() {
                self.finish(carrier);
            }
        }
        self.count_unsent(carrier);
        carrier.expect(self.deadline(carrier, streams));
    }

    fn wanted(&self, carrier: &Carrier) -> Interest {
        let has_more = carrier.pipe.has_more() && carrier.transport.holds_received();
        Interest {
            reads: !matches!(self.state, State::Over),
            writes: self.is_driven() && (has_more || carrier.pipe.blocked_since().is_some()),
        }
    }

    fn count_unsent(&mut self, carrier: &Carrier) {
        if carrier.is_over() {
            return;
        }
        let unsent = carrier.pipe.unsent.total() / COUNTED_BYTES * COUNTED_BYTES;
        if self.unsent.as_ref().map_or(0, Charge::bytes) != unsent as u64 {
            let counted = (unsent > 0).then(|| carrier.spool.count_memory(unsent, Some(&carrier.budget)));
            self.unsent = counted;
        }
        if carrier.budget.used(Kind::Responses) >= COUNTED_BYTES as u64 {
            self.read_rate.note_full(Millis::now(), carrier.pipe.unsent.all_sent());
        } else {
            self.read_rate = ReadRate::default();
        }
    }

    /// Returns how slowly the client takes its responses.
    pub(super) fn slowness(&mut self, carrier: &Carrier, now: Millis) -> Option<Slowness> {
        let sent = carrier.pipe.unsent.all_sent();
        // Nothing has been sent since the budget is in use; otherwise that would be noted.
        self.read_rate.begin(carrier.budget.held_since(Kind::Responses)?, sent);
        self.read_rate.slowness(now, sent, carrier.budget.used(Kind::Responses))
    }

    /// The time when the connection ends, if nothing happens until then.
    pub(super) fn deadline(&self, carrier: &Carrier, streams: &Streams) -> Millis {
        let slow = || self.slow_deadline(carrier, streams);
        match self.state {
            State::Closing(since) => since + LINGER,
            // A client that has not taken all responses is not idle, although their streams are over.
            _ if carrier.stuck_since().is_some() => slow(),
            _ => streams.idle_deadline(&carrier.worker).min(slow()),
        }
    }

    /// The time when the client has taken too long to send a frame, or to take bytes that its windows admit.
    pub(super) fn slow_deadline(&self, carrier: &Carrier, streams: &Streams) -> Millis {
        let config = &carrier.worker.config;
        let inside = match self.state {
            State::Preface(_) => Some(streams.idle_since()),
            _ => carrier.pipe.inside_since(),
        };
        let after = |since: Option<Millis>, time| since.map_or(Millis::NEVER, |since| since + time);
        after(inside, config.head_timeout).min(after(carrier.stuck_since(), config.write_timeout))
    }
}
