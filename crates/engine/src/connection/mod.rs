//! One peer: turns bytes into requests, and sends responses. Each step returns what its owner has to do next
//! ([`Next`]). With TLS, a handshake comes before the first `Idle`.
//!
//! ```text
//!            bytes            head complete          body complete
//!   Idle ───────────▶ Head ───────────────▶ Body ───────────────▶ Ready ──▶ (app runs) ──▶ Flush ──▶ Idle
//!     │                 │ no body: straight to Ready                                          │
//!     └── time-out ─────┴──▶ refused (408, 4xx, 5xx) ──▶ Linger ──▶ gone ◀── connection: close┘
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
pub(crate) mod seats;
mod sending;
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
use space::Space;
use std::sync::Arc;
use std::time::Duration;

/// What the owner of a connection has to do with it next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the request.
    Ready,
    /// Park it until an event.
    Wait(Interest),
    /// Park it until there is a descriptor.
    PutOff,
    /// Let the file sender send a file, or what is spooled.
    Send,
    /// Let the spooler store what arrives of a large body.
    Store,
    /// Let the handshake go on, on the thread for that.
    Shake,
    /// The client speaks HTTP/2: make it a session.
    Multiplex,
    /// Let another thread look for the file: it may have to wait for a disk.
    LookUp,
    /// Go on without the result of that look-up, which takes too long.
    LookedInVain,
    /// Hand it to another worker, with what has arrived of the next request. If that is not possible, parse it.
    Migrate,
    /// Park it until more of the answer has come from the worker that runs its request.
    AwaitAnswer,
    /// Let its successor have it: the kernel has the response so far.
    TakeOver,
    /// Let bytes go both ways between the peer and the worker that runs its request.
    GiveAway,
    /// Refuse the request with this, and close.
    Refuse(Refusal),
    /// Close it.
    Close,
}

#[derive(Debug)]
enum ConnectionState {
    /// TLS is being agreed on.
    Handshake {
        since: Millis,
        /// Processor time that it has taken.
        computed: Duration,
        seat: HandshakeSeat,
    },
    /// No byte of a request has arrived.
    Idle,
    /// Part of a head, or of the header of a proxy before it, has arrived; `since` is when its first byte did.
    Head { since: Millis },
    /// The head is complete, the body is not.
    Body(Incoming),
    /// A complete request is here, or runs.
    Ready,
    /// A native thread looks for the file that the request may be for.
    LookUp { seen: Millis, look_up: Arc<LookUp> },
    /// A response is being sent.
    Flush(Outgoing),
    /// Another worker runs the request, and its answer is relayed.
    Relayed(Box<relayed::RelayedResponse>),
    /// Everything is sent; what still arrives is discarded.
    Linger,
}

/// What follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    NextRequest,
    /// The next request, in another worker, because this one drains.
    Migrate,
    Close,
    /// For a request that was not read to its end.
    Linger,
    /// The rest of the response, by its [`Successor`].
    TakeOver,
}

/// Goes on with a response of which the application has written a part, as soon as the kernel has that. If it is dropped before,
/// the connection has ended.
pub(crate) trait Successor: Send + std::fmt::Debug {
    fn take_over(self: Box<Self>, connection: Box<Connection>);
}

/// A connection and its current request.
#[derive(Debug)]
pub(crate) struct Connection {
    place: Place,
    pub(crate) stream: Stream,
    state: ConnectionState,
    /// When the connection became idle.
    idle_since: Millis,
    /// Requests served.
    served: u64,
    /// How much of an incomplete head in the input was already parsed.
    progress: HeadProgress,
    space: Space,
    /// Whether the body of the request is not read, because it makes no difference.
    has_unread_body: bool,
    /// The versions of the header in which a proxy names the client, if that is still to come.
    awaited: Option<ProxyVersions>,
    /// Its place in the line of those that share its connection.
    turn: Option<stream_queue::StreamTurn>,
    successor: Option<Box<dyn Successor>>,
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
        }
    }

    pub(crate) fn key(&self) -> Key {
        self.place.key()
    }

    /// The request is one of a session. Beside others, each of its bytes counts.
    fn with_budget(mut self, is_alone: bool) -> Connection {
        let budget = self.stream.transport().budget().cloned();
        self.space = match is_alone {
            true => Space::with_budget(budget),
            false => Space::of_one_of_many(budget),
        };
        self
    }

    /// Its place, its transport and what was received, for a session that takes its place.
    pub(crate) fn into_http2(self) -> (Place, Stream) {
        self.place.leave_poller();
        (self.place, self.stream)
    }

    /// The connection's place, to decide what happens to the socket at its end.
    pub(crate) fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    /// Whether the body of the current request is not read: the connection must end with the response.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.has_unread_body
    }

    /// When the current request was complete.
    pub(crate) fn arrived(&self) -> Nanos {
        self.stream.request.arrived
    }

    /// Since when the current request has waited for its turn among those of all connections.
    pub(crate) fn waits_since(&self) -> Nanos {
        self.arrived() + self.stream.request.line_wait
    }

    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// Whether nothing of a request has arrived.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, ConnectionState::Idle | ConnectionState::Handshake { .. })
    }

    /// When the reactor has to check the connection even without an event.
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

    /// Its request waits for a look-up.
    pub(crate) fn await_look_up(&mut self, look_up: &Arc<LookUp>, now: Millis) {
        self.state = ConnectionState::LookUp {
            seen: now,
            look_up: Arc::clone(look_up),
        };
    }

    /// When its deadline comes, if it has not come now: a look-up is given time in steps.
    pub(crate) fn next_deadline(&mut self, now: Millis) -> Option<Millis> {
        let ConnectionState::LookUp { seen, look_up } = &mut self.state else {
            return None;
        };
        look_up.wait_on(std::mem::replace(seen, now), now)
    }

    /// Whether its request waits for that look-up.
    pub(crate) fn awaits(&self, wanted: &Arc<LookUp>) -> bool {
        matches!(&self.state, ConnectionState::LookUp { look_up, .. } if Arc::ptr_eq(look_up, wanted))
    }

    /// Its request waits no more; returns the look-up.
    pub(crate) fn end_look_up(&mut self) -> Option<Arc<LookUp>> {
        match std::mem::replace(&mut self.state, ConnectionState::Ready) {
            ConnectionState::LookUp { look_up, .. } => Some(look_up),
            _ => None,
        }
    }

    /// Whether a response is being sent.
    pub(crate) fn is_flushing(&self) -> bool {
        matches!(self.state, ConnectionState::Flush(_))
    }

    /// Takes the head that was parsed: its method, its address and its keep-alive are those of the settings.
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

    /// Drops the request and what it has taken.
    pub(super) fn forget_request(&mut self) {
        self.stream.forget_request();
        self.space = Space::default();
        self.progress = HeadProgress::default();
    }
}
