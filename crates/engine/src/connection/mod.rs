//! One peer: turns bytes into requests, and sends responses. Each step returns what its owner has to do next
//! ([`Next`]).
//!
//! ```text
//!            bytes            head complete          body complete
//!   Idle ───────────▶ Head ───────────────▶ Body ───────────────▶ Ready ──▶ (app runs) ──▶ Flush ──▶ Idle
//!     │                 │ no body: straight to Ready                                          │
//!     └── time-out ─────┴──▶ refused (408, 4xx, 5xx) ──▶ Linger ──▶ gone ◀── connection: close┘
//! ```

pub(crate) mod connections;
pub(crate) mod parked;
pub(crate) mod place;
mod reading;
mod sending;
mod space;

use crate::clock::{Millis, Nanos};
use crate::cluster::waiting_room::Stage;
use crate::config::{Config, RemoteAddress};
use crate::connection::place::Place;
use crate::http::body::Body;
use crate::http::refusal::Refusal;
use crate::limits::meter::Meter;
use crate::stream::output::FileParts;
use crate::stream::Stream;
use crate::transport::poller::{Interest, Key};
use crate::transport::LINGER;
use fairlead_wire::http1::{ChunkedDecoder, HeadProgress};
use reading::Disk;
use space::Space;

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
    /// Hand it to another worker, with what has arrived of the next request. If that is not possible, parse it.
    HandOff,
    /// Refuse the request with this, and close.
    Refuse(Refusal),
    /// Close it.
    Close,
}

#[derive(Debug)]
enum State {
    /// No byte of a request has arrived.
    Idle,
    /// Part of a head, or of the line of a proxy before it, has arrived; `since` is when its first byte did.
    Head { since: Millis },
    /// The head is complete, the body is not.
    Body {
        meter: Meter,
        decoder: Option<Box<ChunkedDecoder>>,
        /// When the head was complete.
        began: Millis,
        /// Since when the body is not read, because it needs a file and there is no descriptor for one.
        waits: Option<Millis>,
        /// Bytes of the body that were read, for the spooler to store.
        unstored: Vec<u8>,
        /// When the connection was last handed to the spooler.
        handed: Millis,
    },
    /// A complete request is here, or runs.
    Ready,
    /// A response is being sent. `late`: its deadline has come, and the file sender should find out whether the client
    /// takes more.
    Flush { meter: Meter, then: Then, late: bool },
    /// Everything is sent; what still arrives is discarded.
    Linger,
}

/// What follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    NextRequest,
    /// The next request, in another worker, because this one drains.
    HandOff,
    Close,
    /// For a request that was not read to its end.
    Linger,
}

/// A connection and its current request.
#[derive(Debug)]
pub(crate) struct Connection {
    place: Place,
    pub(crate) stream: Stream,
    state: State,
    /// When the connection became idle.
    idle_since: Millis,
    /// Requests served.
    served: u64,
    /// How much of an incomplete head in the input was already parsed.
    progress: HeadProgress,
    space: Space,
    /// Whether the line in which the proxy names the client is still to come.
    awaits_proxy_line: bool,
}

impl Connection {
    pub(crate) fn new(place: Place, stream: Stream, config: &Config, now: Millis) -> Connection {
        Connection {
            place,
            stream,
            state: State::Idle,
            idle_since: now,
            served: 0,
            progress: HeadProgress::default(),
            space: Space::default(),
            awaits_proxy_line: config.remote_address == RemoteAddress::ProxyLine,
        }
    }

    /// Completes a connection that comes from another worker, together with its request. `None` if the head is not
    /// valid.
    pub(crate) fn adopted(
        mut self,
        input: Vec<u8>,
        body: Body,
        arrived: Nanos,
        served: u64,
        config: &Config,
    ) -> Option<Connection> {
        self.awaits_proxy_line = false;
        self.served = served;
        let request = &mut self.stream.request;
        self.space.permit = matches!(body, Body::File(..)).then(|| config.descriptors.for_body_of_transfer());
        request.body = body;
        request.arrived = arrived;
        let is_whole = matches!(request.head.parse(&input, &config.head_limits()), Ok(true));
        self.stream.input = input;
        let is_taken = self.take_head(config).is_ok();
        self.state = State::Ready;
        (is_whole && is_taken).then_some(self)
    }

    /// Completes a connection that another worker has handed off. What has arrived of its next request must still be
    /// parsed, if that is anything ([`Connection::parse_head`]).
    pub(crate) fn taken_over(&mut self, stage: Stage, input: Vec<u8>, served: u64, awaits_proxy_line: bool) {
        match stage {
            Stage::Idle { since } => self.idle_since = since,
            Stage::Head { since } => self.state = State::Head { since },
            Stage::Request { .. } => {}
        }
        self.awaits_proxy_line = awaits_proxy_line;
        self.served = served;
        self.stream.input = input;
    }

    /// How far the connection is with its next request, if another worker can take it over now.
    pub(crate) fn stage(&self) -> Option<Stage> {
        match self.state {
            State::Idle => Some(Stage::Idle { since: self.idle_since }),
            State::Head { since } => Some(Stage::Head { since }),
            State::Ready => Some(Stage::Request {
                arrived: self.arrived(),
            }),
            _ => None,
        }
    }

    /// Whether it has no request that is complete or half complete.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Idle | State::Head { .. })
    }

    pub(crate) fn awaits_proxy_line(&self) -> bool {
        self.awaits_proxy_line
    }

    pub(crate) fn key(&self) -> Key {
        self.place.key()
    }

    /// The connection's place, to decide what happens to the socket at its end.
    pub(crate) fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    /// When the current request was complete.
    pub(crate) fn arrived(&self) -> Nanos {
        self.stream.request.arrived
    }

    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// When the reactor has to check the connection even without an event.
    pub(crate) fn deadline(&self, config: &Config) -> Millis {
        match self.state {
            State::Idle if self.served == 0 => self.idle_since + config.head_timeout,
            State::Idle => self.idle_since + config.keep_alive_timeout,
            State::Head { since } => since + config.head_timeout,
            State::Body { waits: Some(since), .. } => since + config.body_timeout,
            State::Body { meter, .. } => meter.deadline(config.body_rate()),
            State::Flush { meter, .. } => meter.deadline(config.write_rate()),
            State::Linger => self.idle_since + LINGER,
            State::Ready => Millis::NEVER,
        }
    }

    /// The deadline has come. A client that has not sent a complete request is told so; one that takes no response or
    /// was idle is not.
    pub(crate) fn expire(&mut self, config: &Config, now: Millis) -> Next {
        match self.state {
            State::Flush { .. } if !self.stream.output.is_at_file() => self.flush_late(config, now, FileParts::Leave),
            State::Flush { ref mut late, .. } => {
                *late = true;
                Next::Send
            }
            State::Head { .. } => Next::Refuse(Refusal::HeadTooSlow),
            State::Body { waits: Some(_), .. } => Next::Refuse(Refusal::NoDescriptorForBody),
            State::Body { .. } => Next::Refuse(Refusal::BodyTooSlow),
            _ => Next::Close,
        }
    }

    /// Whether a response is being sent.
    pub(crate) fn is_flushing(&self) -> bool {
        matches!(self.state, State::Flush { .. })
    }

    /// The socket is readable or writable, as was asked for.
    pub(crate) fn step(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        match self.state {
            State::Flush { .. } => self.flush(config, now, FileParts::Leave),
            State::Linger => self.discard(scratch),
            State::Body { waits: Some(_), .. } => self.look_for_peer(),
            State::Body { .. } if !self.stream.output.is_empty() => self.send_interim(),
            _ => self.read(scratch, config, now, Disk::Leave),
        }
    }

    /// Drops the request and what it has taken.
    fn forget_request(&mut self) {
        self.stream.forget_request();
        self.space = Space::default();
        self.progress = HeadProgress::default();
    }
}
