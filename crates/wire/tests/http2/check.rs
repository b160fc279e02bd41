//! What must hold for any bytes of HTTP/2; the fuzzer runs it, too.

use fairlead_wire::http2::{write_head, FrameHead, FrameMeter, Priority, RequestHead, ResponseLines};
use fairlead_wire::{Head, HeadLimits};
use std::time::Duration;

/// Most bytes that are given at once, in three readings of the same.
const PIECES: [usize; 3] = [usize::MAX, 1, 7];

/// What a meter tells does not depend on how the bytes are split.
pub(crate) fn frames(bytes: &[u8]) {
    let [first, second, last] = PIECES.map(|size| meter(bytes, size));
    assert_eq!(first, second);
    assert_eq!(first, last);
    let expected = naively(bytes);
    assert_eq!(first.0, expected.0, "the frames");
    assert_eq!(first.1, expected.1, "whether one is incomplete");
}

type Seen = (Vec<FrameHead>, bool, bool, Vec<u8>);

/// The frames, whether one is incomplete, whether there were too many of something, and what the last GOAWAY says.
fn meter(bytes: &[u8], size: usize) -> Seen {
    let (mut meter, mut seen, mut is_flood) = (FrameMeter::default(), Vec::new(), false);
    for piece in bytes.chunks(size.min(bytes.len().max(1))) {
        is_flood |= meter
            .look_at_each(piece, Duration::ZERO, |head| seen.push(head))
            .is_some();
    }
    (
        seen,
        meter.inside_since().is_some(),
        is_flood,
        meter.goaway_data().to_vec(),
    )
}

/// The frames, read without state, and whether one other than DATA, or a block of fields, is incomplete.
fn naively(mut bytes: &[u8]) -> (Vec<FrameHead>, bool) {
    let (mut heads, mut is_in_block, mut is_partial) = (Vec::new(), false, false);
    while let Some(header) = bytes.first_chunk::<9>() {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let head = FrameHead {
            length: number(&header[..3]),
            kind: header[3],
            flags: header[4],
            stream: number(&header[5..]) as u32 & 0x7fff_ffff,
        };
        heads.push(head);
        bytes = &bytes[9..];
        if matches!(head.kind, 1 | 9) {
            is_in_block = head.flags & 4 == 0;
        }
        if head.length > bytes.len() {
            return (heads, head.kind != 0);
        }
        bytes = &bytes[head.length..];
        // DATA within a block is an error, which others find; it ends what was incomplete.
        is_partial = is_in_block && head.kind != 0;
    }
    (heads, is_partial || !bytes.is_empty())
}

/// Parts without line ends, as `h2` gives them, make a head without further lines. The first byte says which of them
/// there are; 0xff separates them.
pub(crate) fn request(bytes: &[u8]) {
    let [choice, rest @ ..] = bytes else { return };
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    if rest.iter().any(is_line_end) {
        return;
    }
    let mut parts = rest.split(|byte| *byte == 0xff);
    let mut next = || parts.next().unwrap_or_default();
    let head = RequestHead {
        method: next(),
        scheme: Some(&b"https"[..]),
        authority: Some(next()).filter(|_| choice & 1 != 0),
        path: next(),
        protocol: Some(next()).filter(|_| choice & 2 != 0),
    };
    let parts: Vec<&[u8]> = parts.collect();
    let fields = || parts.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let mut out = Vec::new();
    if write_head(&head, fields, &mut out).is_err() {
        return;
    }
    let text = out.strip_suffix(b"\r\n\r\n").expect("the end of a head");
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!(lines <= 1 + 4 + fields().count(), "{out:?}");
    assert_eq!(text.iter().filter(|byte| **byte == b'\r').count(), lines - 1);
    let limits = HeadLimits {
        head_bytes: 1 << 16,
        fields: 100,
        target_bytes: 1 << 12,
    };
    let mut parsed = Head::default();
    if parsed.parse(&out, &limits) == Ok(true) {
        assert_eq!(parsed.fields.len(), lines - 1, "each line is one field");
    }
}

/// A head of a response is taken apart into fields without line ends, and nothing behind it is.
pub(crate) fn response(bytes: &[u8]) {
    let Some(lines) = ResponseLines::of(bytes) else {
        // The shortest status line is "HTTP/1.1 200".
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n");
        assert!(end.is_none_or(|end| end < 12), "a head is complete");
        return;
    };
    assert!(bytes[..lines.len].ends_with(b"\r\n\r\n"));
    let mut length = 0;
    for (name, value) in lines.fields() {
        assert!(!name.contains(&b'\n') && !value.contains(&b'\n'), "{bytes:?}");
        length += name.len() + value.len();
    }
    assert!(length <= lines.len);
    let _ = lines.content_length();
    let behind = [&bytes[..lines.len], b"x: y\r\n\r\n"].concat();
    let again = ResponseLines::of(&behind).expect("still complete");
    assert!(again.fields().eq(lines.fields()) && again.status == lines.status);
}

/// The priority of anything is a priority, and the last member counts.
pub(crate) fn priority(bytes: &[u8]) {
    assert!(Priority::of(bytes) <= Priority::of(b"u=7"));
    assert_eq!(Priority::of(&[bytes, b",u=1"].concat()), Priority::of(b"u=1"));
}
