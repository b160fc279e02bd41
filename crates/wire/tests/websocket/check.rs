//! Properties of any bytes; the random tests and the fuzz target use them.

use super::model;
use super::support::{Heard, Outcome, Setup};

/// Checks the messages against the model, against the same bytes in pieces (of each of these sizes, and of these in
/// turn), and against a reader that stops after each message. Returns the messages.
pub(crate) fn connection(bytes: &[u8], setup: &Setup, sizes: &[usize]) -> Outcome {
    let outcome = setup.read([bytes]);
    let told = || format!("{} in {setup:?}", bytes.escape_ascii());
    assert_eq!(outcome, model::read(bytes, setup), "{}", told());
    for &size in sizes {
        assert_eq!(setup.read(bytes.chunks(size)), outcome, "{} by {size}", told());
    }
    assert_eq!(setup.read(uneven(bytes, sizes)), outcome, "{} by {sizes:?}", told());
    assert_eq!(setup.read_one_by_one(bytes), outcome, "{} one by one", told());
    for heard in &outcome.0 {
        assert_sound(heard, setup);
    }
    outcome
}

fn uneven<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, more) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = more;
    }
    pieces
}

fn assert_sound(heard: &Heard, setup: &Setup) {
    match heard {
        Heard::Text(bytes) | Heard::Binary(bytes) => assert!(bytes.len() <= setup.limits.message_bytes),
        Heard::Ping(bytes) | Heard::Pong(bytes) => assert!(bytes.len() <= 125),
        Heard::Close(_, reason) => assert!(reason.len() <= 123),
    }
    if let Heard::Text(bytes) = heard {
        assert!(std::str::from_utf8(bytes).is_ok());
    }
}
