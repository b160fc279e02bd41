//! Bodies that the app has framed in chunks itself, as Rails' `render stream: true` and `Rack::Chunked` do. The server
//! decodes them and frames the data itself, because HTTP/1.0 and HTTP/2 cannot carry this framing, and because an error
//! in it would make an HTTP/1.1 client read the next response as a part of this one.

use fairlead_wire::ChunkedDecoder;

/// The framing violates RFC 9112 §7.1.
pub(crate) const MALFORMED: &str =
    "the application sent transfer-encoding: chunked, but its body has no valid chunks; the response is aborted";

/// The body ends before its last chunk.
pub(crate) const UNFINISHED: &str =
    "the application sent transfer-encoding: chunked, but its body has no last chunk; the response is aborted";

/// The body continues after its last chunk.
pub(crate) const TOO_LONG: &str =
    "the application sent transfer-encoding: chunked, and a body that goes on after its last chunk; the rest was left out";

/// Finds the data in such a body.
#[derive(Debug)]
pub(crate) struct OwnChunks {
    decoder: ChunkedDecoder,
}

impl OwnChunks {
    pub(crate) fn new() -> OwnChunks {
        OwnChunks {
            decoder: ChunkedDecoder::default().keeping_trailers(),
        }
    }

    /// Returns the number of framing bytes at the start of `bytes`, and the number of data bytes that follow them. Both
    /// are 0 only at the end of the body.
    ///
    /// # Errors
    /// [`MALFORMED`].
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<(usize, usize), &'static str> {
        let framing = self.decoder.skip_framing(bytes).map_err(|_| MALFORMED)?;
        Ok((framing, self.decoder.data_ahead(bytes.len() - framing)))
    }

    /// Notes that data was taken.
    pub(crate) fn took(&mut self, length: usize) {
        self.decoder.take_data(length);
    }

    /// Returns all data in `bytes`. Bytes after the last chunk are left out.
    ///
    /// # Errors
    /// [`MALFORMED`].
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
        let mut data = Vec::with_capacity(bytes.len());
        let decoded = self.decoder.decode(bytes, &mut |part| data.extend_from_slice(part));
        decoded.map(|_| data).map_err(|_| MALFORMED)
    }

    /// Returns true if the last chunk has arrived, with its trailers.
    pub(crate) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// The last chunk, for HTTP/1.1, with the trailers of the app.
    pub(crate) fn last_chunk(&self) -> Vec<u8> {
        [b"0\r\n", self.decoder.trailers(), b"\r\n"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_may_be_taken_in_parts_of_any_size() {
        let body = b"3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: 1\r\n\r\n";
        for most in 1..5 {
            let (mut chunks, mut data, mut rest) = (OwnChunks::new(), Vec::new(), &body[..]);
            while !rest.is_empty() {
                let (framing, ahead) = chunks.next(&rest[..rest.len().min(4)]).expect("chunks");
                let taken = ahead.min(most);
                data.extend_from_slice(&rest[framing..framing + taken]);
                chunks.took(taken);
                assert!(framing + taken > 0);
                rest = &rest[framing + taken..];
            }
            assert_eq!(data, b"abcde");
            assert!(chunks.is_done());
            assert_eq!(chunks.last_chunk(), b"0\r\nT: 1\r\n\r\n");
            assert_eq!(chunks.next(b"more"), Ok((0, 0)));
        }
    }

    #[test]
    fn a_fault_stays() {
        let mut chunks = OwnChunks::new();
        assert_eq!(chunks.next(b"<html>"), Err(MALFORMED));
        assert_eq!(chunks.next(b"0\r\n\r\n"), Err(MALFORMED));
        assert_eq!(chunks.decode(b"0\r\n\r\n"), Err(MALFORMED));
        assert!(!chunks.is_done());
    }
}
