//! Every byte, plain and percent-encoded, at every place in a name.

use crate::check;
use crate::support::read;

/// The bytes that may be in a name, and their places: in the middle, at the beginning, at the end, alone. Written out,
/// so that a mistake in the table of the code is not repeated here.
const ANYWHERE: &str = "!$%&'()+,-0123456789;=@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{}#";
const NOT_AT_THE_END: &str = " ~";
const WITHIN: &str = ".";

fn is_allowed(byte: u8, at_beginning: bool, at_end: bool) -> bool {
    let among = |list: &str| list.bytes().any(|listed| listed == byte);
    among(ANYWHERE) || (among(NOT_AT_THE_END) && !at_end) || (among(WITHIN) && !at_end && !at_beginning)
}

/// The spellings of a byte in a path: percent-encoded in all mixtures of case, and plain unless it is special there.
fn spellings(byte: u8) -> Vec<Vec<u8>> {
    let (low, up) = (format!("{byte:02x}"), format!("{byte:02X}"));
    let mixed = [&low[..1], &up[1..]].concat();
    let other = [&up[..1], &low[1..]].concat();
    let mut spellings: Vec<Vec<u8>> = [low, up, mixed, other]
        .map(|digits| format!("%{digits}").into_bytes())
        .to_vec();
    if !b"%#/".contains(&byte) {
        spellings.push(vec![byte]);
    }
    spellings
}

#[test]
fn every_byte_is_read_or_refused_however_it_is_spelt() {
    for byte in 0..=255_u8 {
        for spelling in spellings(byte) {
            for (before, behind) in [
                ("/x", "y"),
                ("/", "y"),
                ("/x", ""),
                ("/", ""),
                ("/a/x", "/b/"),
                ("/a/", "b/c"),
            ] {
                let path = [before.as_bytes(), &spelling, behind.as_bytes()].concat();
                let at_beginning = before.ends_with('/');
                let at_end = behind.is_empty() || behind.starts_with('/');
                let expected = is_allowed(byte, at_beginning, at_end);
                assert_eq!(read(&path).is_ok(), expected, "{}", path.escape_ascii());
                check::path(&path);
            }
        }
    }
}

#[test]
fn what_ends_or_encodes_a_path_is_special_only_as_it_is() {
    assert_eq!(read("/x%23y").as_deref(), Ok("x#y"));
    assert_eq!(read("/x%25y").as_deref(), Ok("x%y"));
    assert!(read("/x#y").is_err());
    assert!(read("/x%y").is_err());
    assert!(read("/x/y").is_ok());
    assert!(read("/x%2fy").is_err());
}

#[test]
fn every_pair_of_bytes_behind_a_percent_sign_is_a_number_or_refused() {
    for high in 0..=255_u8 {
        for low in 0..=255_u8 {
            let path = [b"/x%", &[high, low][..], b"y"].concat();
            let digits = std::str::from_utf8(&path[3..5]).ok();
            let number = digits.filter(|text| text.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let octet = number.and_then(|text| u8::from_str_radix(text, 16).ok());
            let expected = octet.filter(|octet| is_allowed(*octet, false, false));
            let name = expected.map(|octet| format!("x{}y", char::from(octet)));
            assert_eq!(read(&path).ok(), name, "{}", path.escape_ascii());
        }
    }
}
