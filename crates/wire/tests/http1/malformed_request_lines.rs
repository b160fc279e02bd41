//! A catalogue of refused request lines, named by the defect, with the exact error.

use crate::support::{accept, refuse};
use fairlead_wire::{Error, Error::*, MAX_METHOD_BYTES};

type Case = (&'static str, &'static [u8], Error);

fn assert_refused(before: &str, cases: &[Case], after: &str) {
    for (defect, bytes, error) in cases {
        let request = [before.as_bytes(), bytes, after.as_bytes()].concat();
        assert_eq!(refuse(request), *error, "{defect}");
    }
}

#[test]
fn whole_lines() {
    let cases: [Case; 20] = [
        ("ended by bare LF", b"GET / HTTP/1.1\n", BareLineFeed),
        ("ended by bare CR", b"GET / HTTP/1.1\r", BareCarriageReturn),
        ("ended by CR CR LF", b"GET / HTTP/1.1\r\r\n", BareCarriageReturn),
        ("LF before it", b"\nGET / HTTP/1.1\r\n", BareLineFeed),
        ("CR before it", b"\rGET / HTTP/1.1\r\n", BareCarriageReturn),
        (
            "two empty lines before it",
            b"\r\n\r\nGET / HTTP/1.1\r\n",
            RepeatedEmptyLine,
        ),
        ("empty line and LF before it", b"\r\n\nGET / HTTP/1.1\r\n", BareLineFeed),
        ("space before it", b" GET / HTTP/1.1\r\n", InvalidMethod),
        ("only spaces", b"   \r\n", InvalidMethod),
        ("tab after the method", b"GET\t/ HTTP/1.1\r\n", InvalidMethod),
        ("method with a separator", b"GE(T / HTTP/1.1\r\n", InvalidMethod),
        ("method beyond ASCII", b"G\xc3\x8bT / HTTP/1.1\r\n", InvalidMethod),
        ("method alone", b"GET\r\n", InvalidMethod),
        ("NUL in the method", b"GE\0T / HTTP/1.1\r\n", NulByte),
        ("TLS handshake", b"\x16\x03\x01\x02\x00\x01\x00\x01", ControlCharacter),
        ("two spaces after the method", b"GET  / HTTP/1.1\r\n", InvalidTarget),
        ("no target", b"GET HTTP/1.1\r\n", InvalidVersion),
        ("two spaces after the target", b"GET /  HTTP/1.1\r\n", InvalidVersion),
        ("HTTP/0.9", b"GET /\r\n", InvalidVersion),
        ("CONNECT", b"CONNECT a:443 HTTP/1.1\r\n", UnsupportedMethod),
    ];
    assert_refused("", &cases, "Host: a\r\n\r\n");
}

#[test]
fn versions() {
    let cases: [Case; 17] = [
        ("HTTP/0.9 by number", b"HTTP/0.9", InvalidVersion),
        ("lower case", b"http/1.1", InvalidVersion),
        ("no minor version", b"HTTP/1", InvalidVersion),
        ("two digits", b"HTTP/1.10", InvalidVersion),
        ("leading zeros", b"HTTP/01.01", InvalidVersion),
        ("space inside", b"HTTP/ 1.1", InvalidVersion),
        ("space behind", b"HTTP/1.1 ", InvalidVersion),
        ("twice", b"HTTP/1.1 HTTP/1.1", InvalidVersion),
        ("comma", b"HTTP/1,1", InvalidVersion),
        ("another protocol", b"HTTPS/1.1", InvalidVersion),
        ("NUL behind", b"HTTP/1.1\0", NulByte),
        ("CR inside", b"HTTP\r/1.1", BareCarriageReturn),
        (
            "two digits, the first a later minor version",
            b"HTTP/1.21",
            InvalidVersion,
        ),
        ("NUL behind a later minor version", b"HTTP/1.2\0", NulByte),
        ("HTTP/2.0", b"HTTP/2.0", UnsupportedVersion),
        ("HTTP/3.0", b"HTTP/3.0", UnsupportedVersion),
        ("HTTP/9.9", b"HTTP/9.9", UnsupportedVersion),
    ];
    assert_refused("GET / ", &cases, "\r\nHost: a\r\n\r\n");
    assert_refused(
        "",
        &[(
            "preface of HTTP/2",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            UnsupportedVersion,
        )],
        "",
    );
}

#[test]
fn methods_that_are_too_long() {
    let request = |length: usize| [&vec![b'A'; length], b" / HTTP/1.1\r\nHost: a\r\n\r\n".as_slice()].concat();
    accept(request(MAX_METHOD_BYTES));
    assert_eq!(refuse(request(MAX_METHOD_BYTES + 1)), MethodTooLong);
    assert_eq!(refuse(vec![b'A'; MAX_METHOD_BYTES + 1]), MethodTooLong);
    assert_eq!(refuse([b'A'; 70_000]), MethodTooLong);
    let control = [&[b'A'; MAX_METHOD_BYTES], b"\0".as_slice()].concat();
    assert_eq!(refuse(control), NulByte);
}

#[test]
fn targets() {
    let cases: [Case; 20] = [
        ("fragment", b"/a#b", FragmentInTarget),
        ("fragment alone", b"#", FragmentInTarget),
        ("space", b"/a b", InvalidVersion),
        ("tab", b"/a\tb", InvalidTarget),
        ("UTF-8", b"/\xc3\xa9", InvalidTarget),
        ("overlong UTF-8", b"/\xc0\xaf", InvalidTarget),
        ("NUL", b"/\0", NulByte),
        ("NUL at the start", b"\0/", NulByte),
        ("control character", b"/\x01", ControlCharacter),
        ("DEL", b"/\x7f", ControlCharacter),
        ("CR", b"/\r", BareCarriageReturn),
        ("LF", b"/\n", BareLineFeed),
        ("no leading slash", b"a", InvalidTarget),
        ("query alone", b"?a", InvalidTarget),
        ("asterisk, which is for OPTIONS", b"*", InvalidTarget),
        ("authority, which is for CONNECT", b"a:80", InvalidTarget),
        ("user information", b"http://u@a/", InvalidTarget),
        ("no authority", b"http:///a", InvalidTarget),
        ("port too large", b"http://a:65536/", InvalidTarget),
        ("another scheme", b"ftp://a/", InvalidTarget),
    ];
    assert_refused("GET ", &cases, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_refused(
        "options ",
        &[("options, which is not OPTIONS", b"*", InvalidTarget)],
        " HTTP/1.1\r\nHost: a\r\n\r\n",
    );
}
