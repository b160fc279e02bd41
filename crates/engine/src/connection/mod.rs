//! Connection to one peer: turns bytes into requests, and sends responses. Each step returns the next task of the
//! connection's owner ([`Next`]). With TLS, a handshake comes before the first `Idle`.
//!
//! ```text
//!            bytes            head complete          body complete
//!   Idle ───────────▶ Head ───────────────▶ Body ───────────────▶ Ready ──▶ (app runs) ──▶ Flush ──▶ Idle
//!     │                 │ no body: straight to Ready                                          │
//!     └── timeout ──────┴──▶ refused (408, 4xx, 5xx) ──▶ Linger ──▶ gone ◀── connection: close┘
//! ```

pub(crate) mod adopting;
mod after_response;
mod body;
pub(crate) mod connections;
pub(crate) mod handshake;
mod incoming;
mod lingering;
mod outgoing;
pub(crate) mod parked;
pub(crate) mod place;
mod proxy_header;
mod reading;
pub(crate) mod relayed;
pub(crate) mod saved_response;
pub(crate) mod seats;
mod sending;
pub(crate) mod slow_request;
mod space;
mod stepping;
pub(crate) mod stream_queue;

use crate::clock::{Millis, Nanos};
use crate::config::Config;
use crate::connection::place::Place;
use crate::files::{LookUp, LOOK_STEP};
use crate::http::refusal::Refusal;
use crate::stream::Stream;
use crate::transport::poller::{Interest, Key};
use crate::transport::LINGER;
use fairlead_wire::http1::HeadProgress;
use fairlead_wire::ProxyVersions;
use handshake::HandshakeSeat;
use incoming::Incoming;
use outgoing::Outgoing;
use slow_request::SlowRequest;
use space::Space;
use std::sync::Arc;
use std::time::Duration;

/// Next task of a connection's owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the request.
    Ready,
    /// Park it until an event.
    Wait(Interest),
    /// Park it until there is a descriptor.
    PutOff,
    /// Let the file sender send a file or the spooled part.
    Send,
    /// Let the spooler store the incoming part of a large body.
    Store,
    /// Let the handshake thread continue the handshake.
    Shake,
    /// The client speaks HTTP/2: make it an HTTP/2 connection.
    Multiplex,
    /// Let another thread look up the file: it may have to wait for a disk.
    LookUp,
    /// Continue without the result of the lookup, which takes too long.
    LookedInVain,
    /// Migrate it to another worker, with the bytes of the next request. If that is not possible, parse them.
    Migrate,
    /// Park it until more of the response has come from the worker that runs its request.
    AwaitAnswer,
    /// Give it to its successor: the kernel has the response so far.
    TakeOver,
    /// Forward bytes in both directions between the peer and the worker that runs its request.
    GiveAway,
    /// Refuse the request with this, and close.
    Refuse(Refusal),
    /// Close it.
    Close,
}

#[derive(Debug)]
enum ConnectionState {
    /// TLS handshake.
    Handshake {
        since: Millis,
        /// Processor time that the handshake has taken.
        computed: Duration,
        seat: HandshakeSeat,
    },
    /// No byte of a request has arrived.
    Idle,
    /// Part of a head, or of a PROXY header before it, has arrived; `since` is the arrival of its first byte.
    Head { since: Millis },
    /// The head is complete, but not the body.
    Body(Incoming),
    /// A complete request waits or runs.
    Ready,
    /// A native thread looks for the file that the request may be for.
    LookUp { seen: Millis, look_up: Arc<LookUp> },
    /// A response is being sent.
    Flush(Outgoing),
    /// Another worker runs the request, and its response is relayed.
    Relayed(Box<relayed::RelayedResponse>),
    /// Everything is sent; further input is discarded.
    Linger,
}

/// The step that follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    NextRequest,
    /// The next request, in another worker, because this one drains.
    Migrate,
    Close,
    /// Linger, after a request that was not read to its end.
    Linger,
    /// The [`Successor`] sends the rest of the response.
    TakeOver,
}

/// Continues a response of which the application has written a part, as soon as the kernel has that part. If it is
/// dropped earlier, the connection has ended.
pub(crate) trait Successor: Send + std::fmt::Debug {
    fn take_over(self: Box<Self>, connection: Box<Connection>);
}

/// A connection and its current request.
#[derive(Debug)]
pub(crate) struct Connection {
    place: Place,
    pub(crate) stream: Stream,
    state: ConnectionState,
    /// Time at which the connection became idle.
    idle_since: Millis,
    /// Requests served.
    served: u64,
    /// Parsed part of an incomplete head in the input.
    progress: HeadProgress,
    space: Space,
    /// True if the body of the request is not read, because it makes no difference.
    has_unread_body: bool,
    /// Accepted versions of the PROXY header, if it is still expected.
    awaited: Option<ProxyVersions>,
    /// Its turn in the queue of requests that share its connection.
    turn: Option<stream_queue::StreamTurn>,
    successor: Option<Box<dyn Successor>>,
    /// Logs the request when its response is sent, if it was slow.
    slow_request: Option<Box<SlowRequest>>,
}

impl Connection {
    pub(crate) fn new(place: Place, stream: Stream, now: Millis) -> Connection {
        let awaited = stream.endpoint().proxy_protocol;
        Connection {
            place,
            stream,
            state: ConnectionState::Idle,
            idle_since: now,
            served: 0,
            progress: HeadProgress::default(),
            space: Space::default(),
            has_unread_body: false,
            awaited,
            turn: None,
            successor: None,
            slow_request: None,
        }
    }

    pub(crate) fn key(&self) -> Key {
        self.place.key()
    }

    /// Makes it a request of an HTTP/2 connection. If there are others, each of its bytes counts.
    fn with_budget(mut self, is_alone: bool) -> Connection {
        let budget = self.stream.transport().budget().cloned();
        self.space = match is_alone {
            true => Space::with_budget(budget),
            false => Space::of_one_of_many(budget),
        };
        self
    }

    /// Its place, its transport and its input, for an HTTP/2 connection that replaces it.
    pub(crate) fn into_http2(mut self) -> (Place, Stream) {
        self.place.becomes_http2();
        (self.place, self.stream)
    }

    /// Place of the connection, to decide the fate of the socket at its end.
    pub(crate) fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    /// True if the body of the current request is not read: the connection must end with the response.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.has_unread_body
    }

    /// Time at which the current request was complete.
    pub(crate) fn arrived(&self) -> Nanos {
        self.stream.request.arrived
    }

    /// Time since when the current request has waited for its turn among the requests of all connections.
    pub(crate) fn waits_since(&self) -> Nanos {
        self.arrived() + self.stream.request.line_wait
    }

    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// Logs the slow request when its response is sent.
    pub(crate) fn log_when_sent(&mut self, slow_request: SlowRequest) {
        self.slow_request = Some(Box::new(slow_request));
    }

    /// True if no byte of a request has arrived.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, ConnectionState::Idle | ConnectionState::Handshake { .. })
    }

    /// Time at which the reactor has to check the connection even without an event.
    pub(crate) fn deadline(&self, config: &Config) -> Millis {
        match &self.state {
            ConnectionState::Handshake { since, .. } => *since + config.handshake_timeout,
            ConnectionState::Idle if self.served == 0 => self.idle_since + config.head_timeout,
            ConnectionState::Idle => self.idle_since + config.keep_alive_timeout,
            ConnectionState::Head { since } => *since + config.head_timeout,
            ConnectionState::Body(incoming) => incoming.deadline(config),
            ConnectionState::Flush(_) if self.stream.transport().is_relayed() => Millis::NEVER,
            ConnectionState::Flush(outgoing) => outgoing.deadline(config),
            ConnectionState::Relayed(response) => response.deadline(config),
            ConnectionState::Linger => self.idle_since + LINGER,
            ConnectionState::LookUp { seen, .. } => *seen + LOOK_STEP,
            ConnectionState::Ready => Millis::NEVER,
        }
    }

    /// Waits for the lookup of its request.
    pub(crate) fn await_look_up(&mut self, look_up: &Arc<LookUp>, now: Millis) {
        self.state = ConnectionState::LookUp {
            seen: now,
            look_up: Arc::clone(look_up),
        };
    }

    /// Next deadline, if it is not due now: a lookup gets its time in steps.
    pub(crate) fn next_deadline(&mut self, now: Millis) -> Option<Millis> {
        let ConnectionState::LookUp { seen, look_up } = &mut self.state else {
            return None;
        };
        look_up.wait_on(std::mem::replace(seen, now), now)
    }

    /// True if its request waits for the lookup `wanted`.
    pub(crate) fn awaits(&self, wanted: &Arc<LookUp>) -> bool {
        matches!(&self.state, ConnectionState::LookUp { look_up, .. } if Arc::ptr_eq(look_up, wanted))
    }

    /// Ends the wait of its request; returns the lookup.
    pub(crate) fn end_look_up(&mut self) -> Option<Arc<LookUp>> {
        match std::mem::replace(&mut self.state, ConnectionState::Ready) {
            ConnectionState::LookUp { look_up, .. } => Some(look_up),
            _ => None,
        }
    }

    /// True if a response is being sent.
    pub(crate) fn is_flushing(&self) -> bool {
        matches!(self.state, ConnectionState::Flush(_))
    }

    /// Takes the parsed head, and applies the settings for its method, its address and keep-alive.
    pub(super) fn take_head(&mut self, config: &Config) -> Result<(), Refusal> {
        self.stream.take_head(config)?;
        let request = &mut self.stream.request;
        request.head.keep_alive &= config.persists_after(self.served);
        if config.supports(request.method()) {
            Ok(())
        } else {
            Err(Refusal::MethodNotSupported)
        }
    }

    /// Drops the request and its resources.
    pub(super) fn forget_request(&mut self) {
        self.stream.forget_request();
        self.space = Space::default();
        self.progress = HeadProgress::default();
    }
}
