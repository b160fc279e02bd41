//! One request and its answer, as an [`App`](crate::App) sees them: the head and body that came, and a writer that frames
//! what goes back (RFC 9112 §6, §7).
//!
//! Nothing here blocks and nothing is lost when the app stops half-way: [`Exchange`] is ended by the engine, which closes
//! the connection if the answer is not whole.

use crate::body::Body;
use crate::clock::DateCache;
use crate::connection::Connection;
use crate::engine::Engine;
use crate::listener::Origin;
use crate::output::{Flush, Spill};
use crate::realtime::{is_own_field, Client, Given, Upgrade};
use fairlead_wire::{fields, has_no_body, reason, Head, Span, Version};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Why a response field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// Name or value hold what may not stand in a field (RFC 9110 §5.1, §5.5).
    Splitting,
    /// A content-length that is none, or another one than before.
    Length,
}

impl FieldError {
    /// The error in words, for [`Exchange::blame`].
    pub fn fault(self) -> &'static str {
        match self {
            FieldError::Splitting => "a response field that could split the answer was left out",
            FieldError::Length => "a content-length that is none, or contradicts another one, was left out",
        }
    }
}

/// The client is gone: whatever the app still writes is for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// Status or method forbid a body.
    None,
    /// Bytes that are still to come.
    Length(u64),
    Chunked,
    /// Inside a chunk, of which bytes are still to come.
    Chunk(u64),
    /// The end of the connection ends the body, or the app frames it itself.
    Raw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    NotStarted,
    EarlyHints,
    Head,
    /// The head of an answer after which the connection is a client.
    Upgrade(Upgrade, Given),
    Body(BodyFraming),
    Ended,
}

/// What the app's fields said about the framing.
#[derive(Default)]
struct Announced {
    length: Option<u64>,
    /// Whether the transfer-encoding that the app applies ends with `chunked`, if it applies any.
    chunked: Option<bool>,
    date: bool,
}

/// A request to be answered.
pub struct Exchange<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) engine: &'a Engine,
    pub(crate) date: &'a mut DateCache,
    pub(crate) phase: Phase,
    announced: Announced,
    pub(crate) status: u16,
    close: bool,
    /// Length of the output before this answer: where to cut if it has to be taken back.
    start: usize,
    body_bytes: u64,
    /// Whether the kernel may have some of this answer.
    flushed: bool,
    gone: bool,
    faulty: Option<&'static str>,
    /// What the connection becomes.
    pub(crate) client: Option<Arc<Client>>,
    hijacked: bool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(connection: &'a mut Connection, engine: &'a Engine, date: &'a mut DateCache) -> Exchange<'a> {
        let close = !connection.head.keep_alive;
        let start = connection.output.buffer().len();
        Exchange {
            connection,
            engine,
            date,
            phase: Phase::NotStarted,
            announced: Announced::default(),
            status: 0,
            close,
            start,
            body_bytes: 0,
            flushed: false,
            gone: false,
            faulty: None,
            client: None,
            hijacked: false,
        }
    }

    /// The parsed head; its spans refer to [`Exchange::bytes`].
    pub fn head(&self) -> &Head {
        &self.connection.head
    }

    /// The bytes that the head was parsed from.
    pub fn bytes(&self) -> &[u8] {
        &self.connection.input
    }

    /// The bytes of one span of the head.
    pub fn text(&self, span: Span) -> &[u8] {
        span.of(&self.connection.input)
    }

    /// The whole body, which the caller may keep.
    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.connection.body)
    }

    /// Where the request came to.
    pub fn origin(&self) -> &Origin {
        self.connection.origin()
    }

    /// Where it came from; `None` for a Unix socket.
    pub fn peer(&mut self) -> Option<SocketAddr> {
        self.connection.peer()
    }

    /// Whether an answer has been begun.
    pub fn has_started(&self) -> bool {
        !matches!(self.phase, Phase::NotStarted | Phase::EarlyHints)
    }

    /// Whether the app may send interim answers.
    pub fn offers_early_hints(&self) -> bool {
        self.engine.config.early_hints
    }

    /// Whether the answer has a body that can be seen by the client; if not, the app need not make one.
    pub fn wants_body(&self) -> bool {
        !matches!(self.phase, Phase::Body(BodyFraming::None) | Phase::Ended) && !self.gone
    }

    fn is_head_request(&self) -> bool {
        self.text(self.head().method) == b"HEAD"
    }

    /// Begins an interim answer (RFC 8297), whose fields follow. False when there can be none: it is switched off, the
    /// client speaks HTTP/1.0, or the final answer has begun.
    pub fn start_early_hints(&mut self) -> bool {
        if self.phase != Phase::NotStarted || self.head().version == Version::Http10 || !self.engine.config.early_hints
        {
            return false;
        }
        self.connection
            .output
            .buffer()
            .extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        self.phase = Phase::EarlyHints;
        true
    }

    /// Ends the interim answer and sends it.
    pub fn end_early_hints(&mut self) {
        if self.phase == Phase::EarlyHints {
            self.connection.output.buffer().extend_from_slice(b"\r\n");
            self.phase = Phase::NotStarted;
            self.flush();
            self.flushed = false;
            self.start = self.connection.output.buffer().len();
        }
    }

    /// Takes back an interim answer that was begun and not ended.
    pub fn cancel_early_hints(&mut self) {
        if self.phase == Phase::EarlyHints {
            self.connection.output.buffer().truncate(self.start);
            self.phase = Phase::NotStarted;
        }
    }

    /// Begins the final answer.
    pub fn start(&mut self, status: u16) {
        self.cancel_early_hints();
        self.phase = Phase::Head;
        self.status = status;
        let buffer = self.connection.output.buffer();
        if status == 200 {
            buffer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
            return;
        }
        buffer.extend_from_slice(b"HTTP/1.1 ");
        buffer.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        buffer.push(b' ');
        buffer.extend_from_slice(reason(status).as_bytes());
        buffer.extend_from_slice(b"\r\n");
    }

    /// Adds one field line. Framing fields are taken as announcements; `connection` is the server's business but for
    /// `close`.
    ///
    /// # Errors
    /// If the field is left out because it may not be sent.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldError> {
        if !fields::is_valid_field_name(name) || !fields::is_valid_field_value(value) {
            return Err(FieldError::Splitting);
        }
        if self.phase == Phase::EarlyHints {
            if !is_of_the_connection(name) {
                push_field(self.connection.output.buffer(), name, value);
            }
            return Ok(());
        }
        if let Phase::Upgrade(_, given) = &mut self.phase {
            if !is_own_field(name) {
                given.note(name);
                push_field(self.connection.output.buffer(), name, value);
            }
            return Ok(());
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"date") => self.announced.date = true,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.close |= fields::has_member(value, b"close");
                return Ok(());
            }
            10 if name.eq_ignore_ascii_case(b"keep-alive") => return Ok(()),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = std::str::from_utf8(value)
                    .ok()
                    .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                let length = length.and_then(|text| text.parse().ok()).ok_or(FieldError::Length)?;
                if self.announced.length.is_some_and(|before| before != length) {
                    return Err(FieldError::Length);
                }
                self.announced.length = Some(length);
                return Ok(());
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let last = fields::members(value).last();
                self.announced.chunked = Some(last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")));
                // RFC 9112 §6.1: neither to a client of 1.0 nor where there is no body.
                if self.head().version == Version::Http10 || has_no_body(self.status) {
                    return Ok(());
                }
            }
            _ => {}
        }
        push_field(self.connection.output.buffer(), name, value);
        Ok(())
    }

    /// The content-length that the app announced.
    pub fn announced_length(&self) -> Option<u64> {
        self.announced.length
    }

    /// Whether the app has applied a transfer-encoding, so that only it knows the bytes of the body.
    pub fn has_own_framing(&self) -> bool {
        self.announced.chunked.is_some()
    }

    /// Ends the head. `total` is the length of the body where it is known; without it the body is chunked, or for
    /// HTTP/1.0 ended by the end of the connection.
    pub fn end_head(&mut self, total: Option<u64>) {
        let is_http10 = self.head().version == Version::Http10;
        let is_head = self.is_head_request();
        let length = self.announced.length.or(total);
        let framing = if has_no_body(self.status) {
            BodyFraming::None
        } else if self.has_own_framing() {
            BodyFraming::Raw
        } else {
            match length {
                Some(length) => BodyFraming::Length(length),
                None if is_http10 => BodyFraming::Raw,
                None => BodyFraming::Chunked,
            }
        };
        // Without `chunked` as the last coding only the end of the connection ends the body (RFC 9112 §6.3).
        self.close |= framing == BodyFraming::Raw && (is_http10 || self.announced.chunked != Some(true));
        // What began before the drain ends its connection as well.
        self.close |= self.engine.is_draining();
        let close = self.close;
        let date = self.date.text();
        let buffer = self.connection.output.buffer();
        match framing {
            BodyFraming::Length(length) => {
                buffer.extend_from_slice(b"content-length: ");
                buffer.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
                buffer.extend_from_slice(b"\r\n");
            }
            BodyFraming::Chunked if !is_head => buffer.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            _ => {}
        }
        if !self.announced.date {
            buffer.extend_from_slice(b"date: ");
            buffer.extend_from_slice(date);
            buffer.extend_from_slice(b"\r\n");
        }
        if close {
            buffer.extend_from_slice(b"connection: close\r\n");
        } else if is_http10 {
            buffer.extend_from_slice(b"connection: keep-alive\r\n");
        }
        buffer.extend_from_slice(b"\r\n");
        self.phase = Phase::Body(if is_head { BodyFraming::None } else { framing });
    }

    /// Adds body bytes. Returns how many were taken: fewer than all when neither the client nor memory nor disk take
    /// more; then [`Exchange::wait_for_client`] and offer the rest again.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        let Phase::Body(framing) = self.phase else {
            return Ok(bytes.len());
        };
        if self.gone {
            return Err(Gone);
        }
        match framing {
            BodyFraming::None => Ok(bytes.len()),
            BodyFraming::Raw => self.push(bytes),
            BodyFraming::Length(left) => {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let taken = self.push(&bytes[..wanted])?;
                self.phase = Phase::Body(BodyFraming::Length(left - taken as u64));
                if wanted < bytes.len() {
                    self.faulty = Some("the body is longer than the announced content-length; the rest was left out");
                }
                Ok(if taken == wanted { bytes.len() } else { taken })
            }
            BodyFraming::Chunked if bytes.is_empty() => Ok(0),
            BodyFraming::Chunked => {
                let mut line = [0u8; 20];
                let mut rest = &mut line[..];
                let _ = write!(rest, "{:x}\r\n", bytes.len());
                let unused = rest.len();
                let used = line.len() - unused;
                self.connection.output.buffer().extend_from_slice(&line[..used]);
                self.write_chunk(bytes, bytes.len() as u64)
            }
            BodyFraming::Chunk(left) => self.write_chunk(bytes, left),
        }
    }

    /// Goes on with a chunk whose size has been written: it has to become as long as that.
    fn write_chunk(&mut self, bytes: &[u8], left: u64) -> Result<usize, Gone> {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.phase = Phase::Body(BodyFraming::Chunk(left));
        let taken = self.push(&bytes[..wanted])?;
        self.phase = Phase::Body(BodyFraming::Chunk(left - taken as u64));
        if taken as u64 == left {
            self.connection.output.buffer().extend_from_slice(b"\r\n");
            self.phase = Phase::Body(BodyFraming::Chunked);
        }
        Ok(taken)
    }

    /// Adds a file as the body: `length` bytes from `offset`. They never enter this process.
    pub fn write_file(&mut self, file: File, offset: u64, length: u64) {
        if let Phase::Body(BodyFraming::Length(left)) = self.phase {
            let length = length.min(left);
            self.connection.output.push_file(file, offset, offset + length);
            self.body_bytes += length;
            self.phase = Phase::Body(BodyFraming::Length(left - length));
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        let spill = Spill {
            memory_bytes: self.engine.config.response_memory_bytes,
            disk_bytes: self.engine.config.response_disk_bytes,
            directory: &self.engine.config.temp_dir,
        };
        let taken = self.connection.push_output(bytes, spill).map_err(|_| self.lost())?;
        self.body_bytes += taken as u64;
        Ok(taken)
    }

    /// Hands what was written to the kernel, as far as it takes it at once: for bodies that come piece by piece. False
    /// when the client is gone.
    pub fn flush(&mut self) -> bool {
        self.flushed = true;
        match self.connection.flush_output() {
            Ok(Flush::Done | Flush::Pending) => true,
            Err(_) => {
                self.lost();
                false
            }
        }
    }

    /// Blocks until the client takes more, at most for the write time-out. Call it without holding any lock of a language.
    ///
    /// # Errors
    /// When the client is gone or took nothing for that long.
    pub fn wait_for_client(&mut self) -> Result<(), Gone> {
        use rustix::event::{poll, PollFd, PollFlags, Timespec};
        let timeout: Duration = self.engine.config.write_timeout;
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos() as _,
        };
        let mut fds = [PollFd::new(self.connection.socket(), PollFlags::OUT)];
        let waited = poll(&mut fds, Some(&timeout));
        let before = self.connection.output.progress();
        // Poll speaks up only when a third of the socket's buffer is free: a slow reader shows when it is offered more.
        let has_moved =
            self.flush() && (self.connection.output.is_empty() || self.connection.output.progress() > before);
        match waited {
            Ok(1..) | Err(rustix::io::Errno::INTR) if !self.gone => Ok(()),
            Ok(0) if has_moved => Ok(()),
            _ => Err(self.lost()),
        }
    }

    /// Whether the kernel has everything that was written.
    pub fn is_flushed(&mut self) -> bool {
        self.flush() && self.connection.output.is_empty()
    }

    /// Whether what follows is framed in chunks; `None` when nothing can follow.
    pub(crate) fn stream_framing(&self) -> Option<bool> {
        match self.phase {
            Phase::Body(BodyFraming::Chunked) if !self.gone => Some(true),
            Phase::Body(BodyFraming::Raw | BodyFraming::Length(1..)) if !self.gone => Some(false),
            _ => None,
        }
    }

    /// Gives the socket away (Rack SPEC, "Hijacking"): from now on it is the app's business. What was read of it beyond the
    /// request comes first. The engine forgets the connection once the app has returned.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub fn hijack(&mut self) -> std::io::Result<OwnedFd> {
        let ahead = self.connection.take_read_ahead();
        let socket = if ahead.is_empty() {
            self.connection.socket().try_clone()?
        } else {
            crate::tunnel::open(self.connection.socket(), ahead)?
        };
        self.hijacked = true;
        self.phase = Phase::Ended;
        Ok(socket)
    }

    /// Whether the socket is the app's.
    pub fn is_hijacked(&self) -> bool {
        self.hijacked
    }

    /// Ends the head of an answer whose body the app writes to the socket itself: it lasts until the connection ends.
    pub fn end_head_for_hijack(&mut self) {
        self.close = true;
        self.announced.chunked.get_or_insert(false);
        self.end_head(None);
    }

    fn lost(&mut self) -> Gone {
        self.gone = true;
        self.close = true;
        Gone
    }

    /// Takes back an answer of which nothing is on the wire yet, so that another can be given. False if it is too late.
    pub fn take_back(&mut self) -> bool {
        let is_given_away = self.hijacked || self.client.is_some();
        if is_given_away || self.flushed || self.body_bytes > 0 || !self.connection.output.is_unsent() {
            return false;
        }
        self.connection.output.buffer().truncate(self.start);
        self.phase = Phase::NotStarted;
        self.announced = Announced::default();
        true
    }

    /// Says that the answer cannot be completed: the connection will be closed, so that the client can tell.
    pub fn abort(&mut self) {
        self.phase = Phase::Ended;
        self.lost();
    }

    /// Notes what was wrong with the answer; it is logged once, with the request's target.
    pub fn blame(&mut self, fault: &'static str) {
        self.faulty = Some(fault);
    }

    /// Ends the answer and hands it to the kernel, so that the client has it before the app tidies up.
    pub fn finish(&mut self) {
        self.end_body();
        self.flush();
    }

    /// A whole answer without a body of the app's: status, a short text and nothing else.
    pub fn answer_plainly(&mut self, status: u16) {
        self.start(status);
        let text = reason(status);
        let _ = self.field(b"content-type", b"text/plain; charset=utf-8");
        self.end_head(Some(text.len() as u64 + 1));
        let _ = self.write(text.as_bytes());
        let _ = self.write(b"\n");
    }

    fn end_body(&mut self) {
        if self.phase == Phase::NotStarted {
            self.faulty = Some("the app gave no answer");
            self.answer_plainly(500);
        }
        match self.phase {
            Phase::Body(BodyFraming::Chunked) => self.connection.output.buffer().extend_from_slice(b"0\r\n\r\n"),
            Phase::Body(BodyFraming::Length(left)) if left > 0 && !self.gone => {
                self.faulty = Some("the body is shorter than the announced content-length; the connection is closed");
                self.close = true;
            }
            Phase::Head | Phase::Upgrade(..) | Phase::Body(BodyFraming::Chunk(_)) => self.gone = true,
            _ => {}
        }
        self.phase = Phase::Ended;
    }

    /// Ends the answer; called by the engine when the app has returned.
    pub(crate) fn end(mut self) -> Ended {
        self.end_body();
        Ended {
            status: self.status,
            body_bytes: self.body_bytes,
            close: self.close,
            gone: self.gone,
            faulty: self.faulty,
            client: self.client,
            hijacked: self.hijacked,
        }
    }
}

/// How an exchange ended.
pub(crate) struct Ended {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) close: bool,
    pub(crate) gone: bool,
    pub(crate) faulty: Option<&'static str>,
    pub(crate) client: Option<Arc<Client>>,
    pub(crate) hijacked: bool,
}

/// Fields that say something of the final answer or its connection, and nothing in an interim one (RFC 9110 §15.2).
fn is_of_the_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"connection", b"content-length", b"keep-alive", b"transfer-encoding"];
    NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn push_field(buffer: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let start = buffer.len();
    buffer.extend_from_slice(name);
    buffer[start..].make_ascii_lowercase();
    buffer.extend_from_slice(b": ");
    buffer.extend_from_slice(value);
    buffer.extend_from_slice(b"\r\n");
}
