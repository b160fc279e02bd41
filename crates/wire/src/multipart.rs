//! Writes parts of a file: Content-Range, and the framing of a multipart/byteranges body (RFC 9110 §14.4, §14.6). The
//! caller adds the bytes of the file in between.
//!
//! The caller chooses the boundary. It must not occur in the file, so it must be unpredictable.

use std::io::Write;
use std::ops::Range;

/// Appends the text before the bytes of a part: boundary, fields, and an empty line. `content_type` is the type of the
/// file, if it has one; `range` is not empty.
pub fn part_head(boundary: &[u8], content_type: Option<&[u8]>, range: &Range<u64>, size: u64, out: &mut Vec<u8>) {
    delimiter(boundary, out);
    if let Some(content_type) = content_type {
        out.extend_from_slice(CONTENT_TYPE);
        out.extend_from_slice(content_type);
    }
    out.extend_from_slice(CONTENT_RANGE);
    content_range(range, size, out);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends the text after the last part.
pub fn closing(boundary: &[u8], out: &mut Vec<u8>) {
    delimiter(boundary, out);
    out.extend_from_slice(b"--\r\n");
}

/// The exact length of a body: all part headers, parts, and the closing. `u64::MAX` if it is greater.
pub fn length(boundary: &[u8], content_type: Option<&[u8]>, ranges: &[Range<u64>], size: u64) -> u64 {
    let mut between = Vec::new();
    for range in ranges {
        part_head(boundary, content_type, range, size, &mut between);
    }
    closing(boundary, &mut between);
    let parts = ranges.iter().map(|range| range.end - range.start);
    parts.fold(between.len() as u64, u64::saturating_add)
}

/// Appends the value of Content-Range for a part of `size` bytes; `range` is not empty.
pub fn content_range(range: &Range<u64>, size: u64, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
}

/// Appends the value of Content-Range for a 416 response.
pub fn unsatisfied(size: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "bytes */{size}");
}

const CONTENT_TYPE: &[u8] = b"\r\ncontent-type: ";
const CONTENT_RANGE: &[u8] = b"\r\ncontent-range: ";

/// The line end in front belongs to the delimiter (RFC 2046 §5.1.1). Before the first part it ends an empty preamble,
/// which RFC 9110 §14.6 permits.
fn delimiter(boundary: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n--");
    out.extend_from_slice(boundary);
}
