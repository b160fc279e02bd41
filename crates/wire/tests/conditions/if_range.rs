//! If-Range (RFC 9110 §13.1.5).

use crate::support::*;
use fairlead_wire::conditions::Validators;

fn if_range(value: &str, file: &Validators<'_>) -> bool {
    permits(&[&format!("If-Range: {value}"), "Range: bytes=0-0"], file)
}

#[test]
fn without_the_field_ranges_are_permitted() {
    assert!(permits(&["Range: bytes=0-0"], &FILE));
    assert!(permits(&[], &Validators::default()));
    assert!(permits(&["If-None-Match: \"other\"", "If-Match: \"other\""], &FILE));
}

#[test]
fn an_entity_tag_has_to_be_equal_and_strong_on_both_sides() {
    assert!(if_range("\"xyzzy\"", &FILE));
    assert!(!if_range("\"other\"", &FILE));
    assert!(!if_range("W/\"xyzzy\"", &FILE));
    assert!(!if_range("W/\"xyzzy\"", &tagged("W/\"xyzzy\"")));
    assert!(!if_range("\"xyzzy\"", &tagged("W/\"xyzzy\"")));
    assert!(!if_range("\"xyzzy\"", &Validators::default()));
    assert!(if_range("\"a,b\"", &tagged("\"a,b\"")));
}

#[test]
fn a_date_has_to_be_the_very_second_in_any_form() {
    for same in [SAME, "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert!(if_range(same, &FILE), "{same}");
    }
    assert!(!if_range(BEFORE, &FILE));
    assert!(!if_range(AFTER, &FILE));
    let undated = Validators { modified: None, ..FILE };
    assert!(!if_range(SAME, &undated));
}

#[test]
fn what_is_neither_permits_no_range() {
    let undated = Validators { modified: None, ..FILE };
    for value in [
        "",
        "*",
        "xyzzy",
        "\"xyzzy",
        "\"xyzzy\", \"xyzzy\"",
        "\"xyzzy\",",
        "yesterday",
        "bytes=0-0",
    ] {
        for file in [FILE, undated, tagged(value)] {
            assert!(!if_range(value, &file), "{value}");
        }
    }
    assert!(!permits(&["If-Range: \"xyzzy\"", "If-Range: \"xyzzy\""], &FILE));
    assert!(!permits(&["If-Range: \"xyzzy\"", &format!("If-Range: {SAME}")], &FILE));
}
