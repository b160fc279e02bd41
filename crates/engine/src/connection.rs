//! One peer: bytes to requests. Reads, frames and refuses; what is to be done next is its answer to the reactor.
//!
//! ```text
//!            bytes            head complete          body complete
//!   Idle ───────────▶ Head ───────────────▶ Body ───────────────▶ Ready ──▶ (app runs) ──▶ Flush ──▶ Idle
//!     │                 │ no body: straight to Ready                                          │
//!     └── time-out ─────┴──▶ refused (408, 4xx, 5xx) ──▶ Linger ──▶ gone ◀── connection: close┘
//! ```

mod space;

use crate::body::Body;
use crate::clock::{as_milliseconds, milliseconds};
use crate::config::Config;
use crate::descriptors::Counted;
use crate::holding::Key;
use crate::listener::Origin;
use crate::meter::Meter;
use crate::output::{Files, Flush, Output, Spill};
use crate::place::Place;
use crate::poller::Interest;
use crate::spool::Slowness;
use fairlead_wire::http1::{ChunkedDecoder, Framing, Head, HeadProgress};
use rustix::io::{self, Errno};
use rustix::net;
use space::Space;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes of one turn: a peer that sends faster than this lets others have theirs.
const READ_TURN: usize = 256 * 1024;

/// How long the rest of a refused request is read and thrown away, so that the answer is not lost to a reset.
pub(crate) const LINGER_MILLISECONDS: u64 = 2_000;

/// Longest trailer section of a chunked body.
const TRAILER_BYTES: usize = 8 * 1024;

/// Why a request is refused by the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

impl From<fairlead_wire::Error> for Refusal {
    fn from(error: fairlead_wire::Error) -> Refusal {
        Refusal {
            status: error.status(),
            reason: error.name(),
        }
    }
}

/// What the owner of a connection has to do with it now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the request.
    Ready,
    /// Let the reactor wait.
    Wait(Interest),
    /// Let it wait for a descriptor.
    PutOff,
    /// Let the sender send a file, or what is spooled.
    Send,
    /// Let the spooler store what comes of a large body.
    Store,
    /// Answer with this and close.
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
    /// An answer is on its way. `late`: its deadline has come, and the sender is to find out whether the client takes more.
    Flush { meter: Meter, then: Then, late: bool },
    /// Everything is said; what still comes is thrown away.
    Linger,
}

/// What follows an answer.
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
    socket: Arc<Counted<OwnedFd>>,
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
        socket: Arc<Counted<OwnedFd>>,
        place: Place,
        origin: Arc<Origin>,
        peer: Option<SocketAddr>,
        now: u64,
    ) -> Connection {
        Connection {
            socket,
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
        self.space.permit = matches!(body, Body::File(..)).then(|| config.descriptors.for_guest());
        self.body = body;
        self.arrived = arrived;
        self.served = served;
        self.state = State::Ready;
        matches!(self.head.parse(&self.input, &config.head_limits()), Ok(true)).then_some(self)
    }

    /// As if the request had been complete at that time, in nanoseconds.
    #[cfg(test)]
    pub(crate) fn complete_at(mut self, arrived: u64) -> Connection {
        (self.state, self.arrived) = (State::Ready, arrived);
        self
    }

    pub(crate) fn key(&self) -> Key {
        self.place.key()
    }

    /// What becomes of the socket when the connection goes is to be said here.
    pub(crate) fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    pub(crate) fn socket(&self) -> &Arc<Counted<OwnedFd>> {
        &self.socket
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
            State::Flush { .. } if !self.output.is_at_file() => self.flush_late(config, now, Files::Leave),
            State::Flush { ref mut late, .. } => {
                *late = true;
                Next::Send
            }
            State::Head { .. } => Next::Refuse(Refusal {
                status: 408,
                reason: "head took too long",
            }),
            State::Body { waits: Some(_), .. } => Next::Refuse(Refusal {
                status: 503,
                reason: "no descriptor for the body's file",
            }),
            State::Body { .. } => Next::Refuse(Refusal {
                status: 408,
                reason: "body came too slowly",
            }),
            _ => Next::Close,
        }
    }

    /// Whether what expired is a client that did not take its answer.
    pub(crate) fn is_flushing(&self) -> bool {
        matches!(self.state, State::Flush { .. })
    }

    /// The socket is readable or writable, as asked for.
    pub(crate) fn step(&mut self, scratch: &mut [u8], config: &Config, now: u64) -> Next {
        match self.state {
            State::Flush { .. } => self.flush(config, now, Files::Leave),
            State::Linger => self.discard(scratch),
            State::Body { waits: Some(_), .. } => self.look_for_peer(),
            _ => self.read(scratch, config, now, Disk::Leave),
        }
    }

    /// One turn of the spooler: stores what has come of a large body, and what comes. `Wait` asks for another turn when there is
    /// more.
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
            let count = match receive(&self.socket, &mut scratch[..most]) {
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
            Framing::Length(length) if is_over(length, config) => return too_large(),
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
            self.output.buffer().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            if self.output.flush(&self.socket, Files::Leave).is_err() {
                return Next::Close;
            }
        }
        if rest.is_empty() {
            return Next::Wait(Interest::Read);
        }
        if self.memory_for(rest.len(), config) == 0 {
            return self.store_later(rest, now);
        }
        self.feed_body(&rest, config, now)
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
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => too_large(),
            Err(_) => Next::Refuse(Refusal {
                status: 507,
                reason: "no room for the body in the temporary folder",
            }),
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
        match net::recv(&self.socket, &mut [0; 1], net::RecvFlags::PEEK) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Next::Wait(Interest::Nothing),
            Err(_) => Next::Close,
        }
    }

    fn complete(&mut self) -> Next {
        if self.body.finish().is_err() {
            return Next::Refuse(Refusal {
                status: 500,
                reason: "the body's temporary file cannot be read",
            });
        }
        self.settle_space();
        self.state = State::Ready;
        self.arrived = crate::clock::nanoseconds();
        Next::Ready
    }

    /// The answer is written as far as the app is concerned: send it, then go on with the next request.
    pub(crate) fn answered(&mut self, close: bool, config: &Config, now: u64) -> Next {
        self.answer_later(close, now);
        self.flush(config, now, Files::Leave)
    }

    /// The same for a connection that has had its turn: it is flushed when it has the next one.
    pub(crate) fn answer_later(&mut self, close: bool, now: u64) -> Next {
        self.served += 1;
        self.forget_body();
        let parsed = self.head.len.min(self.input.len());
        if parsed == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..parsed);
        }
        self.progress = HeadProgress::default();
        self.begin_flush(if close { Then::Close } else { Then::NextRequest }, now);
        Next::Wait(Interest::Write)
    }

    fn forget_body(&mut self) {
        self.body = Body::Empty;
        self.space = Space::default();
    }

    fn begin_flush(&mut self, then: Then, now: u64) {
        self.state = State::Flush {
            meter: Meter::begin(now),
            then,
            late: false,
        };
    }

    /// One turn of the sender: at most one slice of a file. `Send` asks for another turn.
    pub(crate) fn send(&mut self, config: &Config, now: u64) -> Next {
        if self.is_late() {
            return self.flush_late(config, now, Files::Send);
        }
        self.flush(config, now, Files::Send)
    }

    /// Whether the sender has been asked for a client that seems to take nothing any more.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self.state, State::Flush { late: true, .. })
    }

    /// Bytes that came after the request, which is over for the server: whoever speaks on this socket next needs them.
    pub(crate) fn take_read_ahead(&mut self) -> Vec<u8> {
        let parsed = self.head.len.min(self.input.len());
        self.input.split_off(parsed)
    }

    /// Adds body bytes to the output; see [`Output::push`].
    pub(crate) fn push_output(&mut self, bytes: &[u8], spill: Spill<'_>) -> io::Result<usize> {
        self.output.push(&self.socket, bytes, spill, Files::Leave)
    }

    /// Hands the kernel what it takes of the output, but for files.
    pub(crate) fn flush_output(&mut self) -> io::Result<Flush> {
        self.output.flush(&self.socket, Files::Leave)
    }

    /// An answer of the server itself is in the output: send it and throw away what the client still has to say.
    pub(crate) fn refused(&mut self, now: u64) -> Next {
        self.forget_body();
        self.input.clear();
        self.begin_flush(Then::Linger, now);
        match self.output.flush(&self.socket, Files::Leave) {
            Ok(Flush::Done) => self.linger(now),
            // An error page may be more than the socket takes at once.
            Ok(_) => Next::Wait(Interest::Write),
            Err(_) => Next::Close,
        }
    }

    fn linger(&mut self, now: u64) -> Next {
        if net::shutdown(&self.socket, net::Shutdown::Write).is_err() {
            return Next::Close;
        }
        self.state = State::Linger;
        self.idle_since = now;
        Next::Wait(Interest::Read)
    }

    fn flush(&mut self, config: &Config, now: u64, files: Files) -> Next {
        let before = self.output.progress();
        let State::Flush { then, meter, .. } = &mut self.state else {
            return Next::Close;
        };
        let then = *then;
        let flushed = self.output.flush(&self.socket, files);
        // A slow disk is not the client's fault.
        let now = if files == Files::Send { milliseconds() } else { now };
        match flushed {
            Ok(Flush::Done) => {}
            Ok(flushed) => {
                let taken = self.output.progress() - before;
                if flushed == Flush::Turn && taken > 0 {
                    // It takes whatever it is offered.
                    *meter = Meter::begin(now);
                } else {
                    meter.moved(taken, now, config.write_rate());
                }
                let is_for_the_sender = flushed == Flush::Turn && self.output.is_at_file();
                return if is_for_the_sender {
                    Next::Send
                } else {
                    Next::Wait(Interest::Write)
                };
            }
            Err(_) => return Next::Close,
        }
        match then {
            Then::NextRequest => {}
            // Unread bytes would turn our close into a reset that may overtake the answer.
            Then::Close if !self.has_unread() => return Next::Close,
            Then::Close | Then::Linger => return self.linger(now),
        }
        self.state = State::Idle;
        self.idle_since = now;
        if self.input.is_empty() {
            Next::Wait(Interest::Read)
        } else {
            self.parse_head(config, now)
        }
    }

    /// Whether the client has sent more than was read, or has been dealt with.
    fn has_unread(&self) -> bool {
        let flags = net::RecvFlags::PEEK | net::RecvFlags::DONTWAIT;
        !self.input.is_empty() || matches!(net::recv(&self.socket, &mut [0; 1], flags), Ok((1.., _)))
    }

    /// The poller speaks up only when a third of the socket's buffer is free, and a slow reader may need longer for that
    /// than its time-out: whether it takes anything at all shows when it is offered more.
    fn flush_late(&mut self, config: &Config, now: u64, files: Files) -> Next {
        if let State::Flush { late, .. } = &mut self.state {
            *late = false;
        }
        let before = self.output.progress();
        let next = self.flush(config, now, files);
        let stands_still = self.output.progress() == before || self.deadline(config) <= now;
        if matches!(next, Next::Wait(Interest::Write) | Next::Send) && stands_still {
            // Without this the kernel would keep, for minutes, megabytes that nobody reads.
            self.place.reset();
            return Next::Close;
        }
        next
    }

    /// How slow its client takes an answer that is written, if it keeps memory that others could use, or, with `from_disk`,
    /// room on the disk.
    pub(crate) fn slowness(&self, now: u64, from_disk: bool) -> Option<Slowness> {
        let keeps = self.is_flushing() && (from_disk && self.output.is_spooling() || self.output.holds_memory());
        self.output.slowness(now).filter(|_| keeps)
    }

    fn discard(&mut self, scratch: &mut [u8]) -> Next {
        for _ in 0..READ_TURN / scratch.len() {
            match receive(&self.socket, scratch) {
                Ok(0) => return Next::Close,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Next::Close,
            }
        }
        Next::Wait(Interest::Read)
    }
}

fn receive(socket: &OwnedFd, space: &mut [u8]) -> io::Result<usize> {
    net::recv(socket, space, net::RecvFlags::empty()).map(|(count, _)| count)
}

fn is_over(length: u64, config: &Config) -> bool {
    config.body_max_bytes > 0 && length > config.body_max_bytes
}

fn too_large() -> Next {
    Next::Refuse(Refusal {
        status: 413,
        reason: "body too large",
    })
}
