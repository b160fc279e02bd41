//! Parses the head of an HTTP/1 response as this server writes it, to send it over HTTP/2. The head comes from the
//! exchange of a request, from another worker that has run the request, or from an application that has taken a tunnel.

use memchr::memmem;

/// Most bytes of such a head.
pub const MAX_RESPONSE_HEAD: usize = 1 << 20;

/// Fields that concern an HTTP/1 connection, which HTTP/2 does not have (RFC 9113 §8.2.2, RFC 8441 §5).
const OF_HTTP1: [&[u8]; 6] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"sec-websocket-accept",
    b"transfer-encoding",
    b"upgrade",
];

/// A complete head.
#[derive(Clone, Copy, Debug)]
pub struct ResponseLines<'a> {
    /// The status.
    pub status: u16,
    /// Bytes of the head; the following bytes belong to the body, or to the next head.
    pub len: usize,
    lines: &'a [u8],
}

impl<'a> ResponseLines<'a> {
    /// The head at the start of `bytes`; `None` if it is not complete.
    pub fn of(bytes: &'a [u8]) -> Option<ResponseLines<'a>> {
        let end = memmem::find(bytes, b"\r\n\r\n")?;
        let lines_at = memchr::memchr(b'\n', &bytes[..end + 2])? + 1;
        let digits = bytes[..end].get(9..12)?;
        let status = digits
            .iter()
            .fold(0, |number, digit| number * 10 + u16::from(digit.wrapping_sub(b'0')));
        Some(ResponseLines {
            status,
            len: end + 4,
            lines: &bytes[lines_at..end + 2],
        })
    }

    /// Names, in any case, and values of the fields that have a meaning in HTTP/2, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let is_of_http1 = |name: &[u8]| OF_HTTP1.iter().any(|own| name.eq_ignore_ascii_case(own));
        self.all().filter(move |(name, _)| !is_of_http1(name))
    }

    /// The length of the body, if it is known.
    pub fn content_length(&self) -> Option<u64> {
        let (_, value) = self
            .all()
            .find(|(name, _)| name.eq_ignore_ascii_case(b"content-length"))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    fn all(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let lines = self.lines.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let line = line.strip_suffix(b"\r")?;
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 404 Not Found\r\nx: a: b\r\nConnection: close\r\nset-cookie: 1\r\nset-cookie: 2\r\n\
        Content-Length: 12\r\ntransfer-encoding: chunked\r\nempty: \r\n\r\n";

    #[test]
    fn a_head_is_taken_apart() {
        let bytes = [HEAD, b"the body"].concat();
        let lines = ResponseLines::of(&bytes).expect("it is complete");
        assert_eq!(
            (lines.status, lines.len, lines.content_length()),
            (404, HEAD.len(), Some(12))
        );
        let fields: Vec<_> = lines.fields().collect();
        let expected: [(&[u8], &[u8]); 5] = [
            (b"x", b"a: b"),
            (b"set-cookie", b"1"),
            (b"set-cookie", b"2"),
            (b"Content-Length", b"12"),
            (b"empty", b""),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn part_of_a_head_is_none() {
        for length in 0..HEAD.len() {
            assert!(ResponseLines::of(&HEAD[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn a_head_may_have_no_fields() {
        let lines = ResponseLines::of(b"HTTP/1.1 100 Continue\r\n\r\n").expect("it is complete");
        assert_eq!(
            (lines.status, lines.fields().count(), lines.content_length()),
            (100, 0, None)
        );
    }
}
