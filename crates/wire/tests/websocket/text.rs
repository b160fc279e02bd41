//! Text is UTF-8 (RFC 6455 §8.1, RFC 3629); invalid text is refused at the first byte that shows it.

use crate::support::*;
use fairlead_wire::websocket::{Decoder, Deflater, Failure, Role};

/// First and last of each row of the table in RFC 3629 §4, and characters that are valid but odd.
const VALID: [&str; 18] = [
    "",
    "\0",
    "\u{7f}",
    "\u{80}",
    "\u{7ff}",
    "\u{800}",
    "\u{fff}",
    "\u{1000}",
    "\u{cfff}",
    "\u{d000}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{fffd}",
    "\u{feff}",
    "\u{ffff}",
    "\u{10000}",
    "\u{10ffff}",
    "Hello-µ@ßöäüàá-UTF-8!!",
];

/// Bytes that no valid text begins with, up to the byte that shows it.
const INVALID: [&[u8]; 31] = [
    // Continuations without a beginning.
    b"\x80",
    b"\xbf",
    // Beginnings of overlong characters.
    b"\xc0",
    b"\xc1",
    b"\xe0\x80",
    b"\xe0\x9f",
    b"\xf0\x80",
    b"\xf0\x8f",
    // Surrogates.
    b"\xed\xa0",
    b"\xed\xbf",
    // Beyond U+10FFFF.
    b"\xf4\x90",
    b"\xf5",
    b"\xf8",
    b"\xfc",
    b"\xfe",
    b"\xff",
    // A character that is not continued.
    b"\xc2 ",
    b"\xc2\xc2",
    b"\xdf\xff",
    b"\xe1\x80 ",
    b"\xe1\x80\xc2",
    b"\xe1 ",
    b"\xe1\xff",
    b"\xef\xbf\x7f",
    b"\xf0\x90 ",
    b"\xf0\x90\x80 ",
    b"\xf1\x80\x80\xc0",
    b"\xf3\xc0",
    b"\xf4\x8f\xbf\x7f",
    b"\xf4\x7f",
    b"\xc3\x28",
];

#[test]
fn valid_text_arrives_in_any_fragments() {
    for text in VALID {
        let text = format!("a{text}z");
        assert_eq!(
            SERVER.accept(&sent(FIN | TEXT, &text)),
            [Heard::Text(text.clone().into())]
        );
        for split in 0..=text.len() {
            let (front, back) = text.as_bytes().split_at(split);
            let bytes = [sent(TEXT, front), sent(FIN | PING, ""), sent(FIN | CONTINUATION, back)].concat();
            assert_eq!(
                SERVER.accept(&bytes),
                [Heard::Ping(vec![]), Heard::Text(text.clone().into())]
            );
        }
    }
}

#[test]
fn invalid_text_is_refused_with_the_byte_that_shows_it() {
    for invalid in INVALID {
        for before in ["", "a", "κόσμε", "a long beginning, so that it fills a word or two"] {
            let text = [before.as_bytes(), invalid].concat();
            // As the beginning of a message that is not complete yet.
            let whole = sent(FIN | TEXT, [&text[..], b"and more"].concat());
            let header = 6;
            let at_last = header + text.len();
            assert_eq!(
                SERVER.read_all(&whole[..at_last - 1]),
                (vec![], Ok(())),
                "{}",
                text.escape_ascii()
            );
            assert_eq!(
                SERVER.refuse(&whole[..at_last]),
                Failure::INVALID_UTF8,
                "{}",
                text.escape_ascii()
            );
            assert_eq!(SERVER.refuse(&whole), Failure::INVALID_UTF8);
            // Byte by byte, in fragments that are not the last.
            let fragment = |(at, byte): (usize, &u8)| sent(if at == 0 { TEXT } else { CONTINUATION }, [*byte]);
            let fragments: Vec<u8> = text.iter().enumerate().flat_map(fragment).collect();
            assert_eq!(
                SERVER.refuse(&fragments),
                Failure::INVALID_UTF8,
                "{}",
                text.escape_ascii()
            );
        }
    }
}

#[test]
fn a_text_does_not_end_within_a_character() {
    for text in ["µ", "€", "\u{10ffff}"] {
        for end in 1..text.len() {
            let cut = &text.as_bytes()[..end];
            assert_eq!(SERVER.refuse(&sent(FIN | TEXT, cut)), Failure::INVALID_UTF8);
            let fragments = [sent(TEXT, cut), sent(FIN | CONTINUATION, "")].concat();
            assert_eq!(SERVER.refuse(&fragments), Failure::INVALID_UTF8);
            // The rest does not help in a separate message.
            let apart = [sent(FIN | TEXT, cut), sent(FIN | TEXT, &text.as_bytes()[end..])].concat();
            assert_eq!(SERVER.refuse(&apart), Failure::INVALID_UTF8);
        }
    }
}

#[test]
fn binary_messages_hold_anything() {
    for invalid in INVALID {
        let bytes = [
            sent(BINARY, invalid),
            sent(FIN | CONTINUATION, invalid),
            sent(FIN | TEXT, "a"),
        ]
        .concat();
        assert_eq!(
            SERVER.accept(&bytes),
            [Heard::Binary(invalid.repeat(2)), Heard::Text(b"a".to_vec())]
        );
    }
}

#[test]
fn compressed_text_is_checked_before_what_follows() {
    for invalid in INVALID {
        let text = ["κόσμε".as_bytes(), invalid, &[b'z'; 300]].concat();
        let mut compressed = Vec::new();
        Deflater::new(15).message(&text, false, &mut compressed);
        // The next byte would be a fault, too, if it were checked first.
        let bytes = [sent(FIN | RSV1 | TEXT, &compressed), vec![0xff]].concat();
        assert_eq!(
            SERVER.with(ALONE).refuse(&bytes),
            Failure::INVALID_UTF8,
            "{}",
            invalid.escape_ascii()
        );
        assert_eq!(
            SERVER.with(ALONE).accept(&sent(FIN | RSV1 | BINARY, &compressed)),
            [Heard::Binary(text)]
        );
    }
}

#[test]
fn a_long_text_is_refused_before_it_has_come() {
    let mut decoder = Decoder::new(Role::Server, None);
    let start = &sent(FIN | TEXT, vec![0xff; 1 << 20])[..15];
    let fed = decoder.feed(&mut start.to_vec(), &LIMITS, &mut |incoming| panic!("{incoming:?}"));
    assert_eq!(fed, Err(Failure::INVALID_UTF8));
}
