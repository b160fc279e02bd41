//! Precedence of fields (RFC 9110 §13.2.2), and ignored fields.

use crate::support::*;
use fairlead_wire::conditions::{evaluate, Outcome, Outcome::*, Validators};

const UNDATED: Validators<'_> = Validators { modified: None, ..FILE };

fn dated(field: &str, date: &str, file: &Validators<'_>) -> Outcome {
    outcome(&[&format!("{field}: {date}")], file)
}

#[test]
fn without_conditions_the_answer_is_the_usual_one() {
    assert_eq!(outcome(&[], &FILE), Proceed);
    assert_eq!(outcome(&[], &Validators::default()), Proceed);
    assert_eq!(outcome(&["If-Range: \"other\"", "Range: bytes=0-0"], &FILE), Proceed);
}

#[test]
fn dates_include_the_second_they_name() {
    for (date, unmodified) in [(BEFORE, false), (SAME, true), (AFTER, true)] {
        let (since, until) = if unmodified {
            (NotModified, Proceed)
        } else {
            (Proceed, Failed)
        };
        assert_eq!(dated("If-Modified-Since", date, &FILE), since, "{date}");
        assert_eq!(dated("If-Unmodified-Since", date, &FILE), until, "{date}");
    }
}

#[test]
fn dates_are_ignored_when_they_are_none_or_the_file_has_none() {
    for field in ["If-Modified-Since", "If-Unmodified-Since"] {
        for date in [BEFORE, SAME, AFTER] {
            assert_eq!(dated(field, date, &UNDATED), Proceed);
            let line = format!("{field}: {date}");
            assert_eq!(outcome(&[&line, &line], &FILE), Proceed, "{line} twice");
            assert_eq!(dated(field, &format!("{date}, {date}"), &FILE), Proceed);
            assert_eq!(dated(field, &format!("{date}; length=5"), &FILE), Proceed);
        }
        for date in ["", "0", "784111777", "\"xyzzy\"", "*", "yesterday"] {
            assert_eq!(dated(field, date, &FILE), Proceed, "{field}: {date}");
        }
    }
}

#[test]
fn if_match_takes_the_place_of_if_unmodified_since() {
    for (tag, date, expected) in [
        ("\"xyzzy\"", BEFORE, Proceed),
        ("\"xyzzy\"", AFTER, Proceed),
        ("\"other\"", AFTER, Failed),
        ("*", BEFORE, Proceed),
        ("", AFTER, Failed),
        ("garbage", AFTER, Failed),
    ] {
        let lines = [format!("If-Match: {tag}"), format!("If-Unmodified-Since: {date}")];
        assert_eq!(outcome(&[&lines[0], &lines[1]], &FILE), expected, "{lines:?}");
        assert_eq!(outcome(&[&lines[1], &lines[0]], &FILE), expected, "{lines:?}");
    }
}

#[test]
fn if_none_match_takes_the_place_of_if_modified_since() {
    for (tag, date, expected) in [
        ("\"xyzzy\"", BEFORE, NotModified),
        ("\"xyzzy\"", AFTER, NotModified),
        ("\"other\"", AFTER, Proceed),
        ("*", BEFORE, NotModified),
        ("", AFTER, Proceed),
        ("garbage", AFTER, Proceed),
    ] {
        let lines = [format!("If-None-Match: {tag}"), format!("If-Modified-Since: {date}")];
        assert_eq!(outcome(&[&lines[0], &lines[1]], &FILE), expected, "{lines:?}");
        assert_eq!(outcome(&[&lines[1], &lines[0]], &FILE), expected, "{lines:?}");
    }
}

#[test]
fn a_failed_condition_comes_before_one_that_is_not_modified() {
    let known = [
        "If-None-Match: \"xyzzy\"".to_owned(),
        "If-None-Match: *".to_owned(),
        format!("If-Modified-Since: {SAME}"),
    ];
    for known in &known {
        for (insists, expected) in [
            ("If-Match: \"other\"".to_owned(), Failed),
            (format!("If-Unmodified-Since: {BEFORE}"), Failed),
            ("If-Match: \"xyzzy\"".to_owned(), NotModified),
            (format!("If-Unmodified-Since: {SAME}"), NotModified),
        ] {
            assert_eq!(outcome(&[known, &insists], &FILE), expected, "{known}, {insists}");
        }
    }
}

#[test]
fn conditions_on_other_methods_are_not_decided_here() {
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", "PROPFIND"] {
        for line in ["If-Match: \"other\"", "If-None-Match: *", "If-None-Match: \"xyzzy\""] {
            let (head, bytes) = request(method, &[line]);
            assert_eq!(evaluate(&head, &bytes, &FILE), Proceed, "{method} with {line}");
        }
    }
}

#[test]
fn similar_names_are_other_fields() {
    for line in [
        "If-None-Matches: *",
        "If_None_Match: *",
        "X-If-None-Match: *",
        "If-Match-: \"other\"",
        "Match: \"other\"",
        "If-ModifiedSince: Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(outcome(&[line], &FILE), Proceed, "{line}");
    }
}
