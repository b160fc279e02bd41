//! [`Deflater`]: messages to what permessage-deflate sends of them (RFC 7692 §7.2.1).

use flate2::{Compress, Compression, FlushCompress};

/// From here on up the output gets little smaller and takes much longer; level 1 is a third larger.
const LEVEL: u32 = 2;

/// What a flush ends with and the receiver adds again.
const TAIL: &[u8] = &[0, 0, 0xff, 0xff];

/// Output is made in pieces of this many bytes at most.
const PIECE: usize = 16 * 1024;

/// Compresses messages. Takes a quarter of a megabyte, so that where no context is kept one serves all connections of a
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

    /// Appends `payload` in compressed form, for a frame with RSV1. Without `keep_context` the next message will not refer
    /// to this one.
    pub fn message(&mut self, payload: &[u8], keep_context: bool, out: &mut Vec<u8>) {
        // A second flush with nothing between is none; this is the block it would have written (RFC 7692 §7.2.3.6).
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
            // The stream is never finished and has room, so all it can report is that it needs more of either.
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
