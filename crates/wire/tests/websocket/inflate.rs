//! What DEFLATE streams (RFC 1951) hold, by miniz_oxide: another library than the one that is tested. The whole stream is read
//! from its start each time. It takes a code without an end of the block, which zlib does not; no case here has one.

use miniz_oxide::inflate::core::inflate_flags::{TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF};
use miniz_oxide::inflate::core::{decompress, DecompressorOxide};
use miniz_oxide::inflate::TINFLStatus;

/// Why there is no more output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The input has ended, whether between blocks or within one.
    Input,
    /// The input is no DEFLATE stream from here on.
    Broken,
}

/// What a stream holds.
pub(crate) struct Inflated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: End,
    /// The input ends exactly with a last block.
    pub(crate) complete: bool,
}

/// All that `stream` holds. Behind a last block another stream begins with the next byte, and with no history.
pub(crate) fn inflate(stream: &[u8]) -> Inflated {
    let mut bytes = Vec::new();
    let mut rest = stream;
    loop {
        let (found, taken, status) = one(rest);
        bytes.extend(found);
        rest = &rest[taken..];
        if status == TINFLStatus::Done && !rest.is_empty() {
            continue;
        }
        let complete = status == TINFLStatus::Done;
        let end = match status {
            TINFLStatus::Done | TINFLStatus::NeedsMoreInput => End::Input,
            _ => End::Broken,
        };
        return Inflated { bytes, end, complete };
    }
}

/// What comes up to a last block, the bytes taken for it, and how it ended.
fn one(stream: &[u8]) -> (Vec<u8>, usize, TINFLStatus) {
    let flags = TINFL_FLAG_HAS_MORE_INPUT | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let mut decompressor = DecompressorOxide::new();
    let (mut out, mut filled, mut taken) = (vec![0; 1_024], 0, 0);
    loop {
        let (status, read, written) = decompress(&mut decompressor, &stream[taken..], &mut out, filled, flags);
        taken += read;
        filled += written;
        if status != TINFLStatus::HasMoreOutput {
            out.truncate(filled);
            return (out, taken, status);
        }
        out.resize(2 * out.len(), 0);
    }
}
