//! Zstandard (RFC 8878).

use std::alloc::{handle_alloc_error, Layout};
use std::io;
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

/// Higher levels take longer, and the results are hardly smaller.
const LEVEL: i32 = 3;

/// Log2 of the window: 256 KiB. Clients need not support more than 8 MiB (RFC 9659 §3); this smaller window bounds the
/// memory of the server.
const WINDOW_LOG: u32 = 18;

/// Log2 of the tables' entries: a quarter of the level's defaults. The tables must be cleared first, which took a third
/// of the time for small contents. Large contents do not get larger with the small tables.
const TABLES: [CParameter; 2] = [CParameter::HashLog(15), CParameter::ChainLog(14)];

/// Space for output is reserved in pieces of at most this many bytes.
const PIECE: usize = 16 * 1024;

pub(super) struct Zstd {
    stream: Encoder<'static>,
}

impl Zstd {
    pub(super) fn new() -> Zstd {
        match Zstd::allocated() {
            Ok(stream) => Zstd { stream },
            Err(_) => handle_alloc_error(Layout::new::<[u8; 1 << WINDOW_LOG]>()),
        }
    }

    /// A stream with all the memory that it will ever need, which the library allocates when it is first called.
    /// Nothing else can fail later.
    fn allocated() -> io::Result<Encoder<'static>> {
        let mut stream = Encoder::new(LEVEL)?;
        stream.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
        for size in TABLES {
            stream.set_parameter(size)?;
        }
        stream.run(&mut InBuffer::around(&[]), &mut OutBuffer::around(&mut [][..]))?;
        Ok(stream)
    }

    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let mut input = InBuffer::around(input);
        drain(out, input.src.len(), |room| {
            self.stream.run(&mut input, room)?;
            Ok(input.src.len() - input.pos())
        });
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        drain(out, PIECE, |room| self.stream.flush(room));
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        drain(out, PIECE, |room| self.stream.finish(room, true));
    }
}

/// Repeats `step`, which returns the number of remaining bytes, until none remain. `left` is an estimate at first.
fn drain(out: &mut Vec<u8>, mut left: usize, mut step: impl FnMut(&mut OutBuffer<'_, Vec<u8>>) -> io::Result<usize>) {
    while left > 0 {
        out.reserve(PIECE.min(left / 2 + 64));
        let filled = out.len();
        // No errors are possible here, see `allocated`.
        left = step(&mut OutBuffer::around_pos(out, filled)).unwrap_or(0);
    }
}
