//! A catalogue of refused field sections, named by the defect, with the exact error.

use crate::support::refuse;
use fairlead_wire::{Error, Error::*};

type Case = (&'static str, &'static [u8], Error);

fn assert_refused(request_line: &str, cases: &[Case]) {
    for (defect, fields, error) in cases {
        let request = [request_line.as_bytes(), b"\r\n", fields].concat();
        assert_eq!(refuse(request), *error, "{defect}");
    }
}

#[test]
fn line_ends() {
    let cases: [Case; 15] = [
        ("bare LF after a field", b"Host: a\nB: c\r\n\r\n", BareLineFeed),
        ("bare LF after an empty value", b"Host: a\r\nB:\n\r\n", BareLineFeed),
        ("LF LF at the end", b"Host: a\n\n", BareLineFeed),
        ("CR LF LF at the end", b"Host: a\r\n\n", BareLineFeed),
        ("LF CR LF at the end", b"Host: a\n\r\n", BareLineFeed),
        ("LF and no field", b"\n", BareLineFeed),
        ("LF in a name", b"Host: a\r\nB\n: c\r\n\r\n", BareLineFeed),
        ("CR LF CR CR at the end", b"Host: a\r\n\r\r", BareCarriageReturn),
        ("CR in a value", b"Host: a\r\nB: c\rd\r\n\r\n", BareCarriageReturn),
        ("CR CR LF after a value", b"Host: a\r\r\n\r\n", BareCarriageReturn),
        ("CR in a name", b"Host: a\r\nB\r: c\r\n\r\n", BareCarriageReturn),
        ("folded value", b"Host: a\r\nB: c\r\n d\r\n\r\n", ObsoleteFold),
        (
            "value folded with a tab",
            b"Host: a\r\nB: c\r\n\td\r\n\r\n",
            ObsoleteFold,
        ),
        ("value in the next line", b"Host: a\r\nB:\r\n c\r\n\r\n", ObsoleteFold),
        ("blank line that is not empty", b"Host: a\r\n \r\n\r\n", ObsoleteFold),
    ];
    assert_refused("GET / HTTP/1.1", &cases);
}

#[test]
fn names_and_values() {
    let cases: [Case; 17] = [
        (
            "space before the first field",
            b" Host: a\r\n\r\n",
            SpaceBeforeFirstField,
        ),
        (
            "blank line before the fields",
            b" \r\nHost: a\r\n\r\n",
            SpaceBeforeFirstField,
        ),
        ("space before the colon", b"Host : a\r\n\r\n", SpaceBeforeColon),
        ("tab before the colon", b"Host\t: a\r\n\r\n", SpaceBeforeColon),
        ("space in a name", b"Ho st: a\r\n\r\n", InvalidFieldName),
        ("no name", b"Host: a\r\n: b\r\n\r\n", InvalidFieldName),
        ("no colon", b"Host: a\r\nb\r\n\r\n", InvalidFieldName),
        ("separator in a name", b"Host: a\r\nB[c: d\r\n\r\n", InvalidFieldName),
        (
            "name beyond ASCII",
            b"Host: a\r\nB\xc3\xab: c\r\n\r\n",
            InvalidFieldName,
        ),
        (
            "control character before a name",
            b"Host: a\r\n\x01B: c\r\n\r\n",
            ControlCharacter,
        ),
        (
            "control character behind a name",
            b"Host: a\r\nB\x01: c\r\n\r\n",
            ControlCharacter,
        ),
        ("NUL in a name", b"Host: a\r\nB\0: c\r\n\r\n", NulByte),
        ("NUL in a value", b"Host: a\r\nB: c\0\r\n\r\n", NulByte),
        ("bell in a value", b"Host: a\r\nB: \x07\r\n\r\n", ControlCharacter),
        (
            "vertical tab in a value",
            b"Host: a\r\nB: c\x0bd\r\n\r\n",
            ControlCharacter,
        ),
        ("escape in a value", b"Host: a\r\nB: \x1b[2J\r\n\r\n", ControlCharacter),
        ("DEL in a value", b"Host: a\r\nB: \x7f\r\n\r\n", ControlCharacter),
    ];
    assert_refused("GET / HTTP/1.1", &cases);
}

#[test]
fn hosts() {
    let cases: [Case; 13] = [
        ("none", b"\r\n", MissingHost),
        ("two", b"Host: a\r\nHost: b\r\n\r\n", DuplicateHost),
        ("two that agree", b"Host: a\r\nhost: a\r\n\r\n", DuplicateHost),
        ("empty", b"Host:\r\n\r\n", InvalidHost),
        ("list", b"Host: a, b\r\n\r\n", InvalidHost),
        ("list without space", b"Host: a,b\r\n\r\n", InvalidHost),
        ("path", b"Host: a/b\r\n\r\n", InvalidHost),
        ("user information", b"Host: u@a\r\n\r\n", InvalidHost),
        ("port with letters", b"Host: a:8o\r\n\r\n", InvalidHost),
        ("port too large", b"Host: a:65536\r\n\r\n", InvalidHost),
        ("port alone", b"Host: :80\r\n\r\n", InvalidHost),
        ("IPv6 without brackets", b"Host: ::1\r\n\r\n", InvalidHost),
        ("beyond ASCII", b"Host: \xc3\xa4\r\n\r\n", InvalidHost),
    ];
    assert_refused("GET / HTTP/1.1", &cases);
    assert_refused("GET / HTTP/1.0", &cases[1..]);
}

#[test]
fn hosts_beside_an_absolute_form() {
    let cases: [Case; 4] = [
        ("two", b"Host: a\r\nHost: a\r\n\r\n", DuplicateHost),
        ("list", b"Host: a,b\r\n\r\n", InvalidHost),
        ("empty", b"Host:\r\n\r\n", InvalidHost),
        ("none", b"\r\n", MissingHost),
    ];
    assert_refused("GET http://a/ HTTP/1.1", &cases);
    assert_refused("GET http://a/ HTTP/1.0", &cases[..3]);
}

#[test]
fn expectations() {
    let cases: [Case; 4] = [
        ("another", b"Host: a\r\nExpect: 200-ok\r\n\r\n", UnsupportedExpectation),
        (
            "one of two",
            b"Host: a\r\nExpect: 100-continue, b\r\n\r\n",
            UnsupportedExpectation,
        ),
        (
            "longer",
            b"Host: a\r\nExpect: 100-continued\r\n\r\n",
            UnsupportedExpectation,
        ),
        ("shorter", b"Host: a\r\nExpect: 100\r\n\r\n", UnsupportedExpectation),
    ];
    assert_refused("GET / HTTP/1.1", &cases);
}
