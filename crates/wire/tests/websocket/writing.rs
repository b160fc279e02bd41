//! Written frames, compared with frames made byte by byte.

use crate::support::*;
use fairlead_wire::websocket::{frame, masked_frame, Opcode, Role};

const LENGTHS: [usize; 10] = [0, 1, 4, 5, 125, 126, 127, 65_535, 65_536, 100_000];

const OPCODES: [(Opcode, u8); 6] = [
    (Opcode::Continuation, CONTINUATION),
    (Opcode::Text, TEXT),
    (Opcode::Binary, BINARY),
    (Opcode::Close, CLOSE),
    (Opcode::Ping, PING),
    (Opcode::Pong, PONG),
];

#[test]
fn frames_are_what_the_rfc_draws() {
    let key = [0x37, 0xfa, 0x21, 0x3d];
    for length in LENGTHS {
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        for (opcode, number) in OPCODES {
            for (compressed, rsv) in [(false, 0), (true, RSV1)] {
                let mut out = b"before".to_vec();
                frame(&mut out, opcode, compressed, &payload);
                assert!(
                    out.split_off(6) == raw(FIN | rsv | number, None, &payload),
                    "{opcode:?} {length}"
                );
                masked_frame(&mut out, opcode, compressed, key, &payload);
                assert!(
                    out.split_off(6) == raw(FIN | rsv | number, Some(key), &payload),
                    "{opcode:?} {length}"
                );
            }
        }
    }
}

/// RFC 6455 §5.7.
#[test]
fn the_examples_of_the_rfc() {
    let client = Setup {
        role: Role::Client,
        ..SERVER
    };
    let hello = Heard::Text(b"Hello".to_vec());
    let unmasked = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    let mut out = Vec::new();
    frame(&mut out, Opcode::Text, false, b"Hello");
    assert_eq!(out, unmasked);
    out.clear();
    masked_frame(&mut out, Opcode::Text, false, [0x37, 0xfa, 0x21, 0x3d], b"Hello");
    assert_eq!(out, masked);
    assert_eq!(client.accept(&unmasked), std::slice::from_ref(&hello));
    assert_eq!(SERVER.accept(&masked), std::slice::from_ref(&hello));
    let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    assert_eq!(client.accept(&fragments), [hello]);
    let ping = [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(client.accept(&ping), [Heard::Ping(b"Hello".to_vec())]);
    let pong = [0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(SERVER.accept(&pong), [Heard::Pong(b"Hello".to_vec())]);
}
