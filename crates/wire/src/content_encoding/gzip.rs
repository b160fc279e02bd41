//! gzip (RFC 1952), with zlib's algorithm. The header has no time and no name, so equal content results in equal bytes.

use flate2::{Compress, Compression, FlushCompress, Status};

/// The next level takes half as much time again, for little gain.
const LEVEL: u32 = 5;

/// Log2 of the window: 32 KiB, the maximum.
const WINDOW_BITS: u8 = 15;

/// Output is fetched in pieces of at most this many bytes.
const PIECE: usize = 8 * 1024;

pub(super) struct Gzip {
    stream: Compress,
    /// The buffer for output. The library clears the whole buffer that it gets each time, and `out` may have much free
    /// space.
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

    /// Runs until `input` is consumed and the output does not fill the buffer, which means that no more output is left.
    fn run(&mut self, input: &[u8], operation: FlushCompress, out: &mut Vec<u8>) {
        let mut rest = input;
        loop {
            let (taken, made) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.compress(rest, &mut self.piece[..], operation);
            let taken = (self.stream.total_in() - taken) as usize;
            let made = (self.stream.total_out() - made) as usize;
            rest = rest.get(taken..).unwrap_or_default();
            out.extend_from_slice(self.piece.get(..made).unwrap_or_default());
            // Any result other than `Ok` means that the stream has ended, or that nothing is left to do.
            if (rest.is_empty() && made < PIECE) || !matches!(status, Ok(Status::Ok)) {
                return;
            }
        }
    }
}
