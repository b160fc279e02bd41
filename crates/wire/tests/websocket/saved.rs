//! A decoder that was saved and restored continues as if nothing had happened, at every point of the bytes.

use crate::support::*;
use fairlead_wire::websocket::{Decoder, Deflate, Deflater, Role};

/// Feeds the bytes, and replaces the decoder after each `every` of them.
fn read_with_moves(deflate: Option<Deflate>, bytes: &[u8], every: usize) -> Outcome {
    let mut decoder = Decoder::new(Role::Server, deflate);
    let mut heard = Vec::new();
    for piece in bytes.chunks(every) {
        let fed = decoder.feed(&mut piece.to_vec(), &LIMITS, &mut |incoming| {
            heard.push(incoming.into())
        });
        if fed.is_err() {
            return (heard, fed);
        }
        let Some(saved) = decoder.save() else { break };
        decoder = Decoder::restore(Role::Server, deflate, &saved).expect("a state");
    }
    (heard, Ok(()))
}

/// Frames of all kinds, a message in fragments with a control frame and a character between them, and three compressed
/// messages that refer to earlier ones.
fn frames(deflate: Option<Deflate>) -> Vec<u8> {
    let mut frames = vec![
        sent(FIN | TEXT, "Hello"),
        sent(FIN | BINARY, [7; 300]),
        sent(TEXT, "κό"),
        sent(CONTINUATION, b"\xcf"),
        sent(FIN | PING, "ping"),
        sent(FIN | CONTINUATION, b"\x83\xce\xbc\xce\xb5"),
    ];
    let mut deflater = Deflater::new(15);
    for round in 0..if deflate.is_some() { 3 } else { 0 } {
        let mut out = Vec::new();
        let is_kept = deflate.is_some_and(|deflate| !deflate.client_no_context);
        deflater.message(format!("Hello again and again {round}").as_bytes(), is_kept, &mut out);
        frames.push(sent(FIN | RSV1 | TEXT, out));
    }
    frames.concat()
}

#[test]
fn at_every_point() {
    for deflate in [None, Some(ALONE), Some(KEPT)] {
        let setup = Setup { deflate, ..SERVER };
        for end in [&b""[..], b"\xff", &sent(FIN | CLOSE, [3, 0xe8])] {
            let bytes = [&frames(deflate)[..], end].concat();
            let whole = setup.read([&bytes[..]]);
            for every in [1, 2, 3, 5, 7, 11, 200] {
                assert_eq!(
                    read_with_moves(deflate, &bytes, every),
                    whole,
                    "{deflate:?}, every {every}"
                );
            }
        }
    }
}

#[test]
fn a_message_may_refer_to_a_whole_window_of_earlier_ones() {
    let mut deflater = Deflater::new(15);
    let noise: Vec<u8> = (0..40_000u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut bytes = Vec::new();
    for _ in 0..2 {
        let mut out = Vec::new();
        deflater.message(&noise, true, &mut out);
        bytes.extend(sent(FIN | RSV1 | BINARY, out));
    }
    let whole = SERVER.with(KEPT).read([&bytes[..]]);
    assert_eq!(whole.0.len(), 2);
    assert_eq!(read_with_moves(Some(KEPT), &bytes, 1_000), whole);
}

#[test]
fn other_bytes_are_no_state() {
    let mut decoder = Decoder::new(Role::Server, Some(KEPT));
    let mut begun = frames(Some(KEPT));
    begun.truncate(begun.len() - 3);
    decoder.feed(&mut begun, &LIMITS, &mut |_| {}).expect("no fault");
    let saved = decoder.save().expect("a state");
    for length in 0..saved.len() {
        assert!(
            Decoder::restore(Role::Server, Some(KEPT), &saved[..length]).is_none(),
            "{length} bytes"
        );
    }
    let longer = [&saved[..], &[0]].concat();
    assert!(Decoder::restore(Role::Server, Some(KEPT), &longer).is_none());
    assert!(
        Decoder::restore(Role::Server, Some(ALONE), &saved).is_none(),
        "it has a window"
    );
}
