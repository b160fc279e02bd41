//! A complete request that owns its bytes, independent of its connection.

use super::body::Body;
use crate::clock::Nanos;
use fairlead_wire::conditions::{evaluate, Outcome, Validators};
use fairlead_wire::content_encoding::Accepted;
use fairlead_wire::event_stream::wants_event_stream;
use fairlead_wire::ranges::Ranges;
use fairlead_wire::websocket::{handshake, negotiate, Context, Deflate, Handshake};
use fairlead_wire::{fields, trace_id, Framing, Head, Span, TargetForm, Version};
use std::time::Duration;

/// See the head of this file. Methods and field names are as they were sent.
#[derive(Debug, Default)]
pub struct Request {
    /// The bytes of the head; `head` has spans of them.
    bytes: Vec<u8>,
    pub(crate) head: Head,
    pub(crate) body: Body,
    /// The time when the request was complete.
    pub(crate) arrived: Nanos,
    /// The time between the end of the head and the end of the body.
    pub(crate) body_wait: Duration,
    /// The time that the request waited for other requests of its connection before it could be scheduled.
    pub(crate) line_wait: Duration,
    /// True once it is known that no other worker can run the request.
    pub(crate) has_to_stay: bool,
    pub(crate) waits: Waits,
}

/// The time that a complete request has waited for a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// In the queues of workers, until a thread began to run it.
    pub queue: Duration,
    /// In the waiting room.
    pub waiting_room: Duration,
}

impl Request {
    /// Takes the bytes of the parsed head from the start of `input`, and leaves the rest.
    pub(crate) fn take_head(&mut self, input: &mut Vec<u8>) {
        let rest = if self.head.len < input.len() {
            input.split_off(self.head.len)
        } else {
            Vec::new()
        };
        self.bytes = std::mem::replace(input, rest);
    }

    /// Turns the parsed head into a head of HTTP/2. Its body ends with its stream, unless a field announces the length.
    pub(crate) fn becomes_http2(&mut self, has_body: bool) {
        self.head.version = Version::Http2;
        // Bytes after the response are not the next request.
        self.head.keep_alive = false;
        self.head.reframe(match self.head.framing {
            Framing::Length(length) if has_body => Framing::Length(length),
            _ if has_body => Framing::Stream,
            _ => Framing::Empty,
        });
    }

    /// Resets this for the next request. Returns an empty buffer.
    pub(crate) fn forget(&mut self) -> Vec<u8> {
        self.body = Body::Empty;
        self.body_wait = Duration::ZERO;
        self.line_wait = Duration::ZERO;
        self.has_to_stay = false;
        self.waits = Waits::default();
        let mut buffer = std::mem::take(&mut self.bytes);
        buffer.clear();
        buffer
    }

    /// The bytes of the head.
    pub(crate) fn head_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.body.memory()
    }

    fn text(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// The method, case-sensitive (RFC 9110 §9.1).
    pub fn method(&self) -> &[u8] {
        self.text(self.head.method)
    }

    /// The target, unchanged.
    pub fn target(&self) -> &[u8] {
        self.text(self.head.target)
    }

    /// The form of the target (RFC 9112 §3.2).
    pub fn target_form(&self) -> TargetForm {
        self.head.parts.form
    }

    /// The path of the target; may be empty.
    pub fn path(&self) -> &[u8] {
        self.text(self.head.parts.path)
    }

    /// The part of the target after the first `?`, if there is one.
    pub fn query(&self) -> Option<&[u8]> {
        self.head.parts.query.map(|query| self.text(query))
    }

    /// The authority of the request: taken from an absolute target, otherwise from Host. `None` only in HTTP/1.0.
    pub fn host(&self) -> Option<&[u8]> {
        self.head.host.map(|host| self.text(host))
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// Names and values of the fields, in the order of the request.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = self.head.fields.iter();
        fields.map(|field| (self.text(field.name), self.text(field.value)))
    }

    /// The first value of a field; the case of `name` does not matter.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.fields();
        fields.find_map(|(own, value)| own.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The trace that the request belongs to, by a valid `traceparent`; 32 hexadecimal digits (W3C Trace Context §3.2).
    pub fn trace_id(&self) -> Option<&[u8]> {
        let mut fields = self
            .fields()
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"traceparent"));
        let (_, value) = fields.next()?;
        if fields.next().is_some() {
            return None;
        }
        trace_id(value)
    }

    /// Returns true if the body was chunked, or ended with its stream, so that no field announces its length.
    pub fn is_chunked(&self) -> bool {
        matches!(self.head.framing, Framing::Chunked | Framing::Stream)
    }

    /// The time between the end of the head and the end of the body.
    pub fn body_wait(&self) -> Duration {
        self.body_wait
    }

    /// The time at which the request was complete, since the Unix epoch.
    pub fn completed_at(&self) -> Duration {
        self.arrived.since_epoch()
    }

    /// Notes that a thread begins to run the request.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.waits.queue = (now - self.arrived).saturating_sub(self.waits.waiting_room);
    }

    /// The moment at which the thread began to run the request, on the monotonic clock.
    pub fn began_at(&self) -> Duration {
        Duration::from_nanos(self.arrived.to_number()) + self.waits.queue + self.waits.waiting_room
    }

    /// The time that the request has waited for the thread that runs it.
    pub fn waits(&self) -> Waits {
        self.waits
    }

    /// Returns true if the head announces a body.
    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.head.framing, Framing::Empty | Framing::Length(0))
    }

    /// Returns true if the method is HEAD.
    pub fn is_head(&self) -> bool {
        self.method() == b"HEAD"
    }

    /// Returns true if the client offers another protocol (RFC 9110 §7.8).
    pub fn offers_upgrade(&self) -> bool {
        self.head.upgrade
    }

    /// Returns true for an extended CONNECT (RFC 8441 §4): a successful response would open a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.version() == Version::Http2 && self.offers_upgrade()
    }

    /// The protocols that the client offers, if [`Request::offers_upgrade`]; over HTTP/2 the protocol of an extended
    /// CONNECT (RFC 8441 §4).
    pub fn offered_protocols(&self) -> impl Iterator<Item = &[u8]> {
        let fields = self.offers_upgrade().then(|| self.fields()).into_iter().flatten();
        let offers = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"upgrade"));
        offers.flat_map(|(_, value)| fields::members(value))
    }

    /// The WebSocket handshake, if the request is a valid one (RFC 6455 §4.2.1).
    pub(crate) fn web_socket_handshake(&self) -> Option<Handshake> {
        handshake(&self.head, &self.bytes).ok()
    }

    /// Compression for the messages of a WebSocket, and the value of the response field (RFC 7692 §5.1).
    pub(crate) fn negotiate_deflate(&self, context: Context) -> Option<(Deflate, String)> {
        negotiate(&self.head, &self.bytes, context)
    }

    /// Returns true if the client prefers an event stream to any other media type.
    pub(crate) fn wants_event_stream(&self) -> bool {
        wants_event_stream(&self.head, &self.bytes)
    }

    /// The content codings that the client accepts (RFC 9110 §12.5.3).
    pub(crate) fn accepted_codings(&self) -> Accepted {
        Accepted::of(&self.head, &self.bytes)
    }

    /// Evaluates the conditions of the request (RFC 9110 §13.2.2).
    pub(crate) fn evaluate(&self, validators: &Validators<'_>) -> Outcome {
        evaluate(&self.head, &self.bytes, validators)
    }

    /// The requested ranges of a representation with `size` bytes (RFC 9110 §14.2).
    pub(crate) fn ranges(&self, validators: &Validators<'_>, size: u64) -> Ranges {
        Ranges::of(&self.head, &self.bytes, validators, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_wire::HeadLimits;

    const LIMITS: HeadLimits = HeadLimits {
        head_bytes: 1_000,
        fields: 10,
        target_bytes: 100,
    };

    #[test]
    fn a_request_takes_its_bytes_and_leaves_those_of_the_next_one() {
        let head = b"GET /a?b=c HTTP/1.1\r\nHost: test:80\r\nX-A: 1\r\nx-a: 2\r\n\r\n";
        for rest in [&b""[..], b"GET /next"] {
            let mut input = [&head[..], rest].concat();
            let mut request = Request::default();
            assert_eq!(request.head.parse(&input, &LIMITS), Ok(true));
            request.take_head(&mut input);
            assert_eq!(input, rest);
            // The request must not depend on the input any more.
            input.fill(b'?');
            assert_eq!((request.method(), request.target()), (&b"GET"[..], &b"/a?b=c"[..]));
            assert_eq!((request.path(), request.query()), (&b"/a"[..], Some(&b"b=c"[..])));
            assert_eq!(request.host(), Some(&b"test:80"[..]));
            let fields: Vec<_> = request.fields().map(|(name, _)| name).collect();
            assert_eq!(fields, [&b"Host"[..], b"X-A", b"x-a"]);
            assert_eq!(request.field(b"X-a"), Some(&b"1"[..]));
            assert_eq!(request.field(b"none"), None);
            assert!(request.forget().is_empty() && request.memory() == 0);
        }
    }
}
