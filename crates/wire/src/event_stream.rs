//! Server-sent events (WHATWG HTML §9.2): whether a request asks for them, and how one is written.
//!
//! Whatever the application passes in, one call writes one event: no line end in it can begin a field or an event.

use crate::parameters::{pieces, values};
use crate::Head;
use std::io::Write;

/// Whether this is a request for an event stream: a GET that accepts `text/event-stream` and names no other type
/// before it. Ranges such as `*/*` and what is declined with `q=0` do not count.
pub fn wants_event_stream(head: &Head, bytes: &[u8]) -> bool {
    if head.method.of(bytes) != b"GET" {
        return false;
    }
    let members = values(head, bytes, b"accept").flat_map(|value| pieces(value, b','));
    let mut concrete = members.filter_map(acceptable);
    concrete
        .next()
        .is_some_and(|media_type| media_type.eq_ignore_ascii_case(b"text/event-stream"))
}

/// The media type of a member of Accept, if it is one type and not declined.
fn acceptable(member: &[u8]) -> Option<&[u8]> {
    let mut parts = pieces(member, b';');
    let media_type = parts.next().filter(|name| !name.is_empty() && !name.contains(&b'*'))?;
    parts.all(|parameter| !is_zero_weight(parameter)).then_some(media_type)
}

/// Whether a parameter is a weight of 0 (RFC 9110 §12.4.2): `q=0`, `q=0.000`.
fn is_zero_weight(parameter: &[u8]) -> bool {
    matches!(parameter, [b'q' | b'Q', b'=', b'0', rest @ ..] if rest.iter().all(|byte| matches!(byte, b'.' | b'0')))
}

/// Appends one event. Each line of `data` becomes a field of its own, so that it arrives as it is but for the kind of
/// its line ends. Line ends and NUL in `event` and `id` are left out; `retry` is in milliseconds.
pub fn event(out: &mut Vec<u8>, data: &[u8], event: Option<&[u8]>, id: Option<&[u8]>, retry: Option<u64>) {
    out.reserve(data.len() + 16);
    if let Some(name) = event {
        one_line(out, b"event: ", name);
    }
    if let Some(id) = id {
        one_line(out, b"id: ", id);
    }
    if let Some(milliseconds) = retry {
        // Writing to a vector cannot fail.
        let _ = writeln!(out, "retry: {milliseconds}");
    }
    lines(out, b"data: ", data);
    out.push(b'\n');
}

/// Appends a comment, which clients ignore: something to send so that nobody takes the connection for dead.
pub fn comment(out: &mut Vec<u8>, text: &[u8]) {
    lines(out, b": ", text);
    out.push(b'\n');
}

fn one_line(out: &mut Vec<u8>, field: &[u8], value: &[u8]) {
    out.extend_from_slice(field);
    out.extend(value.iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
    out.push(b'\n');
}

fn lines(out: &mut Vec<u8>, field: &[u8], text: &[u8]) {
    let mut rest = text;
    loop {
        out.extend_from_slice(field);
        let Some(end) = memchr::memchr2(b'\r', b'\n', rest) else {
            out.extend_from_slice(rest);
            out.push(b'\n');
            return;
        };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        let line_end = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + line_end..];
    }
}
