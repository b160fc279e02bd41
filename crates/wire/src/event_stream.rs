//! Server-sent events (WHATWG HTML §9.2): recognizes requests for them, and writes them.
//!
//! One call writes one event, with any input of the application: no line end in the input can begin a field or an
//! event.

use crate::parameters::{pieces, values};
use crate::Head;
use std::io::Write;

const MEDIA_TYPE: &[u8] = b"text/event-stream";

/// Returns true for a request for an event stream: a GET that accepts `text/event-stream` and names no other type
/// before it. Ranges such as `*/*` and types declined with `q=0` do not count.
pub fn wants_event_stream(head: &Head, bytes: &[u8]) -> bool {
    let may_name_it = |value: &[u8]| value.len() >= MEDIA_TYPE.len();
    if head.method.of(bytes) != b"GET" || !values(head, bytes, b"accept").any(may_name_it) {
        return false;
    }
    let members = values(head, bytes, b"accept").flat_map(|value| pieces(value, b','));
    let mut concrete = members.filter_map(acceptable);
    concrete
        .next()
        .is_some_and(|media_type| media_type.eq_ignore_ascii_case(MEDIA_TYPE))
}

/// The media type of a member of Accept, if it is a single type and not declined.
fn acceptable(member: &[u8]) -> Option<&[u8]> {
    let mut parts = pieces(member, b';');
    let media_type = parts.next().filter(|name| !name.is_empty() && !name.contains(&b'*'))?;
    parts.all(|parameter| !is_zero_weight(parameter)).then_some(media_type)
}

/// Returns true for a weight of 0 (RFC 9110 §12.4.2): `q=0`, `q=0.000`.
fn is_zero_weight(parameter: &[u8]) -> bool {
    matches!(parameter, [b'q' | b'Q', b'=', b'0', rest @ ..] if rest.iter().all(|byte| matches!(byte, b'.' | b'0')))
}

/// Appends one event. Each line of `data` becomes a separate field, so it arrives unchanged except for the kind of its
/// line ends. Line ends and NUL in `event` and `id` are left out; `retry` is in milliseconds.
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

/// Appends a comment, which clients ignore. It shows that the connection is alive.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeadLimits;

    fn wants(line: &str, accept: &[&str]) -> bool {
        let lines: String = accept.iter().map(|value| format!("Accept: {value}\r\n")).collect();
        let bytes = format!("{line}\r\nHost: a\r\n{lines}\r\n").into_bytes();
        let limits = HeadLimits {
            head_bytes: 1_000,
            fields: 10,
            target_bytes: 100,
        };
        let mut head = Head::default();
        assert_eq!(head.parse(&bytes, &limits), Ok(true));
        wants_event_stream(&head, &bytes)
    }

    #[test]
    fn an_event_stream_is_wanted_if_it_is_the_first_type_named() {
        for accept in [
            &["text/event-stream"][..],
            &["Text/Event-Stream"],
            &["text/event-stream, text/html"],
            &["text/event-stream;charset=utf-8; q=0.5, text/html"],
            &["*/*, text/event-stream"],
            &["text/*, text/event-stream"],
            &["text/html;q=0, text/event-stream"],
            &["text/html;q=0.000, text/event-stream"],
            &[", text/event-stream"],
            &["", "text/event-stream"],
            &["application/x;a=\"b;q=0\";q=0, text/event-stream"],
        ] {
            assert!(wants("GET / HTTP/1.1", accept), "{accept:?}");
            assert!(!wants("POST / HTTP/1.1", accept), "{accept:?}");
            assert!(!wants("HEAD / HTTP/1.1", accept), "{accept:?}");
        }
        for accept in [
            &[][..],
            &["*/*"],
            &["text/*"],
            &["text/event-stream2"],
            &["text/html, text/event-stream"],
            &["text/html", "text/event-stream"],
            &["text/html;q=0.01, text/event-stream"],
            &["text/event-stream;q=0"],
            &["text/event-stream; Q=0.0"],
            &["text/event-stream;q=0, text/html"],
            &["text/html;a=\", text/event-stream, \""],
            &["a/b;x=\"q=0;q=0\", text/event-stream"],
        ] {
            assert!(!wants("GET / HTTP/1.1", accept), "{accept:?}");
        }
    }

    fn written(data: &str, name: Option<&str>, id: Option<&str>, retry: Option<u64>) -> String {
        let mut out = b"before".to_vec();
        event(
            &mut out,
            data.as_bytes(),
            name.map(str::as_bytes),
            id.map(str::as_bytes),
            retry,
        );
        String::from_utf8(out.split_off(6)).expect("UTF-8 went in")
    }

    #[test]
    fn each_line_of_the_data_is_a_field() {
        for (data, expected) in [
            ("", "data: \n\n"),
            ("a", "data: a\n\n"),
            (" a: b", "data:  a: b\n\n"),
            ("a\nb", "data: a\ndata: b\n\n"),
            ("a\rb", "data: a\ndata: b\n\n"),
            ("a\r\nb", "data: a\ndata: b\n\n"),
            ("a\n\rb", "data: a\ndata: \ndata: b\n\n"),
            (
                "a\n\nevent: b\n\n",
                "data: a\ndata: \ndata: event: b\ndata: \ndata: \n\n",
            ),
            ("\n", "data: \ndata: \n\n"),
            ("\r", "data: \ndata: \n\n"),
            ("\r\n", "data: \ndata: \n\n"),
            ("a\u{2028}b\u{85}c\0", "data: a\u{2028}b\u{85}c\0\n\n"),
        ] {
            assert_eq!(written(data, None, None, None), expected, "{data:?}");
        }
    }

    #[test]
    fn fields_come_before_the_data_and_cannot_contain_line_ends() {
        let all = written("a", Some("name"), Some("7"), Some(1500));
        assert_eq!(all, "event: name\nid: 7\nretry: 1500\ndata: a\n\n");
        assert_eq!(
            written("a", Some(""), Some(""), Some(0)),
            "event: \nid: \nretry: 0\ndata: a\n\n"
        );
        let injected = written("a", Some("b\r\ndata: c\n\n"), Some("\rd\0\n"), None);
        assert_eq!(injected, "event: bdata: c\nid: d\ndata: a\n\n");
    }

    #[test]
    fn a_comment_is_never_an_event() {
        let written = |text: &str| {
            let mut out = Vec::new();
            comment(&mut out, text.as_bytes());
            String::from_utf8(out).expect("UTF-8 went in")
        };
        assert_eq!(written("ping"), ": ping\n\n");
        assert_eq!(written(""), ": \n\n");
        assert_eq!(written("a\n\ndata: b\r"), ": a\n: \n: data: b\n: \n\n");
    }
}
