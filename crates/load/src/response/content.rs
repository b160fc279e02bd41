//! Finds the content between the framing of HTTP/1.1 (RFC 9112 §6, §7), in place and piece by piece.
//!
//! ```text
//!          +-> Sized(n) ---------------------------+-> Over
//! head ----+-> ChunkSize -> Chunk(n) -> ChunkEnd   |
//!          |     |   ^----------------------+      |
//!          |     +-> Trailer ----------------------+
//!          +-> UntilClose
//! ```

use super::head::{Head, Malformed};
use memchr::memchr;

/// Longest accepted line.
const LINE_BYTES: usize = 64 * 1024;

/// Length of the content, as the head declares it (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Sized(u64),
    Chunked,
    /// A transfer coding that does not mark its end.
    Coded,
    UntilClose,
}

/// Finds the content of one response.
#[derive(Debug)]
pub(crate) struct Content {
    state: State,
    line: Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UntilClose,
    Sized(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    Over,
}

impl Framing {
    /// The error says what is wrong.
    pub(crate) fn of(head: &Head<'_>) -> Result<Framing, &'static str> {
        let mut lengths = head.values("content-length").map(decimal);
        let length = lengths.next().transpose()?;
        if lengths.any(|other| other.ok() != length) {
            return Err("Content-Length twice");
        }
        Ok(match (head.members("transfer-encoding").next_back(), length) {
            (Some(last), _) if last.eq_ignore_ascii_case("chunked") => Framing::Chunked,
            (Some(_), _) => Framing::Coded,
            (None, Some(length)) => Framing::Sized(length),
            (None, None) => Framing::UntilClose,
        })
    }
}

impl Content {
    pub(crate) fn new(framing: Framing) -> Content {
        let state = match framing {
            Framing::Sized(length) => State::Sized(length),
            Framing::Chunked => State::ChunkSize,
            Framing::Coded | Framing::UntilClose => State::UntilClose,
        };
        let line = Line::default();
        Content { state, line }
    }

    /// Skips framing at the start of `bytes`; returns how many bytes of content follow. With 0, either the content has
    /// ended, or more bytes are needed.
    pub(crate) fn stretch(&mut self, bytes: &mut &[u8]) -> Result<usize, &'static str> {
        while !bytes.is_empty() {
            match self.state {
                State::UntilClose => return Ok(bytes.len()),
                State::Over | State::Sized(0) => return Ok(0),
                State::Chunk(0) => self.state = State::ChunkEnd,
                State::Sized(left) | State::Chunk(left) => {
                    return Ok(usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len()))
                }
                State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let line = self.line.take(bytes).map_err(|Malformed| "a line too long")?;
                    let Some(line) = line else { return Ok(0) };
                    self.state = match (self.state, line) {
                        (State::ChunkSize, line) => match chunk_size(line)? {
                            0 => State::Trailer,
                            size => State::Chunk(size),
                        },
                        (State::ChunkEnd, []) => State::ChunkSize,
                        (State::ChunkEnd, _) => return Err("a chunk longer than its size"),
                        (_, []) => State::Over,
                        (state, _) => state,
                    };
                }
            }
        }
        Ok(0)
    }

    /// The caller has consumed `length` bytes of the content.
    pub(crate) fn took(&mut self, length: usize) {
        if let State::Sized(left) | State::Chunk(left) = &mut self.state {
            *left -= length as u64;
        }
    }

    /// Returns `true` if the content would be complete if the connection ended now.
    pub(crate) fn may_end(&self) -> bool {
        self.has_ended() || self.state == State::UntilClose
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Over | State::Sized(0))
    }
}

/// RFC 9110 §8.6: digits, and nothing else.
fn decimal(text: &str) -> Result<u64, &'static str> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or("Content-Length is not a number")
}

/// RFC 9112 §7.1: hexadecimal, then perhaps extensions, which are ignored.
fn chunk_size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at(digits);
    let size = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    size.filter(|_| matches!(rest, [] | [b';' | b' ' | b'\t', ..]))
        .ok_or("an invalid chunk size")
}

/// Cuts lines out of the stream; keeps the beginning of an incomplete one.
#[derive(Debug, Default)]
struct Line {
    begun: Vec<u8>,
    /// `begun` was returned as a complete line and is emptied before the next one.
    spent: bool,
}

impl Line {
    /// The next line without its end, or `None` if it is incomplete; then all of `input` is consumed.
    fn take<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        if std::mem::take(&mut self.spent) {
            self.begun.clear();
        }
        let (line, rest) = match memchr(b'\n', input) {
            Some(end) => (&input[..end], Some(&input[end + 1..])),
            None => (*input, None),
        };
        if self.begun.len() + line.len() > LINE_BYTES {
            return Err(Malformed);
        }
        let Some(rest) = rest else {
            self.begun.extend_from_slice(line);
            *input = &[];
            return Ok(None);
        };
        *input = rest;
        if self.begun.is_empty() {
            return Ok(Some(without_cr(line)));
        }
        self.begun.extend_from_slice(line);
        self.spent = true;
        Ok(Some(without_cr(&self.begun)))
    }
}

/// RFC 9112 §2.2: a single LF may end a line.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(fields: &str) -> Result<Content, &'static str> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
        let (framing, _) = Head::parse(text.as_bytes(), Framing::of)
            .expect("valid")
            .expect("whole");
        framing.map(Content::new)
    }

    /// All content of `bytes`, given in pieces of `size`.
    fn read(content: &mut Content, bytes: &[u8], size: usize) -> Result<Vec<u8>, &'static str> {
        let mut found = Vec::new();
        for mut piece in bytes.chunks(size) {
            loop {
                let length = content.stretch(&mut piece)?;
                if length == 0 {
                    break;
                }
                found.extend_from_slice(&piece[..length]);
                content.took(length);
                piece = &piece[length..];
            }
        }
        Ok(found)
    }

    #[test]
    fn chunks_are_found_wherever_reads_cut_them() {
        let bytes = b"5\r\nhello\r\n1;x=y\r\n \r\n0006\r\nworld!\r\n0\r\nt: r\r\n\r\n";
        for size in 1..bytes.len() {
            let mut content = content("Transfer-Encoding: chunked").expect("valid");
            assert_eq!(read(&mut content, bytes, size), Ok(b"hello world!".to_vec()), "{size}");
            assert!(content.has_ended());
        }
    }

    #[test]
    fn what_follows_the_content_is_left() {
        for (fields, bytes) in [
            ("content-length: 1", "xmore"),
            ("transfer-encoding: chunked", "0\r\n\r\nmore"),
        ] {
            let mut content = content(fields).expect("valid");
            let mut rest = bytes.as_bytes();
            let length = content.stretch(&mut rest).expect("valid");
            content.took(length);
            rest = &rest[length..];
            assert_eq!(
                (content.stretch(&mut rest), content.has_ended()),
                (Ok(0), true),
                "{fields}"
            );
            assert_eq!(rest, b"more", "{fields}");
        }
    }

    #[test]
    fn a_stream_may_end_where_its_framing_does() {
        let mut chunked = content("transfer-encoding: Chunked").expect("valid");
        read(&mut chunked, b"1\r\nx\r\n", 9).expect("valid");
        assert!(!chunked.may_end());
        let mut closed = content("x: y").expect("valid");
        read(&mut closed, b"anything", 9).expect("valid");
        assert!(closed.may_end() && !closed.has_ended());
        let mut sized = content("content-length: 2").expect("valid");
        assert!(!sized.may_end());
        read(&mut sized, b"ab", 1).expect("valid");
        assert!(sized.has_ended());
    }

    #[test]
    fn wrong_framing_is_named() {
        let refusal = |fields| content(fields).map(drop);
        assert_eq!(refusal("content-length: two"), Err("Content-Length is not a number"));
        assert_eq!(refusal("content-length: +2"), Err("Content-Length is not a number"));
        assert_eq!(
            refusal("content-length: 2\r\ncontent-length: 3"),
            Err("Content-Length twice")
        );
        let chunked = |bytes: &[u8]| read(&mut content("transfer-encoding: chunked").expect("valid"), bytes, 99);
        assert_eq!(chunked(b"x\r\n"), Err("an invalid chunk size"));
        assert_eq!(chunked(b"-1\r\n"), Err("an invalid chunk size"));
        assert_eq!(chunked(b"1\r\nxy\r\n"), Err("a chunk longer than its size"));
        let endless = vec![b'0'; LINE_BYTES + 1];
        assert_eq!(chunked(&endless), Err("a line too long"));
    }
}
