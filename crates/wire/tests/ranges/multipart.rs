//! Writing of parts (RFC 9110 §14.4, §14.6, §15.3.7.2).

use fairlead_wire::multipart::{closing, content_range, length, part_head, unsatisfied};
use std::ops::Range;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = b"before".to_vec();
    write(&mut out);
    assert!(out.starts_with(b"before"), "earlier bytes are kept");
    String::from_utf8(out.split_off(6)).expect("UTF-8 went in")
}

fn body(content_type: Option<&[u8]>, ranges: &[Range<u64>], file: &str) -> String {
    written(|out| {
        for range in ranges {
            part_head(b"SEPARATES", content_type, range, file.len() as u64, out);
            out.extend_from_slice(&file.as_bytes()[range.start as usize..range.end as usize]);
        }
        closing(b"SEPARATES", out);
    })
}

#[test]
fn the_body_of_two_parts() {
    let body = body(Some(b"text/plain; charset=utf-8"), &[0..5, 9..12], "Hello world!");
    let expected = "\r\n--SEPARATES\r\n\
                    content-type: text/plain; charset=utf-8\r\n\
                    content-range: bytes 0-4/12\r\n\
                    \r\n\
                    Hello\r\n--SEPARATES\r\n\
                    content-type: text/plain; charset=utf-8\r\n\
                    content-range: bytes 9-11/12\r\n\
                    \r\n\
                    ld!\r\n--SEPARATES--\r\n";
    assert_eq!(body, expected);
}

#[test]
fn without_a_content_type_parts_have_none() {
    let body = body(None, &[11..12], "Hello world!");
    assert_eq!(
        body,
        "\r\n--SEPARATES\r\ncontent-range: bytes 11-11/12\r\n\r\n!\r\n--SEPARATES--\r\n"
    );
}

#[test]
fn the_length_is_that_of_the_body() {
    let file = "0123456789".repeat(120);
    for content_type in [None, Some(b"text/plain".as_slice()), Some(b"")] {
        for ranges in [
            &[][..],
            &[0..1],
            &[0..9, 9..10, 99..101],
            &[999..1_000, 1_000..1_200],
            &[0..1_200, 0..1_200, 7..8],
        ] {
            let body = body(content_type, ranges, &file);
            let told = length(b"SEPARATES", content_type, ranges, file.len() as u64);
            assert_eq!(told, body.len() as u64, "{ranges:?}");
        }
    }
    assert_eq!(length(b"", None, &[0..u64::MAX], u64::MAX), u64::MAX);
}

/// The examples of RFC 9110 §14.4.
#[test]
fn content_range_counts_from_zero_and_includes_the_last_byte() {
    assert_eq!(
        written(|out| content_range(&(42..1_234), 1_234, out)),
        "bytes 42-1233/1234"
    );
    assert_eq!(written(|out| content_range(&(0..500), 1_234, out)), "bytes 0-499/1234");
    assert_eq!(
        written(|out| content_range(&(734..1_234), 1_234, out)),
        "bytes 734-1233/1234"
    );
    assert_eq!(written(|out| unsatisfied(1_234, out)), "bytes */1234");
    let most = u64::MAX;
    assert_eq!(
        written(|out| content_range(&(most - 1..most), most, out)),
        "bytes 18446744073709551614-18446744073709551614/18446744073709551615"
    );
}
