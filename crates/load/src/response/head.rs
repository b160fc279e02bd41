//! The head of a response (RFC 9112 §4, §5), parsed in place with httparse: its status and its fields.

use httparse::{Error, Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// Longest accepted head; a server that sends more is not speaking HTTP.
pub(crate) const HEAD_BYTES: usize = 1024 * 1024;
/// Fields of a usual head, which need no allocation.
const USUAL_FIELDS: usize = 256;
const MOST_FIELDS: usize = 32 * 1024;

/// The received bytes are no HTTP/1 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

#[derive(Debug)]
pub(crate) struct Head<'h> {
    pub(crate) status: u16,
    /// The x of HTTP/1.x.
    pub(crate) minor_version: u8,
    fields: &'h [Header<'h>],
}

impl<'h> Head<'h> {
    /// Parses the head at the start of `bytes`; returns the result of `look` and the length of the head, or `None` if
    /// the head is incomplete.
    pub(crate) fn parse<T>(bytes: &[u8], look: impl FnOnce(&Head<'_>) -> T) -> Result<Option<(T, usize)>, Malformed> {
        // RFC 9112 §2.2 allows empty lines only before a request.
        if matches!(bytes, [b'\r' | b'\n', ..]) {
            return Err(Malformed);
        }
        let (mut usual, mut many);
        usual = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
        let read = match Head::read(bytes, &mut usual) {
            Err(Error::TooManyHeaders) => {
                many = vec![MaybeUninit::uninit(); MOST_FIELDS];
                Head::read(bytes, &mut many)
            }
            read => read,
        };
        match read.map_err(|_| Malformed)? {
            None if bytes.len() > HEAD_BYTES => Err(Malformed),
            None => Ok(None),
            Some((head, length)) => Ok(Some((look(&head), length))),
        }
    }

    /// Parses the head with this space for its fields.
    fn read(bytes: &'h [u8], fields: &'h mut [MaybeUninit<Header<'h>>]) -> Result<Option<(Head<'h>, usize)>, Error> {
        let mut response = Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, fields);
        let Status::Complete(length) = parsed? else {
            return Ok(None);
        };
        let (Some(minor_version), Some(status @ 100..=599)) = (response.version, response.code) else {
            return Err(Error::Status);
        };
        let fields = response.headers;
        let head = Head {
            status,
            minor_version,
            fields,
        };
        Ok(Some((head, length)))
    }

    /// The values of a field, one for each of its lines. A value that is not text equals nothing.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        let named = move |field: &&Header| field.name.eq_ignore_ascii_case(name);
        let text = |field: &'a Header| std::str::from_utf8(field.value).map_or("\u{fffd}", str::trim);
        self.fields.iter().filter(named).map(text)
    }

    /// The members of a field that is a list (RFC 9110 §5.6.1).
    pub(crate) fn members<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        self.values(name)
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|member| !member.is_empty())
    }

    /// Returns `true` if a list has a member, ignoring case.
    pub(crate) fn has(&self, name: &str, wanted: &str) -> bool {
        self.members(name).any(|member| member.eq_ignore_ascii_case(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_when_it_is_whole() {
        let bytes = b"HTTP/1.1 101 Go\r\nUpgrade: WebSocket\r\nconnection: keep-alive, Upgrade\r\n\r\nrest";
        for cut in 0..bytes.len() - 4 {
            assert_eq!(Head::parse(&bytes[..cut], |_| ()), Ok(None), "{cut}");
        }
        let look = |head: &Head<'_>| {
            assert!(head.has("Connection", "upgrade") && head.has("upgrade", "websocket"));
            assert!(!head.has("upgrade", "h2c"));
            head.status
        };
        let (status, length) = Head::parse(bytes, look).expect("a head").expect("whole");
        assert_eq!((status, &bytes[length..]), (101, &b"rest"[..]));
    }

    #[test]
    fn a_value_that_is_no_text_equals_nothing() {
        let bytes = b"HTTP/1.1 200 OK\r\nServer: caf\xe9\r\nConnection: caf\xe9, close\r\n\r\n";
        let look = |head: &Head<'_>| head.has("connection", "close");
        assert_eq!(Head::parse(bytes, look), Ok(Some((false, bytes.len()))));
    }

    #[test]
    fn long_heads_and_heads_with_many_fields_are_heads() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(200 * 1024));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(10_000));
        for (text, fields) in [(long, 1), (many, 10_000)] {
            let parsed = Head::parse(text.as_bytes(), |head| head.values("a").count());
            assert_eq!(parsed, Ok(Some((fields, text.len()))));
        }
    }

    #[test]
    fn what_is_no_head_is_malformed() {
        for text in [
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 101 Go\r\nno colon\r\n\r\n",
            "HTTP/1.1 101 Go\r\na : b\r\n\r\n",
        ] {
            assert_eq!(Head::parse(text.as_bytes(), |_| ()), Err(Malformed), "{text}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(HEAD_BYTES));
        assert_eq!(Head::parse(endless.as_bytes(), |_| ()), Err(Malformed));
    }
}
