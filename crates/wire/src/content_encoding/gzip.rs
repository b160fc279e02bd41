//! gzip (RFC 1952), by zlib's algorithm.

use flate2::{Compress, Compression, FlushCompress, Status};

/// From here on up the output gets little smaller and takes much longer.
const LEVEL: u32 = 5;

/// Log2 of the window; the largest there is.
const WINDOW_BITS: u8 = 15;

/// Output is made in pieces of this many bytes at most.
const PIECE: usize = 16 * 1024;

pub(super) struct Gzip {
    stream: Compress,
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            stream: Compress::new_gzip(Compression::new(LEVEL), WINDOW_BITS),
        }
    }

    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.run(input, FlushCompress::None, out);
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        self.run(&[], FlushCompress::Sync, out);
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(&[], FlushCompress::Finish, out);
    }

    /// Until all of `input` is taken and the output no longer fills the room it has, which means that there is no more.
    fn run(&mut self, input: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        let start = self.stream.total_in();
        loop {
            let taken = (self.stream.total_in() - start) as usize;
            let rest = input.get(taken..).unwrap_or_default();
            out.reserve(PIECE.min(rest.len() / 2 + 64));
            // All it can report is that it needs more input or output, or that the stream has ended.
            let status = self.stream.compress_vec(rest, out, flush);
            if out.len() < out.capacity() || !matches!(status, Ok(Status::Ok)) {
                return;
            }
        }
    }
}
