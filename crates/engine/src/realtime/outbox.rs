//! The frames that wait for a client, the state of its socket, and its end. One lock protects all of it.

use super::carrier::{Carrier, Owner};
use super::client::Protocol;
use super::ending::{Ending, Wait};
use super::frames::{Flushed, Frame, Frames};
use super::remainder::Remainder;
use crate::clock::Millis;
use crate::limits::meter::{Meter, Rate};
use crate::pubsub::{Cut, Publication};
use crate::transport::{AfterResponse, Link, Shutdown};
use crate::worker::Count;
use fairlead_wire::websocket::close_frame;
use rustix::io;
use std::mem::replace;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Outbox {
    /// `None` once the client is released.
    pub(super) transport: Option<Link>,
    /// Counts the client, until it is released.
    pub(super) count: Option<Count>,
    /// `None` until the client has begun, and once it is released.
    pub(super) carrier: Option<Carrier>,
    pub(super) frames: Frames,
    /// Bytes of past messages among the frames, or more: they count apart from new ones.
    pub(super) past_bytes: usize,
    /// The time when the socket last took something, or was first offered bytes that it has not taken.
    pub(super) moved: Millis,
    /// Measures how fast the client takes waiting bytes.
    pub(super) meter: Meter,
    /// The events that the poller watches the socket for.
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Something was written since the app last got [`Event::Drained`](super::inbox::Event::Drained).
    pub(super) owes_drained: bool,
    /// The rest of a response.
    pub(super) remainder: Remainder,
    pub(super) ending: Option<Ending>,
    /// The publications that the client has received in another process, for a while.
    seen: Option<Box<Seen>>,
}

/// See [`Outbox::seen`].
struct Seen {
    cut: Arc<Cut>,
    until: Millis,
}

/// The time in which a publication of another process may still arrive in this one.
const LONGEST_WAY: Duration = Duration::from_secs(30);

/// The state of the end once the kernel has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllSent {
    /// More may be written.
    Open,
    /// The end has begun, and the peer has until this time.
    Waits(Millis),
    /// The client has ended.
    Over,
}

impl Outbox {
    /// Creates an empty outbox. The client begins when [`Outbox::carrier`] is set.
    pub(super) fn new(transport: Link, count: Count, now: Millis) -> Outbox {
        Outbox {
            transport: Some(transport),
            count: Some(count),
            carrier: None,
            frames: Frames::default(),
            past_bytes: 0,
            moved: now,
            meter: Meter::begin(now),
            reads: false,
            writes: false,
            owes_drained: false,
            remainder: Remainder::Open,
            ending: None,
            seen: None,
        }
    }

    /// Delivers no publication of this cut: the client has received them in another process.
    pub(super) fn leave_out(&mut self, cut: Arc<Cut>) {
        let until = Millis::now() + LONGEST_WAY;
        self.seen = Some(Box::new(Seen { cut, until }));
    }

    /// The publications that the client has received, if this process has handed out `cut` to it.
    pub(super) fn received(&self, cut: Arc<Cut>) -> Arc<Cut> {
        match &self.seen {
            Some(seen) if !cut.covers(&seen.cut) => {
                let mut all = (*cut).clone();
                all.add_all(&seen.cut);
                Arc::new(all)
            }
            _ => cut,
        }
    }

    /// True if the client has received a publication in another process.
    pub(super) fn has_seen(&mut self, publication: &Publication) -> bool {
        let Some(seen) = &self.seen else { return false };
        if seen.cut.has(publication) {
            return true;
        }
        if seen.until < Millis::now() {
            self.seen = None;
        }
        false
    }

    /// Called before something is queued. If nothing waits, the timeouts of writing start now.
    pub(super) fn begin(&mut self) {
        if self.frames.is_empty() {
            self.past_bytes = 0;
            self.moved = Millis::now();
            self.meter = Meter::begin(self.moved);
        }
    }

    /// Sends as much as the kernel takes at once.
    pub(super) fn send_now(&mut self) {
        let Some(transport) = &self.transport else { return };
        let (mut taken, mut before) = (0, usize::MAX);
        while taken != before {
            before = taken;
            if self.frames.flush(&**transport, &mut taken).is_err() {
                break;
            }
        }
    }

    /// Gives the kernel as much as it takes. Returns `None` before the client has begun: until then others may still
    /// send over its connection. `rate` is needed if the kernel takes a part.
    pub(super) fn flush(&mut self, rate: impl FnOnce() -> Option<Rate>) -> Option<io::Result<Flushed>> {
        let (Some(transport), Some(_)) = (&self.transport, &self.carrier) else {
            return None;
        };
        let mut taken = 0;
        let flushed = self.frames.flush(&**transport, &mut taken);
        if taken > 0 {
            self.moved = Millis::now();
            if let (Ok(Flushed::Part), Some(rate)) = (flushed, rate()) {
                self.meter.moved(taken as u64, self.moved, rate);
            }
        }
        Some(flushed)
    }

    /// The owner that gets the connection back after a complete response.
    pub(super) fn take_owner(&mut self) -> Option<Box<dyn Owner>> {
        let is_complete = matches!(self.ending, Some(Ending::Complete));
        match self.carrier.take_if(|carrier| is_complete && carrier.is_shared())? {
            Carrier::Shared(owner) => Some(owner),
            Carrier::Own { .. } | Carrier::Foreign { .. } => None,
        }
    }

    /// Returns true if a response ends incomplete.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.ending, Some(Ending::Cutting))
    }

    /// Begins the end: queues the last frame, unless an earlier end has queued one.
    pub(super) fn end(&mut self, ending: Ending, protocol: Protocol, code: Option<u16>, reason: &str) {
        let has_spoken = self.ending.is_some();
        if !self.is_cut() {
            self.ending = Some(ending);
        }
        if !has_spoken {
            self.begin();
            let last = self.last_frame(protocol, code, reason);
            self.frames.push(Frame::Own(last));
        }
    }

    /// The close frame of a WebSocket, or the last chunk of a stream.
    pub(super) fn last_frame(&self, protocol: Protocol, code: Option<u16>, reason: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        match protocol {
            _ if self.is_cut() => {}
            Protocol::WebSocket => close_frame(&mut bytes, code, reason),
            Protocol::EventStream { chunked: true } | Protocol::Stream { chunked: true } => {
                bytes = self.remainder.last_chunk();
            }
            _ => {}
        }
        bytes
    }

    /// Called once the kernel has everything. If that includes the last frame, the time of the peer begins, and the
    /// server's half of the connection is closed, unless the server waits for the peer's close frame or another request
    /// may follow.
    pub(super) fn all_sent(&mut self, protocol: Protocol, awaits_answer: bool) -> AllSent {
        let is_short = self.remainder.is_short();
        // Before the client has begun, its carrier is unknown.
        let (Some(ending), Some(carrier)) = (&mut self.ending, &self.carrier) else {
            return AllSent::Open;
        };
        let goes_on = carrier.goes_on() && !is_short;
        if goes_on && carrier.is_shared() && !matches!(ending, Ending::Cutting) {
            *ending = Ending::Complete;
        }
        if let Ending::Sending { patience } = *ending {
            let queued = self
                .transport
                .as_ref()
                .map_or(0, |transport| transport.unacknowledged());
            *ending = Ending::Waiting(Wait::begin(patience, queued, Millis::now()));
        }
        let Ending::Waiting(wait) = ending else {
            return AllSent::Over;
        };
        if awaits_answer || replace(&mut wait.is_shut, true) {
            return AllSent::Waits(wait.deadline());
        }
        let Some(transport) = &self.transport else {
            return AllSent::Waits(wait.deadline());
        };
        if let Protocol::Stream { .. } = protocol {
            transport.give_back(match goes_on {
                true => AfterResponse::NextRequest,
                false => AfterResponse::Close,
            });
        }
        let is_gone = transport.shut_down(Shutdown::Write).is_err();
        // An HTTP/2 stream reports nothing more after the end of both halves.
        if is_gone || (transport.own_events().is_some() && protocol != Protocol::WebSocket) {
            return AllSent::Over;
        }
        AllSent::Waits(wait.deadline())
    }

    /// The timeout of an end that has begun; not later than `now` if the end is over. While the peer takes bytes of the
    /// kernel's queue, the timeout moves.
    pub(super) fn end_deadline(&mut self, rate: Rate, now: Millis) -> Option<Millis> {
        let ending = self.ending.as_mut()?;
        if let Ending::Waiting(wait) = ending {
            let queued = || {
                self.transport
                    .as_ref()
                    .map_or(0, |transport| transport.unacknowledged())
            };
            if wait.deadline() <= now && wait.goes_on(queued(), rate, now) {
                return Some(wait.deadline());
            }
        }
        Some(ending.deadline())
    }
}
