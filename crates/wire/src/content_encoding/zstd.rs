//! Zstandard (RFC 8878).

use std::alloc::{handle_alloc_error, Layout};
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

/// From here on up the output gets little smaller and takes much longer.
const LEVEL: i32 = 3;

/// Log2 of the window. Clients need not understand one beyond 8 MiB (RFC 9659 §3); this is what the encoder has to keep.
const WINDOW_LOG: u32 = 18;

/// Output is made in pieces of this many bytes at most.
const PIECE: usize = 16 * 1024;

pub(super) struct Zstd {
    stream: Encoder<'static>,
}

impl Zstd {
    /// Makes the library allocate all it will need: nothing but this first call can fail, and only for want of memory.
    pub(super) fn new() -> Zstd {
        let made = Encoder::new(LEVEL).and_then(|mut stream| {
            stream.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
            stream.run(&mut InBuffer::around(&[]), &mut OutBuffer::around(&mut [][..]))?;
            Ok(stream)
        });
        match made {
            Ok(stream) => Zstd { stream },
            Err(_) => handle_alloc_error(Layout::new::<[u8; 1 << WINDOW_LOG]>()),
        }
    }

    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let mut input = InBuffer::around(input);
        while input.pos() < input.src.len() {
            out.reserve(PIECE.min(input.src.len() / 2 + 64));
            let filled = out.len();
            let mut room = OutBuffer::around_pos(out, filled);
            if self.stream.run(&mut input, &mut room).is_err() {
                return;
            }
        }
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        drain(out, |room| self.stream.flush(room));
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        drain(out, |room| self.stream.finish(room, true));
    }
}

/// Repeats `step`, which tells how many bytes are left, until there are none.
fn drain(out: &mut Vec<u8>, mut step: impl FnMut(&mut OutBuffer<'_, Vec<u8>>) -> std::io::Result<usize>) {
    let mut left = 64;
    while left > 0 {
        out.reserve(left.min(PIECE));
        let filled = out.len();
        match step(&mut OutBuffer::around_pos(out, filled)) {
            Ok(more) => left = more,
            Err(_) => return,
        }
    }
}
