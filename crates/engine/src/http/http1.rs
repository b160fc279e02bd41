//! Writes responses in HTTP/1 (RFC 9112): the only place that writes status lines and the framing of messages.

use super::response::{FieldError, ResponseHead};
use fairlead_wire::{fields, has_no_body, reason, Version};
use std::io::Write;

/// The end of a chunked body (RFC 9112 §7.1).
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The end of a chunk.
pub(crate) const CHUNK_END: &[u8] = b"\r\n";

/// An interim response that lets the client send its body (RFC 9110 §15.2.1).
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The framing of a response body, which marks its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// Status or method forbid a body.
    None,
    /// Bytes that are still to come.
    Length(u64),
    Chunked,
    /// Inside a chunk; the bytes of the chunk that are still to come.
    Chunk(u64),
    /// The end of the connection, or of the HTTP/2 stream, ends the body.
    Raw,
}

/// The framing that the app's fields announce.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Announced {
    pub(crate) length: Option<u64>,
    /// The transfer-encoding that the app has applied; `None` if it has applied none.
    pub(crate) coding: Option<OwnCoding>,
}

/// A transfer-encoding that the app has applied to its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCoding {
    /// Its last coding is `chunked`.
    pub(crate) is_chunked: bool,
    /// No coding is left once the chunks are decoded.
    pub(crate) is_plain: bool,
}

impl OwnCoding {
    /// No coding that the server could decode: the bytes of the app are the body.
    pub(crate) const NONE: OwnCoding = OwnCoding {
        is_chunked: false,
        is_plain: true,
    };

    const CHUNKED: OwnCoding = OwnCoding {
        is_chunked: true,
        is_plain: true,
    };

    fn of(value: &[u8]) -> OwnCoding {
        let is = |coding: &[u8], name: &[u8]| coding.eq_ignore_ascii_case(name);
        // In RFC 2616, `identity` meant that there is no coding.
        let mut codings = fields::members(value).filter(|coding| !is(coding, b"identity"));
        let first = codings.next();
        let last = codings.last();
        OwnCoding {
            is_chunked: last.or(first).is_some_and(|coding| is(coding, b"chunked")),
            is_plain: last.is_none() && first.is_none_or(|coding| is(coding, b"chunked")),
        }
    }
}

impl Announced {
    /// Stores a content-length.
    ///
    /// # Errors
    /// If it is invalid, or contradicts an earlier one.
    pub(crate) fn note_length(&mut self, value: &[u8]) -> Result<(), FieldError> {
        let digits = std::str::from_utf8(value).ok();
        let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length = digits.and_then(|text| text.parse().ok()).ok_or(FieldError::Length)?;
        if self.length.is_some_and(|before| before != length) {
            return Err(FieldError::Length);
        }
        self.length = Some(length);
        Ok(())
    }

    /// Stores a transfer-encoding. Returns false if it says nothing new: two `chunked` fields, with names that differ
    /// in case, mean one framing.
    pub(crate) fn note_coding(&mut self, value: &[u8]) -> bool {
        let coding = OwnCoding::of(value);
        let before = self.coding.replace(coding).unwrap_or(OwnCoding::NONE);
        if before == OwnCoding::NONE || before == coding {
            return before != OwnCoding::CHUNKED;
        }
        self.coding = Some(match coding {
            OwnCoding::NONE => before,
            _ => OwnCoding {
                is_plain: false,
                ..coding
            },
        });
        true
    }

    /// Returns true if the protocol cannot carry the app's transfer-encoding, and the server cannot decode it.
    pub(crate) fn is_unspeakable(self, status: u16, version: Version) -> bool {
        version != Version::Http11 && !has_no_body(status) && self.coding.is_some_and(|coding| !coding.is_plain)
    }

    /// Returns true if the app frames its body in chunks, which the server decodes.
    pub(crate) fn is_chunked(self) -> bool {
        self.coding.is_some_and(|coding| coding.is_chunked)
    }

    /// Returns the framing of a body. `total`: its length, if known. Chunks of the app are decoded first.
    pub(crate) fn framing(self, status: u16, version: Version, total: Option<u64>) -> BodyFraming {
        if has_no_body(status) {
            return BodyFraming::None;
        }
        let length = match self.coding {
            Some(OwnCoding { is_chunked: false, .. }) => return BodyFraming::Raw,
            Some(_) => None,
            None => self.length.or(total),
        };
        match length {
            Some(length) => BodyFraming::Length(length),
            None if version == Version::Http11 => BodyFraming::Chunked,
            None => BodyFraming::Raw,
        }
    }
}

/// The meaning of the `connection` field (RFC 9112 §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionField {
    /// No field: HTTP/1.1 keeps the connection open by default.
    Implied,
    KeepAlive,
    Close,
    Upgrade,
}

impl ConnectionField {
    pub(crate) fn of(version: Version, close: bool) -> ConnectionField {
        match version {
            Version::Http2 => ConnectionField::Implied,
            _ if close => ConnectionField::Close,
            Version::Http10 => ConnectionField::KeepAlive,
            Version::Http11 => ConnectionField::Implied,
        }
    }

    fn line(self) -> &'static [u8] {
        match self {
            ConnectionField::Implied => b"",
            ConnectionField::KeepAlive => b"connection: keep-alive\r\n",
            ConnectionField::Close => b"connection: close\r\n",
            ConnectionField::Upgrade => b"connection: upgrade\r\n",
        }
    }
}

/// The end of an HTTP/1 head: the part that follows the fields of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadEnd<'a> {
    /// `None` for a response without a body of its own: an interim response, or a response after which the connection
    /// is no longer HTTP.
    pub(crate) framing: Option<BodyFraming>,
    pub(crate) connection: ConnectionField,
    /// The `Date`, if the head has none.
    pub(crate) date: Option<&'a [u8]>,
    /// The request was HEAD: `transfer-encoding` is then left out, because no body follows.
    pub(crate) is_head_request: bool,
}

/// Writes a head.
pub(crate) fn write_head(head: &ResponseHead, end: HeadEnd<'_>, out: &mut Vec<u8>) {
    write_status_line(head.status, out);
    out.extend_from_slice(head.fields.as_lines());
    match end.framing {
        Some(BodyFraming::Length(length)) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Some(BodyFraming::Chunked) if !end.is_head_request => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        _ => {}
    }
    if let Some(date) = end.date {
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(end.connection.line());
    out.extend_from_slice(b"\r\n");
}

fn write_status_line(status: u16, out: &mut Vec<u8>) {
    if status == 200 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The line before a chunk of this length (RFC 9112 §7.1).
pub(crate) fn chunk_line(length: usize, space: &mut [u8; 20]) -> &[u8] {
    let mut rest = &mut space[..];
    // Sixteen digits and a line end always fit.
    let _ = write!(rest, "{length:x}\r\n");
    let unused = rest.len();
    let used = space.len() - unused;
    &space[..used]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16) -> ResponseHead {
        let mut head = ResponseHead::default();
        head.start(status);
        head.fields.add(b"X", b"y");
        head
    }

    fn written(status: u16, end: HeadEnd<'_>) -> String {
        let mut out = Vec::new();
        write_head(&head(status), end, &mut out);
        String::from_utf8(out).expect("text")
    }

    const PLAIN: HeadEnd<'_> = HeadEnd {
        framing: None,
        connection: ConnectionField::Implied,
        date: None,
        is_head_request: false,
    };

    #[test]
    fn a_head_has_a_status_fields_and_the_framing_of_the_body() {
        assert_eq!(written(200, PLAIN), "HTTP/1.1 200 OK\r\nx: y\r\n\r\n");
        assert_eq!(
            written(599, PLAIN),
            format!("HTTP/1.1 599 {}\r\nx: y\r\n\r\n", reason(599))
        );
        let end = HeadEnd {
            framing: Some(BodyFraming::Length(u64::MAX)),
            connection: ConnectionField::Close,
            date: Some(b"now"),
            ..PLAIN
        };
        assert_eq!(
            written(404, end),
            "HTTP/1.1 404 Not Found\r\nx: y\r\ncontent-length: 18446744073709551615\r\ndate: now\r\nconnection: close\r\n\r\n"
        );
    }

    #[test]
    fn transfer_encoding_is_sent_only_if_a_body_follows() {
        for (is_head_request, expected) in [
            (false, "x: y\r\ntransfer-encoding: chunked\r\n\r\n"),
            (true, "x: y\r\n\r\n"),
        ] {
            let end = HeadEnd {
                framing: Some(BodyFraming::Chunked),
                is_head_request,
                ..PLAIN
            };
            assert!(written(200, end).ends_with(expected));
        }
    }

    #[test]
    fn the_framing_follows_from_what_is_known() {
        let (http10, http11) = (Version::Http10, Version::Http11);
        let length = Announced {
            length: Some(3),
            coding: None,
        };
        let nothing = Announced::default();
        for (announced, status, version, total, framing) in [
            (nothing, 200, http11, Some(7), BodyFraming::Length(7)),
            (length, 200, http11, Some(7), BodyFraming::Length(3)),
            (nothing, 200, http11, None, BodyFraming::Chunked),
            (nothing, 200, http10, None, BodyFraming::Raw),
            (own(&[b"chunked"]), 200, http11, Some(7), BodyFraming::Chunked),
            (own(&[b"gzip, chunked"]), 200, http11, None, BodyFraming::Chunked),
            (own(&[b"gzip"]), 200, http11, None, BodyFraming::Raw),
            (own(&[b"identity"]), 200, http11, Some(7), BodyFraming::Raw),
            (own(&[b"chunked"]), 200, http10, None, BodyFraming::Raw),
            (own(&[b"chunked"]), 200, Version::Http2, Some(7), BodyFraming::Raw),
            (own(&[b"chunked"]), 204, http11, None, BodyFraming::None),
            (length, 204, http11, None, BodyFraming::None),
            (nothing, 304, http10, Some(7), BodyFraming::None),
        ] {
            assert_eq!(
                announced.framing(status, version, total),
                framing,
                "{announced:?} {status}"
            );
        }
    }

    /// An app that sends these transfer-encodings.
    fn own(values: &[&[u8]]) -> Announced {
        let mut announced = Announced::default();
        for value in values {
            announced.note_coding(value);
        }
        announced
    }

    #[test]
    fn only_http_1_1_carries_a_transfer_coding_that_the_server_cannot_decode() {
        let unspeakable = |values: &[&[u8]]| {
            assert!(!own(values).is_unspeakable(200, Version::Http11));
            assert!(!own(values).is_unspeakable(304, Version::Http2));
            let both = [Version::Http10, Version::Http2].map(|version| own(values).is_unspeakable(200, version));
            assert_eq!(both[0], both[1]);
            both[0]
        };
        for plain in [&b"chunked"[..], b"Chunked", b"identity", b"identity, chunked", b""] {
            assert!(!unspeakable(&[plain]), "{plain:?}");
        }
        for coded in [&b"gzip"[..], b"gzip, chunked", b"chunked, chunked", b"chunked, gzip"] {
            assert!(unspeakable(&[coded]), "{coded:?}");
        }
        assert!(!unspeakable(&[b"chunked", b"Chunked"]), "one framing, said twice");
        assert!(unspeakable(&[b"gzip", b"chunked"]) && own(&[b"gzip", b"chunked"]).is_chunked());
        assert!(!unspeakable(&[b"chunked", b"identity"]) && own(&[b"chunked", b"identity"]).is_chunked());
        assert!(!Announced::default().is_chunked() && own(&[]).coding.is_none());
    }

    #[test]
    fn chunked_is_noted_once() {
        let mut announced = Announced::default();
        assert_eq!(
            [b"chunked", b"Chunked"].map(|value| announced.note_coding(value)),
            [true, false]
        );
        assert!(announced.note_coding(b"gzip") && !announced.is_chunked());
    }

    #[test]
    fn a_chunk_begins_with_its_length() {
        for (length, expected) in [(1, "1\r\n"), (255, "ff\r\n"), (usize::MAX, "ffffffffffffffff\r\n")] {
            assert_eq!(chunk_line(length, &mut [0; 20]), expected.as_bytes());
        }
    }
}
