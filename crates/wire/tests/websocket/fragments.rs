//! Messages in fragments, with control frames between them (RFC 6455 §5.4).

use crate::support::*;
use fairlead_wire::websocket::{Decoder, Failure, Incoming, Role};
use std::borrow::Cow;

fn text(text: &str) -> Heard {
    Heard::Text(text.into())
}

#[test]
fn fragments_are_put_together() {
    let message = [
        sent(TEXT, "Hel"),
        sent(CONTINUATION, "l"),
        sent(FIN | CONTINUATION, "o"),
    ]
    .concat();
    assert_eq!(SERVER.accept(&message), [text("Hello")]);
    let empty = [sent(TEXT, ""), sent(CONTINUATION, ""), sent(FIN | CONTINUATION, "")].concat();
    assert_eq!(SERVER.accept(&empty), [text("")]);
    let mostly_empty = [sent(BINARY, ""), sent(CONTINUATION, "a"), sent(FIN | CONTINUATION, "")].concat();
    assert_eq!(SERVER.accept(&mostly_empty), [Heard::Binary(b"a".to_vec())]);
}

#[test]
fn control_frames_between_fragments_come_first() {
    let bytes = [
        sent(TEXT, "Hel"),
        sent(FIN | PING, "one"),
        sent(FIN | PONG, ""),
        sent(CONTINUATION, "l"),
        sent(FIN | PING, ""),
        sent(FIN | CONTINUATION, "o"),
        sent(FIN | BINARY, "next"),
    ];
    let expected = [
        Heard::Ping(b"one".to_vec()),
        Heard::Pong(vec![]),
        Heard::Ping(vec![]),
        text("Hello"),
        Heard::Binary(b"next".to_vec()),
    ];
    assert_eq!(SERVER.accept(&bytes.concat()), expected);
}

#[test]
fn a_close_frame_between_fragments_ends_the_message_unheard() {
    let bytes = [
        sent(TEXT, "Hel"),
        sent(FIN | CLOSE, [3, 0xe8]),
        sent(FIN | CONTINUATION, "lo"),
    ]
    .concat();
    assert_eq!(SERVER.accept(&bytes), [Heard::Close(Some(1000), String::new())]);
}

#[test]
fn a_continuation_continues_something() {
    for first in [CONTINUATION, FIN | CONTINUATION] {
        assert_eq!(SERVER.refuse(&sent(first, "a")), Failure::UNEXPECTED_CONTINUATION);
        let after = [sent(FIN | TEXT, "a"), sent(first, "b")].concat();
        let heard = SERVER.read_all(&after);
        assert_eq!(heard, (vec![text("a")], Err(Failure::UNEXPECTED_CONTINUATION)));
    }
}

#[test]
fn no_message_begins_within_another() {
    for first in [TEXT, FIN | TEXT, BINARY, FIN | BINARY] {
        let bytes = [sent(TEXT, "a"), sent(FIN | PING, ""), sent(first, "b")].concat();
        assert_eq!(
            SERVER.read_all(&bytes),
            (vec![Heard::Ping(vec![])], Err(Failure::INTERRUPTED_MESSAGE))
        );
    }
}

#[test]
fn each_frame_has_a_mask_of_its_own() {
    let bytes = [
        raw(BINARY, Some([1, 2, 3, 4]), b"abcde"),
        raw(CONTINUATION, Some([0; 4]), b"fgh"),
        raw(FIN | CONTINUATION, Some([255; 4]), b"i"),
    ];
    assert_eq!(SERVER.accept(&bytes.concat()), [Heard::Binary(b"abcdefghi".to_vec())]);
}

#[test]
fn only_what_comes_in_pieces_is_copied() {
    let mut borrowed = Vec::new();
    let mut decoder = Decoder::new(Role::Server, None);
    let mut note = |incoming: Incoming<'_>| {
        let (Incoming::Text(bytes) | Incoming::Binary(bytes)) = incoming else {
            panic!("{incoming:?}");
        };
        borrowed.push(matches!(bytes, Cow::Borrowed(_)));
    };
    let whole = [sent(FIN | TEXT, "one"), sent(FIN | BINARY, "two")].concat();
    let fragments = [sent(TEXT, "th"), sent(FIN | CONTINUATION, "ree")].concat();
    let split = sent(FIN | TEXT, "four");
    for piece in [
        &whole[..],
        &fragments,
        &split[..7],
        &split[7..],
        &split[..4],
        &split[4..],
    ] {
        assert_eq!(decoder.feed(&mut piece.to_vec(), &LIMITS, &mut note), Ok(()));
    }
    // The last one was split within its header, so its payload arrived whole.
    assert_eq!(borrowed, [true, true, false, false, true]);
}
