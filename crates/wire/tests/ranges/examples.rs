//! Well-formed ranges (RFC 9110 §14.1.2), satisfiable or not.

use fairlead_wire::ranges::{ranges, Ranges};
use std::ops::Range;

fn parts(expected: impl IntoIterator<Item = Range<u64>>) -> Ranges {
    Ranges::Parts(expected.into_iter().collect())
}

/// All examples of RFC 9110 §14.1.2, for a file of 10,000 bytes.
#[test]
fn examples_of_the_rfc() {
    for (value, expected) in [
        ("bytes=0-499", parts([0..500])),
        ("bytes=500-999", parts([500..1_000])),
        ("bytes=-500", parts([9_500..10_000])),
        ("bytes=9500-", parts([9_500..10_000])),
        ("bytes=0-0,-1", parts([0..1, 9_999..10_000])),
        (
            "bytes= 0-999, 4500-5499, -1000",
            parts([0..1_000, 4_500..5_500, 9_000..10_000]),
        ),
        ("bytes=500-600,601-999", parts([500..601, 601..1_000])),
        ("bytes=500-700,601-999", parts([500..701, 601..1_000])),
    ] {
        assert_eq!(ranges(value.as_bytes(), 10_000), expected, "{value}");
    }
}

#[test]
fn what_reaches_beyond_the_end_ends_there() {
    for (value, expected) in [
        ("bytes=0-9", 0..10),
        ("bytes=0-10", 0..10),
        ("bytes=5-99", 5..10),
        ("bytes=9-9", 9..10),
        ("bytes=9-10", 9..10),
        ("bytes=9-", 9..10),
        ("bytes=0-", 0..10),
        ("bytes=-1", 9..10),
        ("bytes=-10", 0..10),
        ("bytes=-11", 0..10),
    ] {
        assert_eq!(ranges(value.as_bytes(), 10), parts([expected]), "{value}");
    }
}

#[test]
fn what_lies_behind_the_end_is_left_out_and_alone_it_is_unsatisfiable() {
    for value in [
        "bytes=10-10",
        "bytes=10-",
        "bytes=99-100",
        "bytes=-0",
        "bytes=-00",
        "bytes=10-,-0,11-12",
    ] {
        assert_eq!(ranges(value.as_bytes(), 10), Ranges::Unsatisfiable, "{value}");
        let list = format!("{value},2-3");
        assert_eq!(ranges(list.as_bytes(), 10), parts([2..4]), "{list}");
        let list = value.replace('=', "=2-3,");
        assert_eq!(ranges(list.as_bytes(), 10), parts([2..4]), "{list}");
    }
}

#[test]
fn parts_come_in_the_order_asked_and_may_overlap() {
    assert_eq!(ranges(b"bytes=8-9,0-1,4-5", 10), parts([8..10, 0..2, 4..6]));
    assert_eq!(ranges(b"bytes=0-4,2-6", 10), parts([0..5, 2..7]));
    assert_eq!(ranges(b"bytes=1-1,1-1", 10), parts([1..2, 1..2]));
    assert_eq!(ranges(b"bytes=5-,0-4", 10), parts([5..10, 0..5]));
}

#[test]
fn lists_may_have_white_space_and_empty_members() {
    for value in [
        "bytes=0-0,2-2",
        "bytes=0-0, 2-2",
        "bytes=0-0\t ,\t 2-2",
        "bytes=,0-0,, ,2-2,",
        "bytes= 0-0,2-2 ",
        "Bytes=0-0,2-2",
        "BYTES=0-0,2-2",
    ] {
        assert_eq!(ranges(value.as_bytes(), 3), parts([0..1, 2..3]), "{value}");
    }
}

#[test]
fn numbers_have_as_many_digits_as_they_like() {
    let zeros = "0".repeat(500);
    let nines = "9".repeat(500);
    for (value, expected) in [
        (format!("bytes={zeros}1-{zeros}2"), parts([1..3])),
        (format!("bytes=-{zeros}1"), parts([9..10])),
        (format!("bytes=1-{nines}"), parts([1..10])),
        (format!("bytes=-{nines}"), parts([0..10])),
        (format!("bytes={nines}-"), Ranges::Unsatisfiable),
        (format!("bytes={nines}-{nines}"), Ranges::Unsatisfiable),
        // The second number is greater, although neither fits into 64 bits.
        (format!("bytes=9{nines}-1{nines}0"), Ranges::Unsatisfiable),
        (format!("bytes=9{nines}-1{nines}"), Ranges::Whole),
        (
            "bytes=18446744073709551615-18446744073709551616".to_owned(),
            Ranges::Unsatisfiable,
        ),
        (
            "bytes=18446744073709551617-18446744073709551616".to_owned(),
            Ranges::Whole,
        ),
        // A number just above 2^64 does not wrap around to a small one.
        ("bytes=18446744073709551617-".to_owned(), Ranges::Unsatisfiable),
        ("bytes=1-18446744073709551618".to_owned(), parts([1..10])),
        ("bytes=-18446744073709551617".to_owned(), parts([0..10])),
    ] {
        assert_eq!(ranges(value.as_bytes(), 10), expected, "{value}");
    }
}

#[test]
fn the_largest_file_has_a_last_byte() {
    let most = u64::MAX;
    assert_eq!(ranges(b"bytes=-1", most), parts([most - 1..most]));
    assert_eq!(ranges(b"bytes=18446744073709551614-", most), parts([most - 1..most]));
    assert_eq!(ranges(b"bytes=0-18446744073709551615", most), parts([0..most]));
    assert_eq!(ranges(b"bytes=18446744073709551615-", most), Ranges::Unsatisfiable);
    assert_eq!(ranges(b"bytes=0-,0-", most), Ranges::Whole);
}

#[test]
fn an_empty_file_is_always_sent_whole() {
    for value in [
        "bytes=0-",
        "bytes=0-0",
        "bytes=-1",
        "bytes=-0",
        "bytes=5-9",
        "bytes=1-0",
        "garbage",
    ] {
        assert_eq!(ranges(value.as_bytes(), 0), Ranges::Whole, "{value}");
    }
    assert_eq!(ranges(b"bytes=0-", 1), parts([0..1]));
}
