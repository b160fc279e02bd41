//! A catalogue of refused Content-Length and Transfer-Encoding fields, which attackers use for smuggling.

use crate::support::{post, refuse};
use fairlead_wire::Error::*;

#[test]
fn content_lengths() {
    let bad = [
        "", " ", "+5", "-5", "-0", "0x5", "0o5", "5x", "5,5", "5, 10", "5 5", "5;a=b", "1_0", "5.0", "\"5\"",
    ];
    let misleading = [
        "007",
        "00",
        "9223372036854775808",
        "99999999999999999999",
        "18446744073709551621",
    ];
    for value in bad.into_iter().chain(misleading) {
        let request = post(&[&format!("Content-Length: {value}")]);
        assert_eq!(refuse(request), InvalidContentLength, "{value:?}");
    }
    assert_eq!(
        refuse(post(&["Content-Length: 5", "Content-Length: 6"])),
        DuplicateContentLength
    );
    assert_eq!(
        refuse(post(&["Content-Length: 5", "content-length: 5"])),
        DuplicateContentLength
    );
    assert_eq!(refuse(post(&["Content-Length: \x0b5"])), ControlCharacter);
    assert_eq!(refuse(post(&["Content-Length : 5"])), SpaceBeforeColon);
}

#[test]
fn transfer_encodings() {
    for value in [
        "gzip",
        "xchunked",
        "chunkedx",
        "identity",
        "gzip, chunked",
        "identity, chunked",
        "chunk",
    ] {
        let request = post(&[&format!("Transfer-Encoding: {value}")]);
        assert_eq!(refuse(request), UnsupportedTransferCoding, "{value:?}");
    }
    let unequal = [
        "chunked;a=b",
        "chunked, gzip",
        "chun ked",
        "\"chunked\"",
        "chunked\u{a0}",
        "[chunked]",
    ];
    for value in ["", ", chunked", "chunked,"].into_iter().chain(unequal) {
        let request = post(&[&format!("Transfer-Encoding: {value}")]);
        assert_eq!(refuse(request), InvalidTransferEncoding, "{value:?}");
    }
    assert_eq!(refuse(post(&["Transfer-Encoding: \x0bchunked"])), ControlCharacter);
    assert_eq!(refuse(post(&["Transfer-Encoding: chunked\0"])), NulByte);
    assert_eq!(refuse(post(&["Transfer-Encoding:", " chunked"])), ObsoleteFold);
}

#[test]
fn repeated_transfer_encodings() {
    assert_eq!(
        refuse(post(&["Transfer-Encoding: chunked, chunked"])),
        DuplicateTransferEncoding
    );
    for first in ["chunked", "gzip", "", "identity"] {
        let request = post(&[&format!("Transfer-Encoding: {first}"), "Transfer-Encoding: chunked"]);
        assert_eq!(refuse(request), DuplicateTransferEncoding, "{first:?}");
    }
}

#[test]
fn fields_that_contradict() {
    let both = ContentLengthWithTransferEncoding;
    assert_eq!(refuse(post(&["Content-Length: 5", "Transfer-Encoding: chunked"])), both);
    assert_eq!(refuse(post(&["Transfer-Encoding: chunked", "Content-Length: 5"])), both);
    assert_eq!(
        refuse(post(&["Transfer-Encoding: identity", "Content-Length: 5"])),
        both
    );
    assert_eq!(refuse(post(&["Transfer-Encoding:", "Content-Length: x"])), both);
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refuse(old), TransferEncodingInHttp10);
    let old_with_both = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(refuse(old_with_both), TransferEncodingInHttp10);
}

#[test]
fn lookalikes() {
    for name in [
        "Content_Length",
        "CONTENT_LENGTH",
        "content_length",
        "Transfer_Encoding",
        "transfer_Encoding",
    ] {
        let request = post(&[&format!("{name}: 5")]);
        assert_eq!(refuse(request), FramingLookalike, "{name}");
    }
}
