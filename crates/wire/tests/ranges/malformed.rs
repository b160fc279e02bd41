//! Malformed Range fields, which are ignored (RFC 9110 §14.2).

use fairlead_wire::ranges::{ranges, Ranges};

#[test]
fn other_units_and_none() {
    for value in [
        "",
        "=",
        "0-1",
        "=0-1",
        "byte=0-1",
        "bytess=0-1",
        "lines=0-1",
        "none=0-1",
        "seconds=1-2",
        "bytes",
        "bytes 0-1",
        "bytes:0-1",
        "bytes =0-1",
        " bytes=0-1",
        "\"bytes\"=0-1",
        "bytes 0-1/10",
    ] {
        assert_eq!(ranges(value.as_bytes(), 10), Ranges::Whole, "{value}");
    }
}

#[test]
fn one_faulty_member_makes_the_field_void() {
    for fault in [
        "-",
        "--",
        "0",
        "0-1-2",
        "--1",
        "-1-",
        "-1-2",
        "1--2",
        "0 -1",
        "0- 1",
        "0 - 1",
        "- 1",
        "1 2-3",
        "+0-1",
        "0-+1",
        "0x0-1",
        "0-f",
        "0-1.5",
        "0-1;",
        "0-1;q=1",
        "\"0-1\"",
        "0-1\0",
        "a-b",
        "2-1",
        "10-9",
        "00002-1",
        "=0-1",
        "bytes=0-1",
        "\u{661}-\u{662}",
        "*",
        "0-*",
        "*-1",
    ] {
        for value in [
            format!("bytes={fault}"),
            format!("bytes=4-5,{fault}"),
            format!("bytes={fault}, 4-5"),
            format!("bytes=99-,{fault}"),
        ] {
            assert_eq!(ranges(value.as_bytes(), 10), Ranges::Whole, "{value}");
        }
    }
    assert_eq!(ranges(b"bytes=0-\xff", 10), Ranges::Whole);
}

#[test]
fn a_list_without_members_is_no_list() {
    for value in ["bytes=", "bytes= ", "bytes=,", "bytes=, ,\t,"] {
        assert_eq!(ranges(value.as_bytes(), 10), Ranges::Whole, "{value}");
    }
}
