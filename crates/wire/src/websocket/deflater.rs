//! [`Deflater`]: compresses messages for permessage-deflate (RFC 7692 §7.2.1).

use flate2::{Compress, Compression, FlushCompress};

/// Higher levels take much longer, and the results are little smaller; level 1 is a third larger.
const LEVEL: u32 = 2;

/// The end of a flush, which the receiver adds again.
const TAIL: &[u8] = &[0, 0, 0xff, 0xff];

/// Output is made in pieces of at most this many bytes.
const PIECE: usize = 16 * 1024;

/// Compresses messages. Uses a quarter of a megabyte. If no context is kept, one compressor serves all connections of a
/// thread.
pub struct Deflater {
    stream: Compress,
}

impl Deflater {
    /// A compressor with a window of `2^bits` bytes; `bits` is from 9 to 15.
    pub fn new(bits: u8) -> Deflater {
        Deflater {
            stream: Compress::new_with_window_bits(Compression::new(LEVEL), false, bits.clamp(9, 15)),
        }
    }

    /// Appends `payload` in compressed form, for a frame with RSV1. Without `keep_context` the next message will not
    /// refer to this one.
    pub fn message(&mut self, payload: &[u8], keep_context: bool, out: &mut Vec<u8>) {
        // A second flush without data in between writes nothing; this is the block that it would have written (RFC 7692
        // §7.2.3.6).
        if payload.is_empty() {
            out.push(0);
            return;
        }
        let mut rest = payload;
        loop {
            let start = out.len();
            let room = PIECE.min(rest.len() + 64);
            out.resize(start + room, 0);
            let (taken, made) = (self.stream.total_in(), self.stream.total_out());
            // The stream is never finished and has space, so the only possible result is that it needs more input or
            // space.
            let _ = self.stream.compress(rest, &mut out[start..], FlushCompress::Sync);
            let made = (self.stream.total_out() - made) as usize;
            out.truncate(start + made);
            rest = &rest[(self.stream.total_in() - taken) as usize..];
            if made < room {
                break;
            }
        }
        debug_assert!(rest.is_empty() && out.ends_with(TAIL));
        out.truncate(out.len() - TAIL.len());
        if !keep_context {
            self.stream.reset();
        }
    }
}
