//! Turns bytes into requests: reads and frames what a peer sends, and stores bodies. What needs the disk is left to the
//! spooler.

use super::{Connection, Next, State};
use crate::clock::{Millis, Nanos};
use crate::config::Config;
use crate::http::http1::CONTINUE;
use crate::http::refusal::Refusal;
use crate::limits::meter::Meter;
use crate::stream::output::{FileParts, Flush};
use crate::stream::Stream;
use crate::transport::poller::Interest;
use crate::transport::READ_TURN;
use fairlead_wire::http1::{ChunkedDecoder, Framing};
use fairlead_wire::http2::begins_with_preface;
use rustix::io::Errno;

/// Longest trailer section of a chunked body.
const TRAILER_BYTES: usize = 8 * 1024;

/// What a read does if a body has to be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    Write,
    Leave,
}

impl Connection {
    /// One turn of the spooler: stores what was read of a large body, and reads more. `Wait` asks for another turn when
    /// more has arrived.
    pub(crate) fn store(&mut self, scratch: &mut [u8], config: &Config, now: Millis) -> Next {
        if let State::Body {
            unstored,
            meter,
            handed,
            ..
        } = &mut self.state
        {
            // The client is not charged for the wait for the spooler or for a slow disk.
            meter.forgive(now - *handed);
            let unstored = std::mem::take(unstored);
            let next = self.feed_body(&unstored, config, now);
            if next != Next::Wait(Interest::Read) {
                return next;
            }
        }
        let next = self.read(scratch, config, now, Disk::Write);
        if let State::Body { meter, .. } = &mut self.state {
            meter.forgive(Millis::now() - now);
        }
        next
    }

    /// Leaves what was read of the body to the spooler.
    fn store_later(&mut self, read: Vec<u8>, now: Millis) -> Next {
        if let State::Body { unstored, handed, .. } = &mut self.state {
            *unstored = read;
            *handed = now;
        }
        Next::Store
    }

    pub(super) fn read(&mut self, scratch: &mut [u8], config: &Config, now: Millis, disk: Disk) -> Next {
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
            let count = match self.stream.transport().receive(&mut scratch[..most]) {
                Ok(0) if self.ends_with_stream() => return self.complete(),
                Ok(0) => return Next::Close,
                Ok(count) => count,
                Err(Errno::AGAIN) => return self.wait_for_more(config),
                Err(Errno::INTR) => continue,
                Err(Errno::PROTO) => return self.linger(now),
                Err(_) => return Next::Close,
            };
            let next = self.feed(&scratch[..count], config, now);
            turn += count;
            if next != Next::Wait(Interest::Read) {
                return next;
            }
            if count < most {
                return self.wait_for_more(config);
            }
            if turn >= READ_TURN {
                self.forgive(now);
                return next;
            }
        }
    }

    /// A client may take long to send more: no memory is reserved for that meanwhile.
    fn wait_for_more(&mut self, config: &Config) -> Next {
        self.give_back_reserved(&config.request_totals);
        Next::Wait(Interest::Read)
    }

    /// Whether the body ends with what is received.
    fn ends_with_stream(&self) -> bool {
        matches!(self.state, State::Body { .. }) && self.stream.request.head.framing == Framing::Stream
    }

    /// A request of HTTP/2, whose head is in the input. `has_body`: whether something follows it.
    pub(crate) fn begin_stream(&mut self, has_body: bool, config: &Config, now: Millis) -> Next {
        self.awaited = None;
        let (memory, totals) = (self.stream.input_memory(), &config.request_totals);
        // The session has admitted it.
        self.space.count_memory(totals, memory);
        let Stream { request, input, .. } = &mut self.stream;
        match request.head.parse(input, &config.head_limits()) {
            Ok(true) => {}
            Ok(false) => return Next::Refuse(Refusal::from(fairlead_wire::Error::InvalidFieldName)),
            Err(error) => return Next::Refuse(error.into()),
        }
        request.becomes_http2(has_body);
        // The parser knows only bodies of HTTP/1. It has refused all other expectations.
        let mut names = request.head.fields.iter().map(|field| field.name.of(input));
        request.head.expect_continue = has_body && names.any(|name| name.eq_ignore_ascii_case(b"expect"));
        self.state = State::Head { since: now };
        self.begin_body(config, now)
    }

    /// Restarts the meter: a client that has sent more than one turn reads is not slow.
    fn forgive(&mut self, now: Millis) {
        if let State::Body { meter, .. } = &mut self.state {
            *meter = Meter::begin(now);
        }
    }

    /// Whether the next bytes of the body go to a file.
    fn needs_disk(&self) -> bool {
        matches!(self.state, State::Body { .. }) && self.space.permit.is_some()
    }

    fn feed(&mut self, bytes: &[u8], config: &Config, now: Millis) -> Next {
        if matches!(self.state, State::Body { .. }) {
            return self.feed_body(bytes, config, now);
        }
        self.stream.input.extend_from_slice(bytes);
        self.parse_head(config, now)
    }

    /// Parses the head, if all of it has arrived.
    pub(crate) fn parse_head(&mut self, config: &Config, now: Millis) -> Next {
        if let State::Idle = self.state {
            self.state = State::Head { since: now };
        }
        if self.awaited.is_some() {
            match self.read_introduction(config) {
                Ok(true) if !self.stream.input.is_empty() => {}
                Ok(true) => {
                    self.state = State::Idle;
                    return Next::Wait(Interest::Read);
                }
                Ok(false) => return Next::Wait(Interest::Read),
                Err(refusal) => return Next::Refuse(refusal),
            }
        }
        if config.http2 && self.served == 0 && self.may_begin_http2() {
            match begins_with_preface(&self.stream.input) {
                Some(true) => return Next::Multiplex,
                Some(false) => {}
                None => return Next::Wait(Interest::Read),
            }
        }
        let limits = config.head_limits();
        let Stream { request, input, .. } = &mut self.stream;
        match request.head.parse_on(input, &limits, &mut self.progress) {
            Ok(true) => self.begin_body(config, now),
            Ok(false) => Next::Wait(Interest::Read),
            Err(_) if is_tls(input) => Next::Refuse(Refusal::Tls),
            Err(error) => Next::Refuse(error.into()),
        }
    }

    /// True if a client may begin with HTTP/2: unless TLS has agreed on HTTP/1.1 (RFC 9113 §3.2). The parser of HTTP/1
    /// refuses the preface then.
    fn may_begin_http2(&self) -> bool {
        let transport = self.stream.transport();
        let has_agreed_on_http1 = transport.session().is_some_and(|session| session.is_http1);
        !transport.is_for_one_response() && !has_agreed_on_http1
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

    fn begin_body(&mut self, config: &Config, now: Millis) -> Next {
        if let Err(refusal) = self.take_head(config) {
            return Next::Refuse(refusal);
        }
        let decoder = match self.stream.request.head.framing {
            Framing::Empty | Framing::Length(0) => return self.complete(),
            _ if self.stream.lacks_tls(config) => return self.complete_without_body(),
            Framing::Length(length) if is_over(length, config) => return Next::Refuse(Refusal::BodyTooLarge),
            Framing::Length(_) | Framing::Stream => None,
            Framing::Chunked => Some(Box::new(ChunkedDecoder::new(TRAILER_BYTES))),
        };
        self.state = State::Body {
            meter: Meter::begin(now),
            decoder,
            began: now,
            waits: None,
            unstored: Vec::new(),
            handed: now,
        };
        let rest = std::mem::take(&mut self.stream.input);
        if rest.is_empty() && self.stream.request.head.expect_continue {
            self.stream.output.buffer().extend_from_slice(CONTINUE);
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

    /// Sends an interim response. The body is not read before all of it is sent.
    pub(super) fn send_interim(&mut self) -> Next {
        match self.stream.flush(FileParts::Leave) {
            Ok(Flush::Done) => Next::Wait(Interest::Read),
            Ok(_) => Next::Wait(Interest::Write),
            Err(_) => Next::Close,
        }
    }

    fn feed_body(&mut self, bytes: &[u8], config: &Config, now: Millis) -> Next {
        let (before, framing) = (self.stream.request.body.len(), self.stream.request.head.framing);
        let State::Body { decoder, .. } = &mut self.state else {
            return Next::Close;
        };
        let mut decoder = decoder.take();
        let mut stored = Ok(());
        let mut keep = |part: &[u8]| {
            if stored.is_ok() && !is_over(self.stream.request.body.len() + part.len() as u64, config) {
                let memory_bytes = self.memory_for(part.len(), config);
                stored = self.stream.request.body.push(part, memory_bytes, &config.temp_dir);
            } else if stored.is_ok() {
                stored = Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
            }
        };
        let (consumed, done) = match &mut decoder {
            Some(decoder) => match decoder.decode(bytes, &mut keep) {
                Ok(progress) => (progress.consumed, progress.done),
                Err(error) => return Next::Refuse(error.into()),
            },
            None if framing == Framing::Stream => {
                keep(bytes);
                (bytes.len(), false)
            }
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
        let moved = self.stream.request.body.len() - before;
        if let State::Body {
            decoder: place, meter, ..
        } = &mut self.state
        {
            *place = decoder;
            meter.moved(moved, now, config.body_rate());
        }
        match stored {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Next::Refuse(Refusal::BodyTooLarge),
            Err(error) => Next::Refuse(Refusal::BodyNotStored(error.kind().into())),
            Ok(()) if done => {
                self.stream.input.extend_from_slice(&bytes[consumed..]);
                self.complete()
            }
            Ok(()) => Next::Wait(Interest::Read),
        }
    }

    fn wait_for_descriptor(&mut self, now: Millis) -> Next {
        if let State::Body { waits, .. } = &mut self.state {
            *waits = Some(now);
        }
        Next::PutOff
    }

    /// Whether the body cannot be stored because there is no descriptor.
    pub(crate) fn waits_for_descriptor(&self) -> bool {
        matches!(self.state, State::Body { waits: Some(_), .. })
    }

    /// Start of that wait.
    pub(crate) fn has_waited_since(&self) -> Option<Millis> {
        match self.state {
            State::Body { waits, .. } => waits,
            _ => None,
        }
    }

    /// Continues to read the body, when this connection is next among those that wait, unless there is still no
    /// descriptor. The client is not charged for the wait. `is_next`: for a descriptor, others may wait for, too.
    pub(crate) fn go_on(&mut self, config: &Config, now: Millis, is_next: bool) -> Next {
        if let Err(next) = self.make_room(READ_TURN, config, is_next) {
            return next;
        }
        if let State::Body { meter, waits, .. } = &mut self.state {
            meter.forgive(now - waits.take().unwrap_or(now));
        }
        Next::Wait(Interest::Read)
    }

    /// Nothing is read now, but a connection that has failed is closed.
    pub(super) fn look_for_peer(&self) -> Next {
        match self.stream.transport().has_received() {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Next::Wait(Interest::Nothing),
            Err(_) => Next::Close,
        }
    }

    /// The client will send the request again.
    fn complete_without_body(&mut self) -> Next {
        self.has_unread_body = true;
        self.stream.request.head.keep_alive = false;
        self.complete()
    }

    fn complete(&mut self) -> Next {
        if self.stream.request.body.finish().is_err() {
            return Next::Refuse(Refusal::BodyNotReadable);
        }
        self.settle_space();
        self.stream.request.arrived = Nanos::now();
        if let State::Body { began, .. } = self.state {
            self.stream.request.body_wait = self.stream.request.arrived - Nanos::from(began);
        }
        self.state = State::Ready;
        Next::Ready
    }
}

/// Whether somebody begins a TLS handshake where HTTP is spoken without (RFC 8446 §5.1).
fn is_tls(input: &[u8]) -> bool {
    input.starts_with(&[22, 3])
}

fn is_over(length: u64, config: &Config) -> bool {
    config.body_max_bytes > 0 && length > config.body_max_bytes
}
