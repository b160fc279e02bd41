//! The rest of a response that continues after the app has returned, as far as its head defines it.

use super::encoding;
use crate::http::http1::LAST_CHUNK;
use crate::http::own_chunks::OwnChunks;

/// The rest of a body.
#[derive(Debug)]
pub(crate) enum Remainder {
    /// The app decides where it ends.
    Open,
    /// Bytes of the announced length that are missing.
    Bytes(u64),
    /// The app frames it itself, in chunks.
    OwnChunks(Box<OwnChunks>),
}

impl Remainder {
    /// The next piece: the part of `data` that belongs to the body, and its framing.
    ///
    /// # Errors
    /// If the app's own framing is wrong.
    pub(super) fn piece(&mut self, data: &[u8], chunked: bool) -> Result<Vec<u8>, &'static str> {
        match self {
            Remainder::Open => Ok(encoding::piece(data, chunked)),
            Remainder::Bytes(missing) => {
                let most = usize::try_from(*missing).unwrap_or(usize::MAX);
                let data = &data[..data.len().min(most)];
                *missing -= data.len() as u64;
                Ok(encoding::piece(data, chunked))
            }
            Remainder::OwnChunks(chunks) => Ok(encoding::piece(&chunks.decode(data)?, chunked)),
        }
    }

    /// Returns true if bytes of the announced length are missing.
    pub(super) fn is_short(&self) -> bool {
        matches!(self, Remainder::Bytes(1..))
    }

    /// Returns true if the app's own framing lacks its end.
    pub(super) fn lacks_last_chunk(&self) -> bool {
        matches!(self, Remainder::OwnChunks(chunks) if !chunks.is_done())
    }

    /// Returns true if, according to the head or the app's own framing, nothing is missing.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Remainder::Open => false,
            Remainder::Bytes(missing) => *missing == 0,
            Remainder::OwnChunks(chunks) => chunks.is_done(),
        }
    }

    /// The end of a body in chunks, with the app's trailers.
    pub(super) fn last_chunk(&self) -> Vec<u8> {
        match self {
            Remainder::OwnChunks(chunks) => chunks.last_chunk(),
            _ => LAST_CHUNK.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_with_a_length_takes_no_more_than_that() {
        let mut body = Remainder::Bytes(5);
        assert_eq!(body.piece(b"abc", false), Ok(b"abc".to_vec()));
        assert!(body.is_short() && !body.is_complete());
        assert_eq!(body.piece(b"defg", false), Ok(b"de".to_vec()));
        assert!(!body.is_short() && body.is_complete());
    }

    #[test]
    fn a_body_in_chunks_of_the_app_is_complete_with_its_last_chunk() {
        let mut body = Remainder::OwnChunks(Box::new(OwnChunks::new()));
        assert_eq!(body.piece(b"3\r\nabc\r\n", true), Ok(b"3\r\nabc\r\n".to_vec()));
        assert!(body.lacks_last_chunk() && !body.is_complete());
        assert_eq!(body.piece(b"0\r\n\r\n", true), Ok(Vec::new()));
        assert!(!body.lacks_last_chunk() && body.is_complete());
        assert_eq!(body.piece(b"x", true), Ok(Vec::new()), "what follows is left out");
        let mut wrong = Remainder::OwnChunks(Box::new(OwnChunks::new()));
        assert!(wrong.piece(b"<html>", true).is_err());
    }

    #[test]
    fn a_body_without_an_announced_end_is_never_complete_by_itself() {
        let mut body = Remainder::Open;
        assert_eq!(body.piece(b"abc", true), Ok(b"3\r\nabc\r\n".to_vec()));
        assert!(!body.is_short() && !body.is_complete() && !body.lacks_last_chunk());
        assert_eq!(body.last_chunk(), LAST_CHUNK);
    }
}
