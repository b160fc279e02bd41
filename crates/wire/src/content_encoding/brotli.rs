//! Brotli (RFC 7932).

use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use brotli::enc::StandardAlloc;

/// The next level takes twice as long and is a tenth smaller.
const QUALITY: u32 = 4;

/// Log2 of the window: 128 KiB. The library then uses at most 2.3 MiB in total; with twice the window it would use 3.7
/// MiB, for hardly any gain.
const WINDOW_BITS: u32 = 17;

/// The content length for the library. From 1 MiB on it would allocate a table of 4 MiB.
const LENGTH: u32 = 1 << 19;

pub(super) struct Brotli {
    stream: BrotliEncoderStateStruct<StandardAlloc>,
}

impl Brotli {
    pub(super) fn new() -> Brotli {
        let mut stream = BrotliEncoderStateStruct::new(StandardAlloc::default());
        stream.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, QUALITY);
        stream.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, WINDOW_BITS);
        stream.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, LENGTH);
        Brotli { stream }
    }

    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.run(input, BrotliEncoderOperation::BROTLI_OPERATION_PROCESS, out);
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        self.run(&[], BrotliEncoderOperation::BROTLI_OPERATION_FLUSH, out);
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(&[], BrotliEncoderOperation::BROTLI_OPERATION_FINISH, out);
    }

    /// Runs until `input` is consumed and no output is left. The library gets no output buffer, so it keeps the output
    /// until it is fetched, which saves a copy.
    fn run(&mut self, input: &[u8], operation: BrotliEncoderOperation, out: &mut Vec<u8>) {
        let mut left = input.len();
        let mut taken = 0;
        loop {
            let going_on = self.stream.compress_stream(
                operation,
                &mut left,
                input,
                &mut taken,
                &mut 0,
                &mut [],
                &mut 0,
                &mut None,
                &mut |_, _, _, _| (),
            );
            let mut made = 0;
            let output = self.stream.take_output(&mut made);
            out.extend_from_slice(output.get(..made).unwrap_or_default());
            // The library refuses only operations that are invalid at this point of a stream; no operation here is
            // invalid.
            if !going_on || (left == 0 && !self.stream.has_more_output()) {
                return;
            }
        }
    }
}
