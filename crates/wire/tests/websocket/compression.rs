//! Compressed messages (RFC 7692 §7.2): examples of the RFC, output of other compressors, bombs, and broken data.

use crate::check;
use crate::http1::Random;
use crate::puff;
use crate::support::*;
use fairlead_wire::websocket::{Decoder, Deflate, Deflater, Failure, Incoming, Limits, Role};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

/// Text that compresses well, and refers back as far as possible.
fn long_text() -> String {
    let mut random = Random::new(7);
    let words: Vec<String> = (0..400).map(|id| format!("word{} ", id * 7_919 % 1_000)).collect();
    (0..9_000).map(|_| words[random.below(words.len())].as_str()).collect()
}

fn deflated(payload: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    Deflater::new(15).message(payload, false, &mut out);
    out.split_off(6)
}

fn compressed(first: u8, payload: &[u8]) -> Vec<u8> {
    sent(FIN | RSV1 | first, payload)
}

fn text(text: &str) -> Heard {
    Heard::Text(text.into())
}

/// RFC 7692 §7.2.3.
#[test]
fn the_examples_of_the_rfc() {
    let hello: &[u8] = &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let again: &[u8] = &[0xf2, 0x00, 0x11, 0x00, 0x00];
    let stored: &[u8] = &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
    let last_block: &[u8] = &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
    let two_blocks: &[u8] = &[
        0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00,
    ];
    for setup in [SERVER.with(ALONE), SERVER.with(KEPT)] {
        for payload in [hello, stored, last_block, two_blocks] {
            assert_eq!(setup.accept(&compressed(TEXT, payload)), [text("Hello")]);
            let fragments = [
                sent(RSV1 | TEXT, &payload[..3]),
                sent(FIN | CONTINUATION, &payload[3..]),
            ];
            assert_eq!(setup.accept(&fragments.concat()), [text("Hello")]);
        }
    }
    let both = [compressed(TEXT, hello), compressed(TEXT, again)].concat();
    assert_eq!(SERVER.with(KEPT).accept(&both), [text("Hello"), text("Hello")]);
    assert_eq!(
        SERVER.with(ALONE).read_all(&both),
        (vec![text("Hello")], Err(Failure::BROKEN_DEFLATE))
    );
}

#[test]
fn an_empty_message_has_one_byte_or_none() {
    assert_eq!(deflated(b""), [0]);
    for setup in [SERVER.with(ALONE), SERVER.with(KEPT)] {
        for empty in [&[0][..], &[], &[3, 0], &[2, 0]] {
            let bytes = [
                compressed(TEXT, empty),
                compressed(TEXT, &deflated(b"next")),
                compressed(BINARY, empty),
            ]
            .concat();
            assert_eq!(
                setup.accept(&bytes),
                [text(""), text("next"), Heard::Binary(vec![])],
                "{empty:?}"
            );
        }
    }
}

#[test]
fn plain_messages_may_come_between() {
    let bytes = [
        compressed(TEXT, &deflated(b"a")),
        sent(FIN | TEXT, "b"),
        compressed(BINARY, &deflated(b"c")),
    ]
    .concat();
    assert_eq!(
        SERVER.with(ALONE).accept(&bytes),
        [text("a"), text("b"), Heard::Binary(b"c".to_vec())]
    );
}

/// Inflates output of the deflater with a library that knows the window, one byte at a time. This detects a reference
/// beyond the window.
fn inflated(stream: &[u8], bits: u8) -> Vec<u8> {
    let mut inflater = Decompress::new_with_window_bits(false, bits);
    let mut out = Vec::new();
    loop {
        let mut byte = [0];
        let (taken, made) = (inflater.total_in() as usize, inflater.total_out());
        let status = inflater.decompress(&stream[taken..], &mut byte, FlushDecompress::None);
        assert!(status.is_ok(), "{bits} bits: {status:?} after {made}");
        if inflater.total_out() == made {
            assert_eq!(inflater.total_in() as usize, stream.len());
            return out;
        }
        out.push(byte[0]);
    }
}

#[test]
fn each_window_is_kept_to_and_a_larger_one_makes_it_smaller() {
    // For each window there is text that only this window and larger ones reach back to.
    let mut random = Random::new(3);
    let mut noise = |length| -> Vec<u8> { (0..length).map(|_| random.below(256) as u8).collect() };
    let payload: Vec<u8> = (9..=15).flat_map(|bits| noise((1 << bits) * 3 / 5).repeat(2)).collect();
    let mut lengths = Vec::new();
    for bits in 9..=15 {
        let mut deflater = Deflater::new(bits);
        let mut stream = Vec::new();
        for part in payload.chunks(5_000) {
            deflater.message(part, true, &mut stream);
            stream.extend([0, 0, 0xff, 0xff]);
        }
        assert!(inflated(&stream, bits) == payload, "{bits} bits");
        lengths.push(stream.len());
    }
    assert!(lengths.windows(2).all(|pair| pair[1] < pair[0]), "{lengths:?}");
}

#[test]
fn messages_of_any_length_go_there_and_back() {
    let payload = long_text().into_bytes();
    let client = Setup {
        role: Role::Client,
        ..SERVER
    };
    for length in [1, 2, 3, 100, 1_000, 16_383, 16_384, 16_385, 40_000, payload.len()] {
        let mut noise = Random::new(length as u64);
        let noise: Vec<u8> = (0..length).map(|_| noise.below(256) as u8).collect();
        for payload in [&payload[..length], &noise] {
            let message = deflated(payload);
            assert!(puff::inflate(&message).bytes == payload, "{length}");
            let heard = [Heard::Binary(payload.to_vec())];
            assert!(
                SERVER.with(ALONE).accept(&compressed(BINARY, &message)) == heard,
                "{length}"
            );
            let unmasked = raw(FIN | RSV1 | BINARY, None, &message);
            assert!(client.with(ALONE).accept(&unmasked) == heard, "{length}");
        }
    }
}

#[test]
fn context_is_kept_in_the_directions_agreed_on() {
    let once = b"the same words, and enough of them to be worth a reference";
    for server_no_context in [false, true] {
        for client_no_context in [false, true] {
            let deflate = Deflate {
                server_no_context,
                client_no_context,
                ..KEPT
            };
            for (role, alone) in [(Role::Server, client_no_context), (Role::Client, server_no_context)] {
                let setup = Setup { role, ..SERVER }.with(deflate);
                let mut deflater = Deflater::new(15);
                let mut bytes = Vec::new();
                let mut lengths = Vec::new();
                for _ in 0..50 {
                    let mut message = Vec::new();
                    deflater.message(once, !alone, &mut message);
                    lengths.push(message.len());
                    let key = (role == Role::Server).then_some([1, 2, 3, 4]);
                    bytes.extend(raw(FIN | RSV1 | TEXT, key, &message));
                }
                assert_eq!(setup.accept(&bytes), vec![Heard::Text(once.to_vec()); 50]);
                assert_eq!(lengths[1] < lengths[0], !alone, "{role:?} {lengths:?}");
            }
        }
    }
}

#[test]
fn what_other_compressors_make_is_understood() {
    let payload = &long_text().into_bytes()[..40_000];
    for level in [0, 1, 5, 9] {
        for bits in [9, 15] {
            for last in [FlushCompress::Sync, FlushCompress::Full, FlushCompress::Finish] {
                let mut out = vec![0; 2 * payload.len() + 100];
                let mut compress = Compress::new_with_window_bits(Compression::new(level), false, bits);
                let made = compress.compress(payload, &mut out, last);
                assert!(made.is_ok() && compress.total_in() == payload.len() as u64);
                out.truncate(compress.total_out() as usize);
                let message = out.strip_suffix(&[0, 0, 0xff, 0xff]).unwrap_or(&out);
                for setup in [SERVER.with(ALONE), SERVER.with(KEPT)] {
                    let (heard, outcome) = setup.read(compressed(BINARY, message).chunks(100));
                    assert_eq!(outcome, Ok(()), "level {level}, {bits} bits, {last:?}");
                    assert!(
                        heard == [Heard::Binary(payload.to_vec())],
                        "level {level}, {bits} bits, {last:?}"
                    );
                }
            }
        }
    }
}

/// Zeros at DEFLATE's best ratio: 1 to 1,030.
fn bomb(length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    Deflater::new(15).message(&vec![0; length], false, &mut out);
    out
}

/// A server that accepts messages of up to this many bytes.
fn limited(message_bytes: usize) -> Setup {
    let limits = Limits {
        message_bytes,
        ..LIMITS
    };
    Setup { limits, ..SERVER }.with(ALONE)
}

#[test]
fn a_bomb_stays_as_it_came_until_it_is_whole_and_goes_off_at_the_limit() {
    let bomb = bomb(4 << 20);
    assert!(bomb.len() < 4_500);
    let bytes = compressed(BINARY, &bomb);
    for message_bytes in [10_000, 65_536, 1_000_000, (4 << 20) - 1] {
        let setup = limited(message_bytes);
        assert_eq!(setup.accept(&bytes[..bytes.len() - 1]), []);
        assert_eq!(setup.refuse(&bytes), Failure::TOO_LARGE);
        assert_eq!(setup.read([&bytes[..]]), (vec![], Err(Failure::TOO_LARGE)));
    }
    assert!(limited(4 << 20).accept(&bytes) == [Heard::Binary(vec![0; 4 << 20])]);
}

#[test]
fn a_bomb_within_a_bomb_is_no_more_than_a_message() {
    let inner = bomb(4 << 20);
    let outer = deflated(&inner);
    assert!(outer.len() < inner.len() / 20, "{} in {}", inner.len(), outer.len());
    assert!(limited(inner.len()).accept(&compressed(BINARY, &outer)) == [Heard::Binary(inner.clone())]);
    assert_eq!(
        limited(inner.len() - 1).refuse(&compressed(BINARY, &outer)),
        Failure::TOO_LARGE
    );
}

#[test]
fn a_message_of_the_limit_arrives_and_one_byte_more_does_not() {
    for length in [1, 64, 65, 1_000, 16_384, 16_385, 70_000] {
        for payload in [vec![b'a'; length], long_text().into_bytes()[..length].to_vec()] {
            let bytes = compressed(TEXT, &deflated(&payload));
            assert_eq!(limited(length - 1).refuse(&bytes), Failure::TOO_LARGE, "{length}");
            assert!(limited(length).accept(&bytes) == [Heard::Text(payload)], "{length}");
        }
    }
}

#[test]
fn memory_for_a_bomb_stays_within_the_limit() {
    let limits = Limits {
        message_bytes: 100_000,
        fragments: 10,
    };
    let mut decoder = Decoder::new(Role::Server, Some(ALONE));
    let mut capacity = 0;
    let mut on = |incoming: Incoming<'_>| match incoming {
        Incoming::Binary(bytes) => capacity = bytes.into_owned().capacity(),
        other => panic!("{other:?}"),
    };
    let mut bytes = compressed(BINARY, &bomb(limits.message_bytes));
    assert_eq!(decoder.feed(&mut bytes, &limits, &mut on), Ok(()));
    assert_eq!(capacity, limits.message_bytes);
}

#[test]
fn compressed_bytes_that_hold_nothing_have_a_limit_too() {
    let setup = limited(800);
    // Empty stored blocks: 5 bytes for nothing.
    let empty = [0, 0, 0, 0xff, 0xff];
    assert_eq!(
        setup.accept(&compressed(TEXT, &[&empty.repeat(192)[..], &[0]].concat())),
        [text("")]
    );
    assert_eq!(
        setup.refuse(&compressed(TEXT, &empty.repeat(193))[..8]),
        Failure::TOO_LARGE
    );
    // Incompressible data gets a little larger, and still arrives.
    let mut random = Random::new(1);
    let noise: Vec<u8> = (0..800).map(|_| random.below(256) as u8).collect();
    let message = deflated(&noise);
    assert!(message.len() > noise.len());
    assert_eq!(setup.accept(&compressed(BINARY, &message)), [Heard::Binary(noise)]);
}

#[test]
fn broken_data_is_refused() {
    let hello = deflated(b"Hello Hello Hello Hello");
    let broken: [&[u8]; 8] = [
        // A block of an undefined kind.
        &[0x07],
        // Two lengths that do not match.
        &[0x00, 0x05, 0x00, 0x00, 0x00],
        // A reference to before the beginning.
        &[0x02, 0x13, 0x00, 0x00],
        // Lengths of codes that leave codes unused.
        &[0x04, 0x80, 0x01, 0x00, 0x00],
        b"plain text",
        b"\x78\x9c\xf2\x48\xcd\xc9\xc9\x07\x00",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xf2\x48\xcd\xc9\xc9\x07\x00",
        b"\xff\xff\xff",
    ];
    for setup in [SERVER.with(ALONE), SERVER.with(KEPT)] {
        for bytes in broken {
            let (_, outcome) = check::connection(&compressed(BINARY, bytes), &setup, &[1, 3]);
            assert_eq!(outcome, Err(Failure::BROKEN_DEFLATE), "{}", bytes.escape_ascii());
        }
    }
    for end in 1..hello.len() {
        let cut = compressed(BINARY, &hello[..end]);
        assert_eq!(
            SERVER.with(ALONE).refuse(&cut),
            Failure::BROKEN_DEFLATE,
            "cut after {end}"
        );
    }
}

#[test]
fn any_changed_bit_is_noticed_or_means_what_the_model_says() {
    let text = "Hello, hello, HELLO; some words more, so that the codes are dynamic: aaaaaaaaaaaabbbbbbbbbbbbbcdefg";
    let message = compressed(BINARY, &deflated(text.as_bytes()));
    let mut sound = 0;
    for bit in 8 * 6..8 * message.len() {
        let mut changed = message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        sound += usize::from(check::connection(&changed, &SERVER.with(ALONE), &[1, 7]).1.is_ok());
    }
    assert!(
        sound > 50 && sound < 8 * message.len() - 50,
        "{sound} of {}",
        8 * message.len()
    );
}
