//! One peer: bytes to requests. Reads, frames and refuses; what is to be done next is its response to the reactor.
//!
//! ```text
//!            bytes            head complete          body complete
//!   Idle ───────────▶ Head ───────────────▶ Body ───────────────▶ Ready ──▶ (app runs) ──▶ Flush ──▶ Idle
//!     │                 │ no body: straight to Ready                                          │
//!     └── time-out ─────┴──▶ refused (408, 4xx, 5xx) ──▶ Linger ──▶ gone ◀── connection: close┘
//! ```

pub(crate) mod connections;
pub(crate) mod output;
pub(crate) mod parked;
pub(crate) mod place;
mod sending;
mod space;

use crate::clock::{as_milliseconds, milliseconds};
use crate::config::Config;
use crate::connection::output::{FileParts, Flush, Output};
use crate::connection::place::Place;
use crate::http::body::Body;
use crate::http::http1::CONTINUE;
use crate::http::refusal::Refusal;
use crate::limits::meter::Meter;
use crate::transport::listener::Origin;
use crate::transport::poller::{Interest, Key};
use crate::transport::{Link, LINGER_MILLISECONDS};
use fairlead_wire::http1::{ChunkedDecoder, Framing, Head, HeadProgress};
use rustix::io::Errno;
use space::Space;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes of one turn: a peer that sends faster than this lets others have theirs.
const READ_TURN: usize = 256 * 1024;

/// Longest trailer section of a chunked body.
const TRAILER_BYTES: usize = 8 * 1024;

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
    Head { since: u64 },
    /// The head is complete, the body is not.
    Body {
        meter: Meter,
        decoder: Option<Box<ChunkedDecoder>>,
        /// Since when it is not read, because it needs a file and there is no descriptor for that.
        waits: Option<u64>,
        /// Bytes of it that were read and are to be stored by the spooler.
        unstored: Vec<u8>,
        /// When it was last handed to the spooler, in milliseconds.
        handed: u64,
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

/// What a read does where a body has to be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    Write,
    Leave,
}

/// A connection and its current request.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Link,
    place: Place,
    origin: Arc<Origin>,
    peer: Option<SocketAddr>,
    state: State,
    /// Milliseconds at which the connection became idle.
    idle_since: u64,
    /// Nanoseconds at which the current request was complete.
    arrived: u64,
    /// Requests answered.
    served: u64,
    /// The head of the current request, then bytes of the next ones.
    pub(crate) input: Vec<u8>,
    /// How much of a head that is in `input` has been looked at.
    progress: HeadProgress,
    pub(crate) head: Head,
    pub(crate) body: Body,
    space: Space,
    pub(crate) output: Output,
}

impl Connection {
    pub(crate) fn new(
        transport: Link,
        place: Place,
        origin: Arc<Origin>,
        peer: Option<SocketAddr>,
        now: u64,
    ) -> Connection {
        Connection {
            transport,
            place,
            origin,
            peer,
            state: State::Idle,
            idle_since: now,
            arrived: 0,
            served: 0,
            input: Vec::new(),
            progress: HeadProgress::default(),
            head: Head::default(),
            body: Body::Empty,
            space: Space::default(),
            output: Output::default(),
        }
    }

    /// A connection whose request is complete already: it comes from another worker.
    pub(crate) fn adopted(
        mut self,
        input: Vec<u8>,
        body: Body,
        arrived: u64,
        served: u64,
        config: &Config,
    ) -> Option<Connection> {
        self.input = input;
        self.space.permit = matches!(body, Body::File(..)).then(|| config.descriptors.for_body_of_transfer());
        self.body = body;
        self.arrived = arrived;
        self.served = served;
        self.state = State::Ready;
        matches!(self.head.parse(&self.input, &config.head_limits()), Ok(true)).then_some(self)
    }

    pub(crate) fn key(&self) -> Key {
        self.place.key()
    }

    /// What becomes of the socket when the connection goes is to be said here.
    pub(crate) fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    pub(crate) fn transport(&self) -> &Link {
        &self.transport
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// The peer's address, as it was when the connection was accepted; `None` for a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// When the reactor has to look at the connection even if nothing happens, in milliseconds.
    pub(crate) fn deadline(&self, config: &Config) -> u64 {
        match self.state {
            State::Idle if self.served == 0 => self.idle_since + as_milliseconds(config.head_timeout),
            State::Idle => self.idle_since + as_milliseconds(config.keep_alive_timeout),
            State::Head { since } => since + as_milliseconds(config.head_timeout),
            State::Body { waits: Some(since), .. } => since + as_milliseconds(config.body_timeout),
            State::Body { meter, .. } => meter.deadline(config.body_rate()),
            State::Flush { meter, .. } => meter.deadline(config.write_rate()),
            State::Linger => self.idle_since + LINGER_MILLISECONDS,
            State::Ready => u64::MAX,
        }
    }

    /// The deadline has come. A client that owes us bytes is told so; one that takes none, or said nothing, is left.
    pub(crate) fn expire(&mut self, config: &Config, now: u64) -> Next {
        match self.state {
            State::Flush { .. } if !self.output.is_at_file() => self.flush_late(config, now, FileParts::Leave),
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
    pub(crate) fn step(&mut self, scratch: &mut [u8], config: &Config, now: u64) -> Next {
        match self.state {
            State::Flush { .. } => self.flush(config, now, FileParts::Leave),
            State::Linger => self.discard(scratch),
            State::Body { waits: Some(_), .. } => self.look_for_peer(),
            State::Body { .. } if !self.output.is_empty() => self.send_interim(),
            _ => self.read(scratch, config, now, Disk::Leave),
        }
    }

    /// One turn of the spooler: stores what has come of a large body, and what comes. `Wait` asks for another turn when
    /// there is more.
    pub(crate) fn store(&mut self, scratch: &mut [u8], config: &Config, now: u64) -> Next {
        if let State::Body {
            unstored,
            meter,
            handed,
            ..
        } = &mut self.state
        {
            // Neither the wait for its turn nor a slow disk is the client's fault.
            meter.forgive(now.saturating_sub(*handed));
            let unstored = std::mem::take(unstored);
            let next = self.feed_body(&unstored, config, now);
            if next != Next::Wait(Interest::Read) {
                return next;
            }
        }
        let next = self.read(scratch, config, now, Disk::Write);
        if let State::Body { meter, .. } = &mut self.state {
            meter.forgive(milliseconds().saturating_sub(now));
        }
        next
    }

    /// Leaves what has come of the body to the spooler.
    fn store_later(&mut self, read: Vec<u8>, now: u64) -> Next {
        if let State::Body { unstored, handed, .. } = &mut self.state {
            *unstored = read;
            *handed = now;
        }
        Next::Store
    }

    fn read(&mut self, scratch: &mut [u8], config: &Config, now: u64, disk: Disk) -> Next {
        let mut turn = 0;
        loop {
            let most = match self.make_room(scratch.len(), config, false) {
                Ok(most) => most,
                Err(Next::PutOff) => return self.wait_for_descriptor(now),
                Err(next) => return next,
            };
            if disk == Disk::Leave && self.needs_disk() {
                return self.store_later(Vec::new(), now);
            }
            let count = match self.transport.receive(&mut scratch[..most]) {
                Ok(0) => return Next::Close,
                Ok(count) => count,
                Err(Errno::AGAIN) => return Next::Wait(Interest::Read),
                Err(Errno::INTR) => continue,
                Err(_) => return Next::Close,
            };
            let next = self.feed(&scratch[..count], config, now);
            turn += count;
            if next != Next::Wait(Interest::Read) || count < most {
                return next;
            }
            if turn >= READ_TURN {
                self.forgive(now);
                return next;
            }
        }
    }

    /// The client has sent more than this turn takes: it is not the slow one.
    fn forgive(&mut self, now: u64) {
        if let State::Body { meter, .. } = &mut self.state {
            *meter = Meter::begin(now);
        }
    }

    /// Whether what comes next of the body goes to a file.
    fn needs_disk(&self) -> bool {
        matches!(self.state, State::Body { .. }) && self.space.permit.is_some()
    }

    fn feed(&mut self, bytes: &[u8], config: &Config, now: u64) -> Next {
        if matches!(self.state, State::Body { .. }) {
            return self.feed_body(bytes, config, now);
        }
        self.input.extend_from_slice(bytes);
        self.parse_head(config, now)
    }

    /// Looks for a whole head in what has arrived.
    pub(crate) fn parse_head(&mut self, config: &Config, now: u64) -> Next {
        if let State::Idle = self.state {
            self.state = State::Head { since: now };
        }
        let limits = config.head_limits();
        match self.head.parse_on(&self.input, &limits, &mut self.progress) {
            Ok(true) => self.begin_body(config, now),
            Ok(false) => Next::Wait(Interest::Read),
            Err(error) => Next::Refuse(error.into()),
        }
    }

    fn begin_body(&mut self, config: &Config, now: u64) -> Next {
        let decoder = match self.head.framing {
            Framing::Empty | Framing::Length(0) => return self.complete(),
            Framing::Length(length) if is_over(length, config) => return Next::Refuse(Refusal::BodyTooLarge),
            Framing::Length(_) => None,
            Framing::Chunked => Some(Box::new(ChunkedDecoder::new(TRAILER_BYTES))),
        };
        self.state = State::Body {
            meter: Meter::begin(now),
            decoder,
            waits: None,
            unstored: Vec::new(),
            handed: now,
        };
        let rest = self.input.split_off(self.head.len);
        if rest.is_empty() && self.head.expect_continue {
            self.output.buffer().extend_from_slice(CONTINUE);
            return self.send_interim();
        }
        if rest.is_empty() {
            return Next::Wait(Interest::Read);
        }
        if self.memory_for(rest.len(), config) == 0 {
            return self.store_later(rest, now);
        }
        self.feed_body(&rest, config, now)
    }

    /// Sends an interim response; the body is not read before all of it is sent.
    fn send_interim(&mut self) -> Next {
        match self.output.flush(&*self.transport, FileParts::Leave) {
            Ok(Flush::Done) => Next::Wait(Interest::Read),
            Ok(_) => Next::Wait(Interest::Write),
            Err(_) => Next::Close,
        }
    }

    fn feed_body(&mut self, bytes: &[u8], config: &Config, now: u64) -> Next {
        let (before, framing) = (self.body.len(), self.head.framing);
        let State::Body { decoder, .. } = &mut self.state else {
            return Next::Close;
        };
        let mut decoder = decoder.take();
        let mut stored = Ok(());
        let mut keep = |part: &[u8]| {
            if stored.is_ok() && !is_over(self.body.len() + part.len() as u64, config) {
                let memory_bytes = self.memory_for(part.len(), config);
                stored = self.body.push(part, memory_bytes, &config.temp_dir);
            } else if stored.is_ok() {
                stored = Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
            }
        };
        let (consumed, done) = match &mut decoder {
            Some(decoder) => match decoder.decode(bytes, &mut keep) {
                Ok(progress) => (progress.consumed, progress.done),
                Err(error) => return Next::Refuse(error.into()),
            },
            None => {
                let Framing::Length(length) = framing else {
                    return Next::Close;
                };
                let missing = length - before;
                let count = missing.min(bytes.len() as u64) as usize;
                keep(&bytes[..count]);
                (count, count as u64 == missing)
            }
        };
        let moved = self.body.len() - before;
        if let State::Body {
            decoder: place, meter, ..
        } = &mut self.state
        {
            *place = decoder;
            meter.moved(moved, now, config.body_rate());
        }
        match stored {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Next::Refuse(Refusal::BodyTooLarge),
            Err(_) => Next::Refuse(Refusal::BodyNotStored),
            Ok(()) if done => {
                self.input.extend_from_slice(&bytes[consumed..]);
                self.complete()
            }
            Ok(()) => Next::Wait(Interest::Read),
        }
    }

    fn wait_for_descriptor(&mut self, now: u64) -> Next {
        if let State::Body { waits, .. } = &mut self.state {
            *waits = Some(now);
        }
        Next::PutOff
    }

    /// Whether the body cannot be stored for want of a descriptor.
    pub(crate) fn waits_for_descriptor(&self) -> bool {
        matches!(self.state, State::Body { waits: Some(_), .. })
    }

    /// The next of those that wait: goes on reading the body, unless there still is no descriptor. The time of the wait was not
    /// the client's.
    pub(crate) fn go_on(&mut self, config: &Config, now: u64) -> Next {
        if let Err(next) = self.make_room(READ_TURN, config, true) {
            return next;
        }
        if let State::Body { meter, waits, .. } = &mut self.state {
            meter.forgive(now - waits.take().unwrap_or(now));
        }
        Next::Wait(Interest::Read)
    }

    /// Nothing is read now, but a peer that is gone need not be waited for.
    fn look_for_peer(&self) -> Next {
        match self.transport.has_received() {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Next::Wait(Interest::Nothing),
            Err(_) => Next::Close,
        }
    }

    fn complete(&mut self) -> Next {
        if self.body.finish().is_err() {
            return Next::Refuse(Refusal::BodyNotReadable);
        }
        self.settle_space();
        self.state = State::Ready;
        self.arrived = crate::clock::nanoseconds();
        Next::Ready
    }

    fn forget_body(&mut self) {
        self.body = Body::Empty;
        self.space = Space::default();
    }

    /// Bytes that came after the request, which is over for the server: whoever speaks on this socket next needs them.
    pub(crate) fn take_read_ahead(&mut self) -> Vec<u8> {
        let parsed = self.head.len.min(self.input.len());
        self.input.split_off(parsed)
    }
}

fn is_over(length: u64, config: &Config) -> bool {
    config.body_max_bytes > 0 && length > config.body_max_bytes
}
