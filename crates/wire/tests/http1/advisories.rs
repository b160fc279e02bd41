//! Published advisories about HTTP/1 parsers, each tried against this parser.

use crate::support::{decode, post, refuse};
use fairlead_wire::{Error, Error::*, Head};

fn refuse_body(body: impl AsRef<[u8]>) -> Error {
    match decode(body) {
        Err(error) => error,
        other => panic!("not refused: {other:?}"),
    }
}

/// Puma: ignored an unknown Transfer-Encoding, so the body was read as the next request.
#[test]
fn cve_2020_11076_and_11077_unknown_transfer_encoding() {
    assert_eq!(
        refuse(post(&["Transfer-Encoding: chunked, identity"])),
        InvalidTransferEncoding
    );
    assert_eq!(
        refuse(post(&["Transfer-Encoding: cow", "Content-Length: 5"])),
        ContentLengthWithTransferEncoding
    );
    assert_eq!(
        refuse(post(&["Transfer-Encoding: cow, chunked"])),
        UnsupportedTransferCoding
    );
}

/// Puma: a bare LF ended a field line.
#[test]
fn cve_2021_41136_bare_line_feed_in_fields() {
    assert_eq!(
        refuse("GET / HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 5\r\n\r\n"),
        BareLineFeed
    );
}

/// Puma: lenient Transfer-Encoding, sizes that are not digits, repeated Content-Length, chunks not ended by CRLF.
#[test]
fn cve_2022_24790_lenient_framing() {
    assert_eq!(
        refuse(post(&["Transfer-Encoding: chunked, chunked"])),
        DuplicateTransferEncoding
    );
    assert_eq!(refuse(post(&["Content-Length: 0x5"])), InvalidContentLength);
    assert_eq!(
        refuse(post(&["Content-Length: 5", "Content-Length: 0"])),
        DuplicateContentLength
    );
    assert_eq!(refuse_body("5foo\r\nhello\r\n0\r\n\r\n"), InvalidChunkSize);
    assert_eq!(refuse_body("5\r\nhelloXX0\r\n\r\n"), MissingChunkTerminator);
}

/// Puma: ignored an empty Content-Length, and left trailer fields for the next request.
#[test]
fn cve_2023_40175_blank_content_length_and_trailers() {
    assert_eq!(refuse(post(&["Content-Length:"])), InvalidContentLength);
    assert_eq!(refuse(post(&["Content-Length: \t "])), InvalidContentLength);
    let body = "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n";
    let next = "GET / HTTP/1.1\r\n";
    assert_eq!(decode(format!("{body}{next}")), Ok((b"x".to_vec(), body.len(), true)));
}

/// Puma: read and dropped chunk extensions of any length.
#[test]
fn cve_2024_21647_unbounded_chunk_extensions() {
    assert_eq!(refuse_body(format!("1;{}", "a".repeat(1 << 16))), ChunkExtensionTooLong);
    assert_eq!(refuse_body("1;a\r\nx\r\n".repeat(1 << 14)), ChunkExtensionTooLong);
}

/// Puma: `Content_Length` and `Transfer_Encoding` became the framing fields through their CGI names.
#[test]
fn cve_2026_68006_underscores_in_framing_fields() {
    assert_eq!(
        refuse(post(&["Content-Length: 5", "Content_Length: 0"])),
        FramingLookalike
    );
    assert_eq!(
        refuse(post(&["Content-Length: 5", "Transfer_Encoding: chunked"])),
        FramingLookalike
    );
    assert_eq!(refuse_body("0\r\nTransfer_Encoding: chunked\r\n\r\n"), ForbiddenTrailer);
}

/// WEBrick: anything that contained "chunked" was chunked.
#[test]
fn cve_2020_25613_loosely_matched_transfer_encoding() {
    assert_eq!(
        refuse(post(&["Transfer-Encoding: xchunked"])),
        UnsupportedTransferCoding
    );
    assert_eq!(refuse(post(&["Transfer-Encoding: \u{b}chunked"])), ControlCharacter);
}

/// WEBrick, reel, Agoo, goliath: Content-Length together with Transfer-Encoding, or several Content-Length fields.
#[test]
fn cve_2024_47220_and_2020_7659_7670_7671_two_framings() {
    let both = ["Content-Length: 5", "Transfer-Encoding: chunked"];
    assert_eq!(refuse(post(&both)), ContentLengthWithTransferEncoding);
    assert_eq!(
        refuse(post(&["Content-Length: 5", "Content-Length: 5"])),
        DuplicateContentLength
    );
    assert_eq!(refuse(post(&["Content-Length: 5, 5"])), InvalidContentLength);
}

/// WEBrick: the end of reading the head and the end of parsing it were at different lines.
#[test]
fn cve_2025_6442_inconsistent_end_of_head() {
    assert_eq!(refuse("GET / HTTP/1.1\r\nHost: a\r\n \r\nX: y\r\n\r\n"), ObsoleteFold);
    assert_eq!(refuse("GET / HTTP/1.1\r\nHost: a\r\n\nX: y\r\n\r\n"), BareLineFeed);
}

/// protocol-http1: signs and prefixes in sizes, LF in chunk extensions.
#[test]
fn cve_2023_38697_sizes_as_ruby_reads_integers() {
    for size in ["+5", "-5", "0x5", "5_0", " 5", "5 5"] {
        assert_eq!(
            refuse(post(&[&format!("Content-Length: {size}x")])),
            InvalidContentLength,
            "{size:?}"
        );
    }
    for size in ["+5", "-5", "0x5", "5_0", " 5"] {
        assert_eq!(
            refuse_body(format!("{size}\r\nhello\r\n0\r\n\r\n")),
            InvalidChunkSize,
            "{size:?}"
        );
    }
    assert_eq!(refuse_body("5;a\nhello\r\n0\r\n\r\n"), BareLineFeed);
}

/// Passenger: a method that was no token crashed the parser.
#[test]
fn cve_2025_26803_invalid_method() {
    assert_eq!(refuse("\u{7f}\u{7f} / HTTP/1.1\r\nHost: a\r\n\r\n"), ControlCharacter);
    assert_eq!(refuse("{} / HTTP/1.1\r\nHost: a\r\n\r\n"), InvalidMethod);
}

/// hyper: read only one of several Transfer-Encoding fields.
#[test]
fn rustsec_2021_0020_several_transfer_encoding_fields() {
    let fields = ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"];
    assert_eq!(refuse(post(&fields)), DuplicateTransferEncoding);
}

/// hyper: a sign in Content-Length, a chunk size that wraps around.
#[test]
fn rustsec_2021_0078_and_0079_signs_and_overflow() {
    assert_eq!(refuse(post(&["Content-Length: +3"])), InvalidContentLength);
    assert_eq!(refuse_body("f0000000000000003\r\nabc\r\n0\r\n\r\n"), ChunkSizeOverflow);
}

/// pingora, aiohttp, mongoose: Transfer-Encoding in HTTP/1.0.
#[test]
fn cve_2026_2835_transfer_encoding_in_http_1_0() {
    let request = "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refuse(request), TransferEncodingInHttp10);
}

/// tungstenite and WEBrick: read a long head that arrives in many pieces again and again. Here the limit on fields
/// bounds the number of lines, and so the work. Test: the most lines, each parsed when it arrives, with a long last
/// one.
#[test]
fn cve_2023_43669_and_2008_4310_no_quadratic_reading() {
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    let mut head = Head::default();
    let mut calls = 0;
    let outcome = loop {
        bytes.extend_from_slice(b"X: ");
        bytes.extend(std::iter::repeat_n(b'y', 500));
        bytes.extend_from_slice(b"\r\n");
        calls += 1;
        match head.parse(&bytes, &crate::support::LIMITS) {
            Ok(false) => {}
            outcome => break outcome,
        }
    };
    assert_eq!(outcome.map_err(Error::status), Err(431));
    assert!(calls <= crate::support::LIMITS.fields + 1, "{calls} calls");
}
