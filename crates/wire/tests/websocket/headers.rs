//! Every possible header: all first bytes with and without a mask, with each class of length, for each role, with and
//! without compression, alone and within a message.

use crate::check;
use crate::support::*;
use fairlead_wire::websocket::{Failure, Role};

/// The second byte without its mask bit, and the digits of the length after it.
const LENGTHS: [&[u8]; 13] = [
    &[0],
    &[1],
    &[2],
    &[125],
    &[126, 0, 0],
    &[126, 0, 125],
    &[126, 0, 126],
    &[126, 255, 255],
    &[127, 0, 0, 0, 0, 0, 0, 255, 255],
    &[127, 0, 0, 0, 0, 0, 1, 0, 0],
    &[127, 0, 0, 0, 0, 0, 16, 0, 1],
    &[127, 0x7f, 255, 255, 255, 255, 255, 255, 255],
    &[127, 0x80, 0, 0, 0, 0, 0, 0, 0],
];

/// A header and the relevant part of its payload: all of a short one.
fn header(first: u8, masked: bool, length: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first, length[0] | if masked { 0x80 } else { 0 }];
    bytes.extend_from_slice(&length[1..]);
    if masked {
        bytes.extend([0; 4]);
    }
    let short = if length[0] < 126 { length[0] } else { 3 };
    // As a close frame 1000 and "!", as a compressed message three broken blocks.
    bytes.extend([3, 0xe8].iter().chain(&[b'!'; 123]).take(usize::from(short)));
    bytes
}

#[test]
fn every_header_means_what_the_model_says() {
    let mut verdicts = [0; 2];
    for role in [Role::Server, Role::Client] {
        for deflate in [None, Some(ALONE), Some(KEPT)] {
            let setup = Setup {
                role,
                deflate,
                ..SERVER
            };
            for (first, length) in (0..=255).flat_map(|first| LENGTHS.map(|length| (first, length))) {
                for masked in [false, true] {
                    let alone = header(first, masked, length);
                    let begun = header(BINARY, role == Role::Server, &[2]);
                    let within = [&begun, &alone[..]].concat();
                    for bytes in [alone, within] {
                        let (_, outcome) = check::connection(&bytes, &setup, &[1, 2, 3]);
                        verdicts[usize::from(outcome.is_ok())] += 1;
                    }
                }
            }
        }
    }
    assert!(verdicts.iter().all(|&count| count > 400), "{verdicts:?}");
}

#[test]
fn reserved_bits_are_refused_unless_they_mark_a_compressed_message() {
    for opcode in [CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG] {
        for rsv in 1..8 {
            let bytes = sent(FIN | rsv << 4 | opcode, "");
            assert_eq!(SERVER.refuse(&bytes), Failure::RESERVED_BIT, "{opcode} {rsv}");
            if rsv != 4 || !matches!(opcode, TEXT | BINARY) {
                assert_eq!(
                    SERVER.with(ALONE).refuse(&bytes),
                    Failure::RESERVED_BIT,
                    "{opcode} {rsv}"
                );
            }
        }
    }
    assert_eq!(
        SERVER.with(ALONE).accept(&sent(FIN | RSV1 | TEXT, [0])),
        [Heard::Text(vec![])]
    );
    let continued = [sent(RSV1 | TEXT, [0]), sent(FIN | RSV1 | CONTINUATION, [0])].concat();
    assert_eq!(SERVER.with(ALONE).refuse(&continued), Failure::RESERVED_BIT);
}

#[test]
fn reserved_opcodes_are_refused() {
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        assert_eq!(
            SERVER.refuse(&sent(FIN | opcode, "")),
            Failure::RESERVED_OPCODE,
            "{opcode}"
        );
        assert_eq!(SERVER.refuse(&sent(opcode, "")), Failure::RESERVED_OPCODE, "{opcode}");
        // The first byte is sufficient.
        assert_eq!(SERVER.refuse(&[FIN | opcode]), Failure::RESERVED_OPCODE, "{opcode}");
    }
}

#[test]
fn clients_mask_and_servers_do_not() {
    let client = Setup {
        role: Role::Client,
        ..SERVER
    };
    for opcode in [TEXT, BINARY, CLOSE, PING, PONG] {
        let (masked, plain) = (sent(FIN | opcode, ""), raw(FIN | opcode, None, b""));
        assert_eq!(SERVER.accept(&masked), client.accept(&plain));
        assert_eq!(SERVER.refuse(&plain), Failure::UNMASKED);
        assert_eq!(client.refuse(&masked), Failure::MASKED);
    }
}

#[test]
fn control_frames_are_short_and_whole() {
    for opcode in [CLOSE, PING, PONG] {
        assert_eq!(SERVER.refuse(&sent(opcode, "")), Failure::FRAGMENTED_CONTROL);
        assert_eq!(SERVER.refuse(&sent(FIN | opcode, [b'a'; 126])), Failure::LONG_CONTROL);
        assert_eq!(
            SERVER.refuse(&sent(FIN | opcode, vec![b'a'; 65_536])),
            Failure::LONG_CONTROL
        );
    }
    let longest = [b'a'; 125];
    assert_eq!(
        SERVER.accept(&sent(FIN | PING, longest)),
        [Heard::Ping(longest.to_vec())]
    );
    assert_eq!(
        SERVER.accept(&sent(FIN | PONG, longest)),
        [Heard::Pong(longest.to_vec())]
    );
}

#[test]
fn lengths_are_as_short_as_they_can_be() {
    let refused = [
        (&[FIN | TEXT, 0x80 | 126, 0, 125][..], Failure::LENGTH_NOT_MINIMAL),
        (&[FIN | TEXT, 0x80 | 126, 0, 0], Failure::LENGTH_NOT_MINIMAL),
        (
            &[FIN | TEXT, 0x80 | 127, 0, 0, 0, 0, 0, 0, 255, 255],
            Failure::LENGTH_NOT_MINIMAL,
        ),
        (&[FIN | TEXT, 0x80 | 127, 0x80], Failure::LENGTH_OVERFLOW),
        (
            &[FIN | TEXT, 0x80 | 127, 0xff, 0, 0, 0, 0, 0, 0, 0],
            Failure::LENGTH_OVERFLOW,
        ),
    ];
    for (bytes, failure) in refused {
        assert_eq!(SERVER.refuse(bytes), failure, "{bytes:?}");
    }
}

#[test]
fn messages_of_every_class_of_length_arrive() {
    for length in [0, 1, 3, 4, 5, 31, 32, 33, 125, 126, 127, 128, 65_535, 65_536, 65_537] {
        let payload: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
        assert_eq!(SERVER.accept(&sent(FIN | BINARY, &payload)), [Heard::Binary(payload)]);
    }
}
