//! gzip (RFC 1952), by zlib's algorithm. Its header has no time and no name, so the same content is the same bytes.

use flate2::{Compress, Compression, FlushCompress, Status};

/// One more takes half as long again, for little.
const LEVEL: u32 = 5;

/// Log2 of the window: 32 KiB, the largest there is.
const WINDOW_BITS: u8 = 15;

/// Output is fetched in pieces of this many bytes at most.
const PIECE: usize = 8 * 1024;

pub(super) struct Gzip {
    stream: Compress,
    /// Where the library writes to. It would clear all room it is given, each time, and `out` may have much of it.
    piece: Box<[u8; PIECE]>,
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            stream: Compress::new_gzip(Compression::new(LEVEL), WINDOW_BITS),
            piece: Box::new([0; PIECE]),
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

    /// Goes on until `input` is taken and the output leaves room free, which means that there is no more of it.
    fn run(&mut self, input: &[u8], operation: FlushCompress, out: &mut Vec<u8>) {
        let mut rest = input;
        loop {
            let (taken, made) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.compress(rest, &mut self.piece[..], operation);
            let taken = (self.stream.total_in() - taken) as usize;
            let made = (self.stream.total_out() - made) as usize;
            rest = rest.get(taken..).unwrap_or_default();
            out.extend_from_slice(self.piece.get(..made).unwrap_or_default());
            // Anything else than `Ok` says that the stream has ended, or that there is nothing left to do.
            if (rest.is_empty() && made < PIECE) || !matches!(status, Ok(Status::Ok)) {
                return;
            }
        }
    }
}
