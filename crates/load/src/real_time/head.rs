//! The head of an HTTP/1 answer with its fields (RFC 9112 §4, §5): what a handshake is decided by.

use crate::response::{status, Malformed};
use memchr::memmem;

/// Longest head taken.
const HEAD_BYTES: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
}

impl Head {
    /// The head that `bytes` begin with, and its length; `None` when it has not ended yet.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
            return if bytes.len() > HEAD_BYTES {
                Err(Malformed)
            } else {
                Ok(None)
            };
        };
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| Malformed)?;
        let mut lines = text.split("\r\n");
        let (_, status) = status(lines.next().unwrap_or_default().as_bytes())?;
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(':').ok_or(Malformed)?;
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(Malformed);
            }
            Ok((name.to_owned(), value.trim().to_owned()))
        });
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(Some((Head { status, fields }, end + 4)))
    }

    /// The values of a field, one for each line it came in.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = move |(field, _): &&(String, String)| field.eq_ignore_ascii_case(name);
        self.fields.iter().filter(named).map(|(_, value)| value.as_str())
    }

    /// The members of a field that is a list (RFC 9110 §5.6.1).
    pub(crate) fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.values(name)
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|member| !member.is_empty())
    }

    /// Whether a list has a member, in whatever case.
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
            assert_eq!(Head::parse(&bytes[..cut]), Ok(None), "{cut}");
        }
        let (head, length) = Head::parse(bytes).expect("a head").expect("whole");
        assert_eq!((head.status, &bytes[length..]), (101, &b"rest"[..]));
        assert!(head.has("Connection", "upgrade") && head.has("upgrade", "websocket"));
        assert!(!head.has("upgrade", "h2c"));
    }

    #[test]
    fn what_is_no_head_is_malformed() {
        for text in [
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 101 Go\r\nno colon\r\n\r\n",
            "HTTP/1.1 101 Go\r\na : b\r\n\r\n",
        ] {
            assert_eq!(Head::parse(text.as_bytes()), Err(Malformed), "{text}");
        }
        assert_eq!(Head::parse(&vec![b'x'; HEAD_BYTES + 1]), Err(Malformed));
    }
}
