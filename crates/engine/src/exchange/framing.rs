//! The framing of a body, as it is written (RFC 9112 §7.1).

use crate::http::http1::{chunk_line, BodyFraming, CHUNK_END};
use crate::stream::output::Output;

/// ```text
///   Chunked ── begin ──▶ Chunk(left) ── took the last of it ──▶ Chunked
///   Length(left) ── took ──▶ Length(less)
/// ```
impl BodyFraming {
    /// Frames the next `length` bytes. Returns the number of bytes that belong to the body; `None` if the client gets
    /// no body.
    pub(super) fn begin(&mut self, length: usize, output: &mut Output) -> Option<usize> {
        let at_most = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(length);
        match *self {
            BodyFraming::None => None,
            BodyFraming::Raw => Some(length),
            // A chunk must reach the length in its size line.
            BodyFraming::Length(left) | BodyFraming::Chunk(left) => Some(at_most(left)),
            BodyFraming::Chunked if length == 0 => Some(0),
            BodyFraming::Chunked => {
                output.add(chunk_line(length, &mut [0; 20]));
                *self = BodyFraming::Chunk(length as u64);
                Some(length)
            }
        }
    }

    /// Counts bytes that were added, and ends a chunk that has all of its bytes.
    pub(super) fn took(&mut self, taken: usize, output: &mut Output) {
        match self {
            BodyFraming::Length(left) => *left -= taken as u64,
            BodyFraming::Chunk(left) => {
                *left -= taken as u64;
                if *left == 0 {
                    *self = BodyFraming::Chunked;
                    output.add(CHUNK_END);
                }
            }
            BodyFraming::None | BodyFraming::Chunked | BodyFraming::Raw => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_gets_all_the_bytes_of_its_line_in_several_writes() {
        let (mut framing, mut output) = (BodyFraming::Chunked, Output::default());
        assert_eq!(framing.begin(0, &mut output), Some(0));
        assert_eq!(framing.begin(18, &mut output), Some(18));
        framing.took(10, &mut output);
        assert_eq!(
            framing.begin(100, &mut output),
            Some(8),
            "what follows is another chunk"
        );
        framing.took(8, &mut output);
        assert_eq!(framing, BodyFraming::Chunked);
        assert_eq!(output.buffer(), b"12\r\n\r\n");
    }

    #[test]
    fn a_body_takes_no_more_bytes_than_were_announced() {
        let (mut framing, mut output) = (BodyFraming::Length(5), Output::default());
        assert_eq!(framing.begin(3, &mut output), Some(3));
        framing.took(3, &mut output);
        assert_eq!(framing.begin(3, &mut output), Some(2));
        assert!(output.buffer().is_empty() && BodyFraming::None.begin(3, &mut output).is_none());
    }
}
