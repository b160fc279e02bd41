//! Properties of every input; the random tests and the fuzz targets use them.

use super::model;
use fairlead_wire::{ChunkedDecoder, Error, Head, HeadLimits, HeadProgress, Span, TargetForm};

/// Checks a head against the model, for consistency, and for input piece by piece. Returns true if it is accepted.
pub(crate) fn head(bytes: &[u8], limits: &HeadLimits) -> bool {
    let mut head = Head::default();
    let outcome = head.parse(bytes, limits);
    let expected = model::head(bytes, limits);
    match (&outcome, &expected) {
        (Ok(true), Some(expected)) => assert_same(bytes, &head, expected),
        (Ok(false) | Err(_), None) => {}
        _ => panic!("{}: parser {outcome:?}, model {expected:?}", bytes.escape_ascii()),
    }
    if outcome == Ok(true) {
        assert_sound(bytes, &head);
    }
    assert_eq!(first_verdict(bytes, limits), outcome, "{}", bytes.escape_ascii());
    for size in [1, 3] {
        let (grown, found) = grown(bytes, limits, size);
        assert_eq!(grown, outcome, "{} by {size}", bytes.escape_ascii());
        if outcome == Ok(true) {
            assert_eq!(format!("{found:?}"), format!("{head:?}"));
        }
    }
    outcome == Ok(true)
}

fn assert_same(bytes: &[u8], head: &Head, expected: &model::Head) {
    assert_eq!(head.len, expected.len);
    assert_eq!(head.method.of(bytes), expected.method);
    assert_eq!(head.target.of(bytes), expected.target);
    assert_eq!(head.version as u8, expected.minor);
    assert_eq!(head.framing, expected.framing);
    assert_eq!(head.keep_alive, expected.keep_alive);
    assert_eq!(head.fields.len(), expected.fields.len());
    for (field, (name, value)) in head.fields.iter().zip(&expected.fields) {
        assert_eq!(field.name.of(bytes), name);
        assert_eq!(field.value.of(bytes), value);
    }
}

/// Spans are inside the head, in order, and contain no byte that any parser could take for a line end.
fn assert_sound(bytes: &[u8], head: &Head) {
    assert!(head.len <= bytes.len());
    let mut at = 0;
    let mut clean = |span: Span| {
        assert!(at <= span.start && span.start <= span.end && span.end as usize <= head.len);
        assert!(!span.of(bytes).iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        at = span.start;
    };
    clean(head.method);
    clean(head.target);
    for field in &head.fields {
        clean(field.name);
        clean(field.value);
    }
    let parts = head.parts;
    for span in [Some(parts.path), parts.query, parts.authority].into_iter().flatten() {
        assert!(head.target.start <= span.start && span.start <= span.end && span.end <= head.target.end);
    }
    assert_eq!(parts.authority.is_some(), parts.form == TargetForm::Absolute);
    assert!(head.host.is_some_and(|host| !host.is_empty()) || head.version as u8 == 0);
    assert!(!head.expect_continue || head.framing.has_body());
}

/// The first result other than "more bytes" when the input grows byte by byte.
fn first_verdict(bytes: &[u8], limits: &HeadLimits) -> Result<bool, Error> {
    let mut head = Head::default();
    for end in 0..=bytes.len() {
        match head.parse(&bytes[..end], limits) {
            Ok(false) => {}
            outcome => return outcome,
        }
    }
    Ok(false)
}

/// Does the same with the progress kept, and several bytes at a time.
fn grown(bytes: &[u8], limits: &HeadLimits, size: usize) -> (Result<bool, Error>, Head) {
    let (mut head, mut progress) = (Head::default(), HeadProgress::default());
    let ends = (0..bytes.len()).step_by(size).chain([bytes.len()]);
    for end in ends {
        match head.parse_on(&bytes[..end], limits, &mut progress) {
            Ok(false) => {}
            outcome => return (outcome, head),
        }
    }
    (Ok(false), head)
}

/// The result for a chunked body: its data, the number of bytes consumed, and true if it is done.
type Decoded = Result<(Vec<u8>, usize, bool), Error>;

/// Checks a chunked body against the model, and in pieces against all at once. Returns true if it is decoded to its
/// end.
pub(crate) fn chunked(bytes: &[u8], max_trailer_bytes: usize) -> bool {
    let decoded = decode(bytes, bytes.len().max(1), max_trailer_bytes);
    let expected = model::chunked(bytes);
    match (&decoded, &expected) {
        (Ok((data, consumed, true)), Some((expected, length))) => assert_eq!((data, consumed), (expected, length)),
        (Ok((_, consumed, false)), None) => assert_eq!(*consumed, bytes.len()),
        (Err(Error::ChunkExtensionTooLong | Error::TrailerTooLarge), _) | (Err(_), None) => {}
        _ => panic!("{}: decoder {decoded:?}, model {expected:?}", bytes.escape_ascii()),
    }
    for size in [1, 2, 3, 7] {
        let in_pieces = decode(bytes, size, max_trailer_bytes);
        assert_eq!(in_pieces, decoded, "{} by {size}", bytes.escape_ascii());
    }
    matches!(decoded, Ok((_, _, true)))
}

fn decode(bytes: &[u8], size: usize, max_trailer_bytes: usize) -> Decoded {
    let mut decoder = ChunkedDecoder::new(max_trailer_bytes);
    let mut data = Vec::new();
    let mut consumed = 0;
    for piece in bytes.chunks(size) {
        let progress = decoder.decode(piece, &mut |part| {
            assert!(!part.is_empty());
            data.extend_from_slice(part);
        })?;
        assert!(progress.consumed == piece.len() || progress.done);
        consumed += progress.consumed;
        if progress.done {
            return Ok((data, consumed, true));
        }
    }
    Ok((data, consumed, false))
}
