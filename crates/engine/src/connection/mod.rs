//! One peer: bytes to requests. Reads, frames and refuses; what is to be done next is its response to the reactor.
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
use crate::config::Config;
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

/// Bytes of one turn: a peer that sends faster than this lets others have theirs.
const READ_TURN: usize = 256 * 1024;

/// What the owner of a connection has to do with it now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the request.
    Ready,
    /// Let the reactor wait.
    Wait(Interest),
    /// Let it wait for a descriptor.
    PutOff,
    /// Let the file sender send a file, or what is spooled.
    Send,
    /// Let the spooler store what comes of a large body.
    Store,
    /// Response with this and close.
    Refuse(Refusal),
    /// Drop it.
    Close,
}

#[derive(Debug)]
enum State {
    /// No byte of a request is here.
    Idle,
    /// Part of a head is here; `since` is when its first byte came.
    Head { since: Millis },
    /// The head is complete, the body is not.
    Body {
        meter: Meter,
        decoder: Option<Box<ChunkedDecoder>>,
        /// Since when it is not read, because it needs a file and there is no descriptor for that.
        waits: Option<Millis>,
        /// Bytes of it that were read and are to be stored by the spooler.
        unstored: Vec<u8>,
        /// When it was last handed to the spooler.
        handed: Millis,
    },
    /// A whole request is here, or runs.
    Ready,
    /// A response is on its way. `late`: its deadline has come, and the file sender is to find out whether the client takes
    /// more.
    Flush { meter: Meter, then: Then, late: bool },
    /// Everything is said; what still comes is thrown away.
    Linger,
}

/// What follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    NextRequest,
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
    /// Requests answered.
    served: u64,
    /// How much of a head that is in the input has been looked at.
    progress: HeadProgress,
    space: Space,
}

impl Connection {
    pub(crate) fn new(place: Place, stream: Stream, now: Millis) -> Connection {
        Connection {
            place,
            stream,
            state: State::Idle,
            idle_since: now,
            served: 0,
            progress: HeadProgress::default(),
            space: Space::default(),
        }
    }

    /// A connection whose request is complete already: it comes from another worker.
    pub(crate) fn adopted(
        mut self,
        input: Vec<u8>,
        body: Body,
        arrived: Nanos,
        served: u64,
        config: &Config,
    ) -> Option<Connection> {
        let request = &mut self.stream.request;
        self.space.permit = matches!(body, Body::File(..)).then(|| config.descriptors.for_body_of_transfer());
        request.body = body;
        request.arrived = arrived;
        let is_whole = matches!(request.head.parse(&input, &config.head_limits()), Ok(true));
        self.stream.input = input;
        self.stream.take_head();
        self.served = served;
        self.state = State::Ready;
        is_whole.then_some(self)
    }

    pub(crate) fn key(&self) -> Key {
        self.place.key()
    }

    /// What becomes of the socket when the connection goes is to be said here.
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

    /// When the reactor has to look at the connection even if nothing happens.
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

    /// The deadline has come. A client that owes us bytes is told so; one that takes none, or said nothing, is left.
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

    /// Whether what expired is a client that did not take its response.
    pub(crate) fn is_flushing(&self) -> bool {
        matches!(self.state, State::Flush { .. })
    }

    /// The socket is readable or writable, as asked for.
    pub(crate) fn step(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        match self.state {
            State::Flush { .. } => self.flush(config, now, FileParts::Leave),
            State::Linger => self.discard(scratch),
            State::Body { waits: Some(_), .. } => self.look_for_peer(),
            State::Body { .. } if !self.stream.output.is_empty() => self.send_interim(),
            _ => self.read(scratch, config, now, Disk::Leave),
        }
    }

    /// The request is over.
    fn forget_request(&mut self) {
        self.stream.forget_request();
        self.space = Space::default();
        self.progress = HeadProgress::default();
    }
}
