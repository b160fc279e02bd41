//! Where content lies between the framing of HTTP/1.1 (RFC 9112 §6, §7), for streams: as it comes, in place.

use crate::real_time::head::Head;
use crate::response::{chunk_size, decimal, Line, Malformed};

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

impl Content {
    /// RFC 9112 §6.3. The error says what is wrong with the framing.
    pub(crate) fn of(head: &Head) -> Result<Content, &'static str> {
        let mut codings = head.members("transfer-encoding");
        let state = match (codings.next(), codings.next(), head.values("content-length").next()) {
            (Some(coding), None, None) if coding.eq_ignore_ascii_case("chunked") => State::ChunkSize,
            (Some(_), _, _) => return Err("a transfer coding other than chunked"),
            (None, _, Some(length)) => {
                State::Sized(decimal(length.as_bytes()).map_err(|Malformed| "Content-Length is no number")?)
            }
            (None, _, None) => State::UntilClose,
        };
        let line = Line::default();
        Ok(Content { state, line })
    }

    /// Passes over framing at the start of `bytes`; returns how many bytes of content follow, 0 when there are none.
    pub(crate) fn stretch(&mut self, bytes: &mut &[u8]) -> Result<usize, &'static str> {
        while !bytes.is_empty() {
            match self.state {
                State::UntilClose => return Ok(bytes.len()),
                State::Sized(0) => self.state = State::Over,
                State::Chunk(0) => self.state = State::ChunkEnd,
                State::Sized(left) | State::Chunk(left) => {
                    return Ok(usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len()))
                }
                State::Over => return Err("bytes behind the end of the stream"),
                State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let line = self.line.take(bytes).map_err(|Malformed| "a line too long")?;
                    let Some(line) = line else { return Ok(0) };
                    self.state = match (self.state, line) {
                        (State::ChunkSize, line) => match chunk_size(line) {
                            Ok(0) => State::Trailer,
                            Ok(size) => State::Chunk(size),
                            Err(Malformed) => return Err("a chunk size that is none"),
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

    /// `length` bytes of the stretch were used.
    pub(crate) fn took(&mut self, length: usize) {
        if let State::Sized(left) | State::Chunk(left) = &mut self.state {
            *left -= length as u64;
        }
    }

    pub(crate) fn may_end(&self) -> bool {
        self.has_ended() || self.state == State::UntilClose
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Over | State::Sized(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(fields: &str) -> Result<Content, &'static str> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
        let (head, _) = Head::parse(text.as_bytes()).expect("valid").expect("whole");
        Content::of(&head)
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
        assert_eq!(
            content("transfer-encoding: gzip").map(drop),
            Err("a transfer coding other than chunked")
        );
        assert_eq!(
            content("content-length: two").map(drop),
            Err("Content-Length is no number")
        );
        let chunked = |bytes: &[u8]| read(&mut content("transfer-encoding: chunked").expect("valid"), bytes, 99);
        assert_eq!(chunked(b"x\r\n"), Err("a chunk size that is none"));
        assert_eq!(chunked(b"1\r\nxy\r\n"), Err("a chunk longer than its size"));
        assert_eq!(chunked(b"0\r\n\r\nmore"), Err("bytes behind the end of the stream"));
    }
}
