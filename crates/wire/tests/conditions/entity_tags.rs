//! Entity tags and lists of them (RFC 9110 §8.8.3, §13.1.1, §13.1.2).

use crate::support::*;
use fairlead_wire::conditions::{Outcome::*, Validators};

const NONE: Validators<'_> = Validators {
    etag: None,
    modified: Some(MODIFIED),
};

fn if_match(value: &str, file: &Validators<'_>) -> bool {
    match outcome(&[&format!("If-Match: {value}")], file) {
        Proceed => true,
        Failed => false,
        NotModified => panic!("If-Match: {value}"),
    }
}

fn if_none_match(value: &str, file: &Validators<'_>) -> bool {
    match outcome(&[&format!("If-None-Match: {value}")], file) {
        Proceed => true,
        NotModified => false,
        Failed => panic!("If-None-Match: {value}"),
    }
}

/// RFC 9110 §8.8.3.2, the table of comparisons.
#[test]
fn comparison_is_strong_for_if_match_and_weak_for_if_none_match() {
    for (one, other, strong, weak) in [
        ("W/\"1\"", "W/\"1\"", false, true),
        ("W/\"1\"", "W/\"2\"", false, false),
        ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
    ] {
        for (current, sent) in [(one, other), (other, one)] {
            assert_eq!(if_match(sent, &tagged(current)), strong, "{current} and {sent}");
            assert_eq!(if_none_match(sent, &tagged(current)), !weak, "{current} and {sent}");
        }
    }
}

/// The examples of RFC 9110 §13.1.1 and §13.1.2, for a file that has `"xyzzy"`.
#[test]
fn examples_of_the_rfc() {
    for (list, strong, weak) in [
        ("\"xyzzy\"", true, true),
        ("\"xyzzy\", \"r2d2xxxx\", \"c3piozzzz\"", true, true),
        ("W/\"xyzzy\"", false, true),
        ("W/\"xyzzy\", W/\"r2d2xxxx\", W/\"c3piozzzz\"", false, true),
        ("*", true, true),
    ] {
        assert_eq!(if_match(list, &FILE), strong, "{list}");
        assert_eq!(if_none_match(list, &FILE), !weak, "{list}");
    }
}

#[test]
fn any_member_of_a_list_will_do() {
    for list in [
        "\"a\", \"xyzzy\"",
        "\"a\",\"xyzzy\",\"b\"",
        "\"a\"\t , \t\"xyzzy\"",
        ", ,\"xyzzy\",,",
        "\"\", \"xyzzy\"",
        "W/\"xyzzy\", \"xyzzy\"",
        "\"xyzzy\", W/\"xyzzy\"",
    ] {
        assert!(if_match(list, &FILE), "{list}");
        assert!(!if_none_match(list, &FILE), "{list}");
    }
    for list in ["\"a\", \"b\"", "\"xyzz\"", "\"xyzzyy\"", "\"XYZZY\"", "\"\"", "", ","] {
        assert!(!if_match(list, &FILE), "{list}");
        assert!(if_none_match(list, &FILE), "{list}");
    }
}

#[test]
fn quotation_marks_may_hold_commas_backslashes_and_high_bytes() {
    for tag in [
        "\"a,b\"",
        "\",\"",
        "\"\\\"",
        "\"a\\,\"",
        "\"W/\"",
        "\"*\"",
        "\"\"",
        "\"\u{e9}\"",
        "\"!#~\"",
    ] {
        assert!(if_match(tag, &tagged(tag)), "{tag}");
        for list in [format!("\"x\",{tag}"), format!("{tag},\"x\"")] {
            assert!(if_match(&list, &tagged(tag)), "{list}");
            assert!(!if_none_match(&list, &tagged(tag)), "{list}");
        }
    }
    // One tag with a comma is not two tags, and two tags are not one.
    assert!(!if_match("\"a,b\"", &tagged("\"a\"")));
    assert!(!if_match("\"a\",\"b\"", &tagged("\"a\",\"b\"")));
    // The backslash escapes nothing, so the second tag is separate.
    assert!(if_match("\"\\\", \"b\"", &tagged("\"b\"")));
}

#[test]
fn a_list_with_a_fault_names_nothing() {
    for fault in [
        "xyzzy",
        "'xyzzy'",
        "\"a",
        "a\"",
        "\"a\"b",
        "\"a\" \"b\"",
        "\"a\"\"b\"",
        "\"a b\"",
        "\"a\tb\"",
        "w/\"a\"",
        "W/ \"a\"",
        "W\"a\"",
        "/\"a\"",
        "W/",
        "W/a",
        "W/W/\"a\"",
        "*",
        "**",
        "\"a\";\"b\"",
        "\"\\\"\"",
    ] {
        for list in [format!("\"xyzzy\", {fault}"), format!("{fault}, \"xyzzy\"")] {
            assert!(!if_match(&list, &FILE), "{list}");
            assert!(if_none_match(&list, &FILE), "{list}");
        }
    }
}

#[test]
fn repeated_fields_are_one_list() {
    for lines in [
        &["If-None-Match: \"a\"", "If-None-Match: \"xyzzy\""][..],
        &["If-None-Match: \"xyzzy\"", "if-none-match: \"b\""],
        &[
            "If-None-Match:",
            "IF-NONE-MATCH: W/\"xyzzy\"",
            "If-None-Match: \"b\",\"c\"",
        ],
    ] {
        assert_eq!(outcome(lines, &FILE), NotModified, "{lines:?}");
    }
    for lines in [
        &["If-None-Match: \"a\"", "If-None-Match: \"b\""][..],
        &["If-None-Match: \"xyzzy\"", "If-None-Match: b"],
        &["If-None-Match: b", "If-None-Match: \"xyzzy\""],
        &["If-None-Match: \"xyzzy", "If-None-Match: \""],
        &["If-None-Match: *", "If-None-Match: \"xyzzy\""],
        &["If-None-Match: \"xyzzy\"", "If-None-Match: *"],
        &["If-None-Match: *", "If-None-Match: *"],
    ] {
        assert_eq!(outcome(lines, &FILE), Proceed, "{lines:?}");
    }
    assert_eq!(outcome(&["If-Match: \"a\"", "If-Match: \"xyzzy\""], &FILE), Proceed);
    assert_eq!(outcome(&["If-Match: \"xyzzy\"", "If-Match: *"], &FILE), Failed);
}

#[test]
fn the_star_stands_for_whatever_there_is_and_tags_for_nothing_without_one() {
    for file in [
        NONE,
        tagged("unquoted"),
        tagged("\"a\" "),
        tagged("\"a\", \"b\""),
        tagged(""),
    ] {
        assert!(if_match("*", &file));
        assert!(!if_none_match("*", &file));
        for list in ["\"a\"", "W/\"a\"", "unquoted", "\"a\", \"b\"", "\"\""] {
            assert!(!if_match(list, &file), "{list}");
            assert!(if_none_match(list, &file), "{list}");
        }
    }
}
