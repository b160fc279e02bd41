//! Close frames, and bytes after the end (RFC 6455 §5.5.1, §7.4).

use crate::support::*;
use fairlead_wire::websocket::{close_frame, is_sendable_close_code, Decoder, Failure, Role};

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    sent(FIN | CLOSE, [&code.to_be_bytes(), reason].concat())
}

/// Registered with IANA, and permitted in a close frame.
const REGISTERED: [u16; 12] = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014];

#[test]
fn every_code_is_either_heard_or_refused() {
    for code in 0..=u16::MAX {
        let allowed = REGISTERED.contains(&code) || (3000..=4999).contains(&code);
        assert_eq!(is_sendable_close_code(code), allowed, "{code}");
        let (heard, outcome) = SERVER.read([&close(code, b"bye")[..]]);
        if allowed {
            assert_eq!((heard, outcome), (vec![Heard::Close(Some(code), "bye".into())], Ok(())));
        } else {
            assert_eq!((heard, outcome), (vec![], Err(Failure::INVALID_CLOSE_CODE)), "{code}");
        }
    }
}

#[test]
fn a_close_frame_is_empty_or_has_a_whole_code() {
    assert_eq!(
        SERVER.accept(&sent(FIN | CLOSE, "")),
        [Heard::Close(None, String::new())]
    );
    assert_eq!(SERVER.refuse(&sent(FIN | CLOSE, [3])), Failure::SHORT_CLOSE);
    assert_eq!(
        SERVER.accept(&close(1000, b"")),
        [Heard::Close(Some(1000), String::new())]
    );
    let longest = "\u{e9}".repeat(61);
    assert_eq!(
        SERVER.accept(&close(4999, longest.as_bytes())),
        [Heard::Close(Some(4999), longest)]
    );
}

#[test]
fn a_reason_is_utf8() {
    for reason in [
        &b"\xff"[..],
        b"a\xce",
        b"\xed\xa0\x80",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
    ] {
        assert_eq!(
            SERVER.refuse(&close(1000, reason)),
            Failure::INVALID_UTF8,
            "{}",
            reason.escape_ascii()
        );
    }
    // The code is checked first.
    assert_eq!(SERVER.refuse(&close(999, b"\xff")), Failure::INVALID_CLOSE_CODE);
}

#[test]
fn nothing_is_heard_after_a_close_frame_not_even_faults() {
    let close = close(1001, b"gone");
    let expected = [Heard::Close(Some(1001), "gone".into())];
    for after in [
        &sent(FIN | TEXT, "a")[..],
        &sent(FIN | CLOSE, ""),
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 100],
    ] {
        assert_eq!(SERVER.accept(&[&close, after].concat()), expected);
    }
}

#[test]
fn a_failure_is_for_good() {
    let mut decoder = Decoder::new(Role::Server, None);
    let mut heard: Vec<Heard> = Vec::new();
    let mut feed = |bytes: Vec<u8>| decoder.feed(&mut { bytes }, &LIMITS, &mut |incoming| heard.push(incoming.into()));
    assert_eq!(
        feed([sent(FIN | PING, ""), raw(FIN | TEXT, None, b"a")].concat()),
        Err(Failure::UNMASKED)
    );
    assert_eq!(feed(sent(FIN | TEXT, "a")), Err(Failure::UNMASKED));
    assert_eq!(feed(sent(FIN | CLOSE, "")), Err(Failure::UNMASKED));
    assert_eq!(heard, [Heard::Ping(vec![])]);
}

fn written(code: Option<u16>, reason: &str) -> Vec<u8> {
    let mut bytes = b"before".to_vec();
    close_frame(&mut bytes, code, reason);
    bytes.split_off(6)
}

#[test]
fn close_frames_are_written_with_code_and_reason() {
    assert_eq!(written(None, ""), [0x88, 0]);
    assert_eq!(written(Some(1000), ""), [0x88, 2, 3, 0xe8]);
    assert_eq!(
        written(Some(1009), "too large"),
        [&[0x88, 11, 3, 0xf1][..], b"too large"].concat()
    );
}

#[test]
fn a_reason_without_a_code_or_with_one_that_must_not_be_sent_is_left_out() {
    for code in [
        None,
        Some(0),
        Some(1004),
        Some(1005),
        Some(1006),
        Some(1015),
        Some(2999),
        Some(5000),
    ] {
        assert_eq!(written(code, "reason"), [0x88, 0], "{code:?}");
    }
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    for (reason, kept) in [
        ("a".repeat(123), 123),
        ("a".repeat(124), 123),
        ("\u{e9}".repeat(70), 122),
        ("\u{1f600}".repeat(70), 120),
    ] {
        let frame = written(Some(1000), &reason);
        assert_eq!(frame[..2], [0x88, 2 + kept as u8]);
        assert_eq!(&frame[4..], &reason.as_bytes()[..kept]);
    }
}
