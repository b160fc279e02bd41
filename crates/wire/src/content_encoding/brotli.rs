//! Brotli (RFC 7932).

use brotli::enc::encode::{BrotliEncoderOperation as Operation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use brotli::enc::StandardAlloc;

/// From here on up the output gets little smaller and takes much longer.
const QUALITY: u32 = 4;

/// Log2 of the window.
const WINDOW_BITS: u32 = 18;

/// Output is made in pieces of this many bytes at most.
const PIECE: usize = 16 * 1024;

pub(super) struct Brotli {
    stream: BrotliEncoderStateStruct<StandardAlloc>,
}

impl Brotli {
    pub(super) fn new() -> Brotli {
        let mut stream = BrotliEncoderStateStruct::new(StandardAlloc::default());
        stream.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, QUALITY);
        stream.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, WINDOW_BITS);
        Brotli { stream }
    }

    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.run(input, Operation::BROTLI_OPERATION_PROCESS, out);
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        self.run(&[], Operation::BROTLI_OPERATION_FLUSH, out);
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(&[], Operation::BROTLI_OPERATION_FINISH, out);
    }

    fn run(&mut self, input: &[u8], operation: Operation, out: &mut Vec<u8>) {
        let mut left = input.len();
        let mut taken = 0;
        loop {
            let start = out.len();
            let mut room = PIECE;
            let mut made = 0;
            out.resize(start + room, 0);
            let done = self.stream.compress_stream(
                operation,
                &mut left,
                input,
                &mut taken,
                &mut room,
                &mut out[start..],
                &mut made,
                &mut None,
                &mut |_, _, _, _| (),
            );
            out.truncate(start + made);
            if !done || (left == 0 && !self.stream.has_more_output()) {
                return;
            }
        }
    }
}
