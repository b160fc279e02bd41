//! The request head: request line and fields, parsed at once when complete (RFC 9112 §3, §5).
//!
//! `httparse` finds the parts. It tolerates some input that this server does not (bare line feeds, several empty lines,
//! fragments, bytes beyond ASCII in a target), so its result is checked for that. If it does not accept a head, `scan`
//! finds the exact error.

use super::fields::{has_member, members};
use super::framing::Framing;
use super::scan::{scan, HeadProgress, Scanned};
use super::target::{host_and_port, is_target_byte, Target};
use crate::{Error, Span};
use std::mem::MaybeUninit;

/// Most fields of a head, even if [`HeadLimits::fields`] is larger.
pub const MAX_FIELDS: usize = 128;

/// Most bytes of a method; the longest registered one has 17.
pub const MAX_METHOD_BYTES: usize = 64;

/// The limits of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes from the first byte to the end of the empty line.
    pub head_bytes: usize,
    /// Number of fields; at most [`MAX_FIELDS`].
    pub fields: usize,
    /// Bytes of the request target.
    pub target_bytes: usize,
}

/// The version of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, and later minor versions, which are handled in the same way (RFC 9110 §2.5).
    #[default]
    Http11,
    /// HTTP/2. Its heads are not parsed here, see [`http2`](crate::http2).
    Http2,
}

/// A header field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The name, in its original case.
    pub name: Span,
    /// The value, without white space around it.
    pub value: Span,
}

/// A request head. Its spans are positions in the parsed bytes. Meant to be reused: a connection parses all its
/// requests into the same `Head`, so memory for the fields is allocated once.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Bytes of the head, including an empty line before it and the empty line at its end: the body begins here.
    pub len: usize,
    /// The method, case-sensitive; any token (RFC 9110 §9.1).
    pub method: Span,
    /// The request target as sent.
    pub target: Span,
    /// The parts of the target.
    pub parts: Target,
    /// The version.
    pub version: Version,
    /// All fields, in the order in which they were sent.
    pub fields: Vec<Field>,
    /// The framing of the body.
    pub framing: Framing,
    /// True if the client lets the connection persist (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// True if the client waits for `100 Continue` before it sends the body. False if there is no body.
    pub expect_continue: bool,
    /// The authority of the request, from an absolute-form target, otherwise from Host. `None` only in HTTP/1.0.
    pub host: Option<Span>,
    /// True if the client offers another protocol: `Connection: upgrade` and Upgrade, in HTTP/1.1 (RFC 9110 §7.8).
    pub upgrade: bool,
    /// True if the fields ask for `100 Continue`.
    asks_to_continue: bool,
}

impl Head {
    /// Parses a request head at the start of `bytes`, which must be all bytes that have arrived.
    ///
    /// `Ok(true)`: the head is complete and `self` holds it. `Ok(false)`: the bytes are the beginning of a head,
    /// without errors so far. In this case and after an error the contents of `self` are meaningless.
    ///
    /// The result depends only on the bytes, not on earlier calls: it is the same for every split of a head. Every call
    /// reads from the start; [`Head::parse_on`] is for a head that arrives in pieces.
    pub fn parse(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<bool, Error> {
        self.parse_on(bytes, limits, &mut HeadProgress::default())
    }

    /// Does the same as [`Head::parse`] for a head that arrives in pieces: bytes that `progress` has covered are not
    /// read again until the head is complete, and then once. `progress` must be new for each head; `bytes` are always
    /// all bytes of it that have arrived.
    pub fn parse_on(&mut self, bytes: &[u8], limits: &HeadLimits, progress: &mut HeadProgress) -> Result<bool, Error> {
        let longest = limits.head_bytes.min(u32::MAX as usize);
        let window = &bytes[..bytes.len().min(longest)];
        let limits = &HeadLimits {
            fields: limits.fields.min(MAX_FIELDS),
            ..*limits
        };
        let is_new = progress.is_new();
        if is_new && self.find(window, limits) {
            return self.interpret(window).map(|()| true);
        }
        match scan(window, limits, progress)? {
            Scanned::Incomplete if bytes.len() >= longest => Err(Error::HeadTooLarge),
            Scanned::Incomplete => Ok(false),
            Scanned::Complete if !is_new && self.find(window, limits) => self.interpret(window).map(|()| true),
            Scanned::Later { minor, len } => {
                // `httparse` accepts only known versions. No client sends others, so the cost of a copy does not
                // matter.
                let mut known = window[..len].to_vec();
                known[minor] = b'1';
                self.parse(&known, limits)
            }
            // Unreachable as long as `httparse` accepts every head that `scan` accepts.
            Scanned::Complete => Err(Error::InvalidFieldName),
        }
    }

    /// Finds the parts of a complete head. False if the head has something that only `httparse` tolerates.
    #[inline]
    fn find(&mut self, window: &[u8], limits: &HeadLimits) -> bool {
        #[cfg(test)]
        super::scan::looked_at(window.len());
        let start = if window.starts_with(b"\r\n") { 2 } else { 0 };
        let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut []);
        match request.parse_with_uninit_headers(&window[start..], &mut slots[..limits.fields]) {
            Ok(httparse::Status::Complete(len)) => self.take(window, start, start + len, &request, limits),
            _ => false,
        }
    }

    /// Copies the positions that `httparse` found. False if the head has something that only `httparse` tolerates.
    #[inline]
    fn take(
        &mut self,
        bytes: &[u8],
        start: usize,
        len: usize,
        request: &httparse::Request<'_, '_>,
        limits: &HeadLimits,
    ) -> bool {
        let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
            return false;
        };
        let base = bytes.as_ptr() as usize;
        self.len = len;
        self.method = Span::within(base, method.as_bytes());
        self.target = Span::within(base, target.as_bytes());
        self.version = match minor {
            0 => Version::Http10,
            _ => Version::Http11,
        };
        let mut strict = self.method.start as usize == start
            && method.len() <= MAX_METHOD_BYTES
            && target.len() <= limits.target_bytes
            && target.bytes().all(is_target_byte)
            && bytes[..len].ends_with(b"\r\n\r\n");
        self.fields.clear();
        self.fields.extend(request.headers.iter().map(|header| {
            let name = Span::within(base, header.name.as_bytes());
            strict &= follows_line_end(bytes, name.start as usize);
            Field {
                name,
                value: Span::within(base, header.value),
            }
        }));
        strict
    }

    /// Derives the meaning of the fields and the target for the server itself.
    fn interpret(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let method = self.method.of(bytes);
        if method == b"CONNECT" {
            return Err(Error::UnsupportedMethod);
        }
        self.parts = Target::split(method, bytes, self.target)?;
        let mut noted = Noted::default();
        for field in &self.fields {
            noted.note(bytes, *field)?;
        }
        self.framing = Framing::of(self.version, noted.content_length, noted.transfer_encoding)?;
        self.host = self.authority(bytes, noted.host)?;
        let http11 = self.version == Version::Http11;
        self.keep_alive = !noted.close && (http11 || noted.keep_alive);
        self.asks_to_continue = noted.expect_continue && http11;
        self.expect_continue = self.asks_to_continue && self.framing.has_body();
        self.upgrade = noted.upgrade_named && noted.upgrade_offered && http11;
        Ok(())
    }

    /// Replaces the framing of the fields, for example by the stream in HTTP/2 (RFC 9113 §8.1).
    pub fn reframe(&mut self, framing: Framing) {
        self.framing = framing;
        self.expect_continue = self.asks_to_continue && framing.has_body();
    }

    /// RFC 9112 §3.2 and §3.2.2: HTTP/1.1 requires Host. If an absolute-form target names the host, Host is ignored,
    /// but must still be valid.
    ///
    /// The grammar allows an empty Host for targets without authority, but it names no server and an env cannot contain
    /// it, so it is refused like any other invalid Host.
    fn authority(&self, bytes: &[u8], host: Option<Span>) -> Result<Option<Span>, Error> {
        match host {
            None if self.version == Version::Http11 => return Err(Error::MissingHost),
            Some(host) if host_and_port(host.of(bytes)).is_none() => return Err(Error::InvalidHost),
            _ => {}
        }
        Ok(self.parts.authority.or(host))
    }
}

/// Returns true if CRLF precedes position `at`.
#[inline]
fn follows_line_end(bytes: &[u8], at: usize) -> bool {
    at >= 2 && bytes.get(at - 2..at) == Some(b"\r\n".as_slice())
}

/// Values of the fields that concern the server itself.
#[derive(Default)]
struct Noted<'a> {
    host: Option<Span>,
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    close: bool,
    keep_alive: bool,
    expect_continue: bool,
    upgrade_named: bool,
    upgrade_offered: bool,
}

impl<'a> Noted<'a> {
    /// Checks one field. Compares the length of its name first, which rules out most fields.
    #[inline]
    fn note(&mut self, bytes: &'a [u8], field: Field) -> Result<(), Error> {
        let name = field.name.of(bytes);
        let value = field.value.of(bytes);
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => once(&mut self.host, field.value, Error::DuplicateHost),
            6 if name.eq_ignore_ascii_case(b"expect") => self.expect(value),
            7 if name.eq_ignore_ascii_case(b"upgrade") => {
                self.upgrade_offered |= !value.is_empty();
                Ok(())
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.connection(value);
                Ok(())
            }
            14 if is_spelt(name, b"content-length")? => {
                once(&mut self.content_length, value, Error::DuplicateContentLength)
            }
            17 if is_spelt(name, b"transfer-encoding")? => {
                once(&mut self.transfer_encoding, value, Error::DuplicateTransferEncoding)
            }
            _ => Ok(()),
        }
    }

    fn connection(&mut self, value: &[u8]) {
        for option in members(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade_named |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), Error> {
        self.expect_continue |= has_member(value, b"100-continue");
        if members(value).all(|member| member.eq_ignore_ascii_case(b"100-continue")) {
            Ok(())
        } else {
            Err(Error::UnsupportedExpectation)
        }
    }
}

/// Stores the value of a field that may occur only once.
#[inline]
fn once<T>(place: &mut Option<T>, value: T, repeated: Error) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(repeated),
    }
}

/// Returns true if `name` is `field` (lower case), ignoring case. Returns an error if it only differs by underscores
/// instead of dashes.
#[inline]
fn is_spelt(name: &[u8], field: &[u8]) -> Result<bool, Error> {
    if name.eq_ignore_ascii_case(field) {
        return Ok(true);
    }
    let alike = name
        .iter()
        .zip(field)
        .all(|(&byte, &wanted)| byte.to_ascii_lowercase() == wanted || (byte == b'_' && wanted == b'-'));
    if alike {
        Err(Error::FramingLookalike)
    } else {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::looked_at;
    use super::*;

    const LIMITS: HeadLimits = HeadLimits {
        head_bytes: 64 * 1024,
        fields: 128,
        target_bytes: 64 * 1024,
    };

    /// Bytes that were read until the result, if they arrive in pieces of this size.
    fn work(bytes: &[u8], piece: usize) -> (usize, Result<bool, Error>) {
        let (mut head, mut progress) = (Head::default(), HeadProgress::default());
        let before = looked_at(0);
        let mut verdict = Ok(false);
        let mut end = 0;
        while verdict == Ok(false) && end < bytes.len() {
            end = (end + piece).min(bytes.len());
            verdict = head.parse_on(&bytes[..end], &LIMITS, &mut progress);
        }
        (looked_at(0) - before, verdict)
    }

    #[test]
    fn however_a_head_is_split_each_byte_is_read_only_a_few_times() {
        let long = "a".repeat(60_000);
        let request = "GET / HTTP/1.1\r\nHost: a\r\n";
        let fields: String = (0..120)
            .map(|number| format!("X-{number}: {}\r\n", "a".repeat(400)))
            .collect();
        let heads = [
            format!("{request}X: {long}\r\n\r\n"),
            format!("{request}{fields}\r\n"),
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
            format!("{request}{long}: b\r\n\r\n"),
        ];
        for head in heads {
            for piece in [1, 2, 7, 1_000, head.len()] {
                let (looked_at, verdict) = work(head.as_bytes(), piece);
                assert_eq!(verdict, Ok(true));
                assert!(looked_at <= 3 * head.len(), "{looked_at} of {} by {piece}", head.len());
            }
        }
        let faulty = [
            (format!("{request}X: {long}{long}"), Error::HeadTooLarge),
            (format!("{request}X{}: b", " ".repeat(60_000)), Error::SpaceBeforeColon),
            (format!("{request}X: {long}\0"), Error::NulByte),
        ];
        for (head, error) in faulty {
            let (looked_at, verdict) = work(head.as_bytes(), 1);
            assert_eq!(verdict, Err(error));
            assert!(looked_at <= 3 * head.len(), "{looked_at} of {}", head.len());
        }
    }
}
