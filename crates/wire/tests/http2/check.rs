//! Properties of any bytes of HTTP/2; the fuzzer checks them, too.

use super::{http1, model};
use fairlead_wire::http2::{write_head, FrameHead, FrameMeter, Priority, RequestHead, ResponseLines};
use fairlead_wire::{Head, HeadLimits};
use std::time::Duration;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 1 << 16,
    fields: 100,
    target_bytes: 1 << 12,
};

/// Most bytes in one call, for three readings of the same bytes.
const PIECES: [usize; 3] = [usize::MAX, 1, 7];

/// The results of a meter do not depend on the split of the bytes.
pub(crate) fn frames(bytes: &[u8]) {
    let [first, second, last] = PIECES.map(|size| meter(bytes, size));
    assert_eq!(first, second);
    assert_eq!(first, last);
    let expected = naively(bytes);
    assert_eq!(first.0, expected.0, "the frames");
    assert_eq!(first.1, expected.1, "an incomplete frame");
}

type Seen = (Vec<FrameHead>, bool, bool, Vec<u8>);

/// The frames, true if one is incomplete, the flood if there is one, and the data of the last GOAWAY.
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

/// The frames, read without state, and true if one other than DATA, or a block of fields, is incomplete.
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
        // DATA within a block is an error that other code detects; it ends the incomplete block.
        is_partial = is_in_block && head.kind != 0;
    }
    (heads, is_partial || !bytes.is_empty())
}

/// For any parts of a request, the parser finds in its text the same values as a naive reading of the parts, or neither
/// accepts it. The first byte says which parts are present; 0xff separates them. Returns true if it is accepted.
pub(crate) fn request(bytes: &[u8]) -> bool {
    let [choice, rest @ ..] = bytes else { return false };
    let mut parts = rest.split(|byte| *byte == 0xff);
    let mut next = || parts.next().unwrap_or_default();
    let head = RequestHead {
        method: next(),
        scheme: match choice & 12 {
            0 => Some(b"https"),
            4 => None,
            _ => Some(next()),
        },
        authority: Some(next()).filter(|_| choice & 1 != 0),
        path: next(),
        protocol: Some(next()).filter(|_| choice & 2 != 0),
    };
    let parts: Vec<&[u8]> = parts.collect();
    let pairs: Vec<_> = parts
        .chunks_exact(2)
        .map(|pair| (pair[0].to_vec(), pair[1].to_vec()))
        .collect();
    let fields = || pairs.iter().map(|(name, value)| (&name[..], &value[..]));
    let (mut out, limits) = (Vec::new(), LIMITS);
    let written = write_head(&head, fields, &mut out);
    let mut parsed = Head::default();
    let accepted = written.is_ok() && parsed.parse(&out, &limits) == Ok(true);
    let lines = model::lines(&head, &pairs);
    let text = lines.as_ref().map(model::text);
    let expected = text.as_ref().and_then(|text| http1::head(text, &limits));
    assert_eq!(accepted, expected.is_some(), "{head:?} {pairs:?}: {written:?}");
    let (Some(expected), Some((method, target, lines))) = (expected, lines) else {
        return false;
    };
    assert_eq!(out, text.unwrap_or_default());
    assert_eq!(
        (parsed.len, &expected.method, &expected.target),
        (out.len(), &method, &target)
    );
    assert_eq!(parsed.method.of(&out), method);
    assert_eq!(parsed.target.of(&out), target);
    let found = parsed
        .fields
        .iter()
        .map(|field| (field.name.of(&out), field.value.of(&out)));
    // Only the space after the last `cookie` value may be trimmed.
    let wanted = lines.iter().map(|(name, value)| (&name[..], value.trim_ascii_end()));
    assert!(found.eq(wanted), "{head:?} {pairs:?}");
    assert_eq!(parsed.framing, expected.framing);
    assert!(parsed.upgrade || head.protocol.is_none(), "a tunnel upgrades");
    true
}

/// A response head is split into fields without line ends, and no byte after the head is read.
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

/// The priority of any value is a valid priority, and the last member counts.
pub(crate) fn priority(bytes: &[u8]) {
    assert!(Priority::of(bytes) <= Priority::of(b"u=7"));
    assert_eq!(Priority::of(&[bytes, b",u=1"].concat()), Priority::of(b"u=1"));
}
