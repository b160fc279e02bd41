//! The messages are the same for every split of the bytes: at every split point, and at every two.

use crate::check;
use crate::support::*;
use fairlead_wire::websocket::Deflater;

fn compressed(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Deflater::new(15).message(text.as_bytes(), false, &mut out);
    out
}

fn connections() -> Vec<Vec<u8>> {
    let all_kinds = [
        sent(FIN | TEXT, "Hello"),
        sent(FIN | BINARY, ""),
        sent(TEXT, "κό"),
        sent(FIN | PING, "ping"),
        sent(CONTINUATION, b"\xcf"),
        sent(FIN | PONG, ""),
        sent(FIN | CONTINUATION, b"\x83\xce\xbc\xce\xb5"),
        sent(FIN | CLOSE, [3, 0xe8, b'b', b'y', b'e']),
        b"ignored".to_vec(),
    ];
    let with_compression = [
        sent(FIN | RSV1 | TEXT, compressed("Hello Hello Hello")),
        sent(FIN | TEXT, "plain"),
        sent(RSV1 | TEXT, &compressed("Hello Hello Hello")[..4]),
        sent(FIN | PING, ""),
        sent(FIN | CONTINUATION, &compressed("Hello Hello Hello")[4..]),
        sent(FIN | RSV1 | BINARY, ""),
    ];
    let long_header = [sent(FIN | BINARY, [7; 130]), sent(FIN | TEXT, "a")];
    let faults = [
        [sent(FIN | TEXT, "a"), raw(FIN | TEXT, None, b"abc")].concat(),
        [sent(FIN | TEXT, "a"), sent(FIN | TEXT, b"abc\xff")].concat(),
        [sent(FIN | PING, "a"), sent(FIN | CLOSE, [3, 0xe8, b'b', 0xff])].concat(),
        [
            sent(FIN | RSV1 | TEXT, compressed("abc")),
            sent(FIN | RSV1 | TEXT, [0xff, 0xff]),
        ]
        .concat(),
        [sent(TEXT, "a"), vec![FIN | TEXT, 0xfe, 0, 1]].concat(),
    ];
    let mut connections = vec![all_kinds.concat(), with_compression.concat(), long_header.concat()];
    connections.extend(faults);
    connections
}

#[test]
fn in_two_and_in_three_pieces() {
    let setup = SERVER.with(ALONE);
    for bytes in connections() {
        let whole = check::connection(&bytes, &setup, &[1, 2, 3, 5, 7]);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(
                    setup.read(pieces),
                    whole,
                    "{} at {first} and {second}",
                    bytes.escape_ascii()
                );
            }
        }
    }
}

#[test]
fn what_has_been_heard_of_a_beginning_stays_true() {
    let setup = SERVER.with(ALONE);
    for bytes in connections() {
        let (heard, outcome) = setup.read([&bytes[..]]);
        for end in 0..bytes.len() {
            let (before, early) = setup.read([&bytes[..end]]);
            assert!(heard.starts_with(&before), "{} until {end}", bytes.escape_ascii());
            assert!(
                early.is_ok() || early == outcome,
                "{} until {end}",
                bytes.escape_ascii()
            );
        }
    }
}
