//! Limits apply as soon as they are known to be exceeded, and no memory is allocated for bytes that have not arrived.

use crate::support::*;
use fairlead_wire::websocket::{Decoder, Failure, Incoming, Limits, Role};
use std::borrow::Cow;

fn limited(message_bytes: usize, fragments: usize) -> Setup {
    let limits = Limits {
        message_bytes,
        fragments,
    };
    Setup { limits, ..SERVER }
}

#[test]
fn a_message_of_the_limit_arrives_and_one_byte_more_does_not() {
    for limit in [0, 1, 125, 126, 127, 1_000] {
        let setup = limited(limit, 1);
        let message = vec![b'a'; limit];
        assert_eq!(setup.accept(&sent(FIN | TEXT, &message)), [Heard::Text(message)]);
        assert_eq!(
            setup.refuse(&sent(FIN | TEXT, vec![b'a'; limit + 1])),
            Failure::TOO_LARGE
        );
    }
}

#[test]
fn what_is_announced_counts_before_it_has_come() {
    let setup = limited(1_000, 10);
    let header = 8;
    assert_eq!(
        setup.refuse(&sent(FIN | BINARY, vec![0; 1_001])[..header]),
        Failure::TOO_LARGE
    );
    let largest = [&[FIN | BINARY, 0xff, 0x7f][..], &[0xff; 7], &[0; 4]].concat();
    assert_eq!(setup.refuse(&largest), Failure::TOO_LARGE);
    let fragments = [sent(BINARY, [0; 600]), sent(CONTINUATION, [0; 401])[..header].to_vec()].concat();
    assert_eq!(setup.refuse(&fragments), Failure::TOO_LARGE);
    let wrapping = [
        &sent(BINARY, [0; 600])[..],
        &[CONTINUATION, 0xff, 0x7f],
        &[0xff; 7],
        &[0; 4],
    ]
    .concat();
    assert_eq!(setup.refuse(&wrapping), Failure::TOO_LARGE);
}

#[test]
fn the_limit_is_for_a_message_not_for_the_connection() {
    let setup = limited(10, 2);
    let message = [
        sent(BINARY, [1; 5]),
        sent(FIN | PING, [2; 20]),
        sent(FIN | CONTINUATION, [3; 5]),
    ]
    .concat();
    assert_eq!(setup.accept(&message.repeat(50)).len(), 100);
}

#[test]
fn a_message_has_so_many_fragments() {
    for limit in [1, 2, 5] {
        let setup = limited(100, limit);
        let more = vec![sent(CONTINUATION, ""); limit - 1].concat();
        let begun = [sent(TEXT, ""), more].concat();
        assert_eq!(setup.accept(&begun), []);
        assert_eq!(
            setup.refuse(&[begun, sent(FIN | CONTINUATION, "")].concat()),
            Failure::TOO_MANY_FRAGMENTS
        );
    }
}

#[test]
fn an_idle_decoder_is_small() {
    assert!(size_of::<Decoder>() <= 160, "{}", size_of::<Decoder>());
}

#[test]
fn a_message_in_many_reads_is_put_together_in_little_more_memory_than_it_has_bytes() {
    let announced = LIMITS.message_bytes;
    let bytes = sent(FIN | BINARY, vec![1; announced]);
    let mut decoder = Decoder::new(Role::Server, None);
    let mut capacity = 0;
    for piece in bytes.chunks(1_000) {
        let mut on = |incoming: Incoming<'_>| match incoming {
            Incoming::Binary(Cow::Owned(message)) => capacity = message.capacity(),
            other => panic!("{other:?}"),
        };
        assert_eq!(decoder.feed(&mut piece.to_vec(), &LIMITS, &mut on), Ok(()));
    }
    assert!((announced..announced + announced / 8).contains(&capacity), "{capacity}");
}
