//! Published advisories about ranges, each tried here: the size of the file and the number of parts bound the cost of a
//! response to any request.

use crate::check;
use fairlead_wire::multipart;
use fairlead_wire::ranges::{ranges, Ranges, MAX_RANGES};

fn number_of_parts(value: &str, size: u64) -> usize {
    match ranges(value.as_bytes(), size) {
        Ranges::Parts(parts) => parts.len(),
        other => panic!("{value} of {size} is {other:?}"),
    }
}

/// Apache: overlapping ranges, each from a slightly later start to the end, took memory for all of them ("Apache
/// Killer").
#[test]
fn cve_2011_3192_a_staircase_of_overlapping_ranges() {
    let stairs: Vec<String> = (5..MAX_RANGES).map(|first| format!("5-{first}")).collect();
    let value = format!("bytes=0-,{}", stairs.join(","));
    assert_eq!(ranges(value.as_bytes(), 1_000), Ranges::Whole);
}

/// nginx: a suffix that overflowed a signed number read bytes before the start of the file.
#[test]
fn cve_2017_7529_a_suffix_longer_than_any_number() {
    for suffix in [
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
    ] {
        let value = format!("bytes=-{suffix}");
        assert_eq!(ranges(value.as_bytes(), 600), Ranges::Parts(vec![0..600]), "{value}");
        // Both together would be more than the file has.
        let value = format!("bytes=-599,-{suffix}");
        assert_eq!(ranges(value.as_bytes(), 600), Ranges::Whole, "{value}");
    }
}

/// Rack: split a value with a pattern that took quadratic time. Here every byte is read a fixed number of times; with
/// quadratic time these values, longer than any head, would take hours.
#[test]
fn cve_2022_44570_time_in_proportion_to_the_length() {
    for filler in [" ", "\t", ",", ", ", "0", "-", "0-0 ", "=", "\u{e9}"] {
        let filler = filler.repeat(1 << 18);
        for value in [
            format!("bytes={filler}"),
            format!("bytes={filler}0-0"),
            format!("bytes=0-0,{filler}1"),
            format!("{filler}=0-0"),
        ] {
            check::value(value.as_bytes(), 10);
        }
    }
}

/// Rack: the parts of one response together could be far longer than the file.
#[test]
fn cve_2024_26141_more_bytes_than_the_file_has() {
    assert_eq!(number_of_parts("bytes=0-4,5-9", 10), 2);
    assert_eq!(number_of_parts("bytes=0-4,0-4", 10), 2);
    for value in [
        "bytes=0-,0-0",
        "bytes=0-0,0-",
        "bytes=0-4,4-9",
        "bytes=-10,-1",
        "bytes=0-9,0-9,0-9",
        "bytes=0-3,0-3,0-2",
    ] {
        assert_eq!(ranges(value.as_bytes(), 10), Ranges::Whole, "{value}");
    }
    let all = vec!["0-"; MAX_RANGES].join(",");
    assert_eq!(ranges(format!("bytes={all}").as_bytes(), u64::MAX), Ranges::Whole);
}

/// Rack: as many parts as fit in a field, each with a head that is longer than the part.
#[test]
fn cve_2026_34826_more_parts_than_anybody_needs() {
    let list = |members: usize| format!("bytes={}", vec!["7-7"; members].join(", "));
    assert_eq!(number_of_parts(&list(MAX_RANGES), 10_000), MAX_RANGES);
    assert_eq!(ranges(list(MAX_RANGES + 1).as_bytes(), 10_000), Ranges::Whole);
    // Unsatisfiable ranges count as well, empty members do not.
    let value = format!("{},{}", list(MAX_RANGES), "99999-");
    assert_eq!(ranges(value.as_bytes(), 10_000), Ranges::Whole);
    let value = format!("{},,,,", list(MAX_RANGES));
    assert_eq!(number_of_parts(&value, 10_000), MAX_RANGES);
    let behind_the_end = vec!["99999-"; MAX_RANGES + 1].join(",");
    assert_eq!(
        ranges(format!("bytes={behind_the_end}").as_bytes(), 10_000),
        Ranges::Whole
    );
}

/// The most expensive request: the file, and a head for each of its first bytes.
#[test]
fn the_longest_answer_is_the_file_and_a_hundred_heads() {
    let (boundary, content_type, size) = ([b'x'; 70], Some(b"text/plain".as_slice()), 10_000_000_000);
    let single: Vec<String> = (1..MAX_RANGES).map(|at| format!("{at}-{at}")).collect();
    let value = format!("bytes={},100-9999999999", single.join(","));
    let Ranges::Parts(parts) = ranges(value.as_bytes(), size) else {
        panic!("{value}");
    };
    let overhead = multipart::length(&boundary, content_type, &parts, size) - (size - 1);
    assert!(overhead < MAX_RANGES as u64 * 200, "{overhead} bytes besides the file");
}
