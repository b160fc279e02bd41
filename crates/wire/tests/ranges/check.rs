//! Properties of every Range; the random tests and a fuzz target use them.

#[path = "model.rs"]
mod model;

use super::conditions;
use fairlead_wire::conditions::Validators;
use fairlead_wire::multipart::{closing, length, part_head};
use fairlead_wire::ranges::{ranges, Ranges};
use fairlead_wire::Head;
use std::ops::Range;

const BOUNDARY: &str = "B";

/// The longest file for which the parts are written out.
const WRITTEN: u64 = 1_000;

/// Checks the result for the value of a Range field against the model, and the body of the response. Returns the
/// status.
pub(crate) fn value(value: &[u8], size: u64) -> u16 {
    let asked = ranges(value, size);
    let inclusive = |part: &Range<u64>| (part.start, part.end - 1);
    let found = match &asked {
        Ranges::Whole => None,
        Ranges::Unsatisfiable => Some(Vec::new()),
        Ranges::Parts(parts) => {
            assert_sound(parts, size);
            assert_written(parts, size);
            Some(parts.iter().map(inclusive).collect())
        }
    };
    assert_eq!(found, model::ranges(value, size), "{} of {size}", value.escape_ascii());
    status(&asked)
}

/// Checks the result for a request. Returns the status.
pub(crate) fn request(head: &Head, bytes: &[u8], file: &Validators<'_>, size: u64) -> u16 {
    let named = |field: &&fairlead_wire::Field| field.name.of(bytes).eq_ignore_ascii_case(b"range");
    let fields: Vec<_> = head.fields.iter().filter(named).collect();
    let permitted = conditions::if_range(head, bytes, file) && head.method.of(bytes) == b"GET";
    let expected = match fields[..] {
        [field] if permitted => ranges(field.value.of(bytes), size),
        _ => Ranges::Whole,
    };
    for field in fields {
        value(field.value.of(bytes), size);
    }
    let asked = Ranges::of(head, bytes, file, size);
    assert_eq!(asked, expected, "{}", bytes.escape_ascii());
    status(&asked)
}

fn status(asked: &Ranges) -> u16 {
    match asked {
        Ranges::Whole => 200,
        Ranges::Unsatisfiable => 416,
        Ranges::Parts(_) => 206,
    }
}

/// Parts are not empty, lie within the file, do not exceed the limit, and together are no longer than the file.
fn assert_sound(parts: &[Range<u64>], size: u64) {
    assert!((1..=100).contains(&parts.len()));
    let mut left = size;
    for part in parts {
        assert!(part.start < part.end && part.end <= size, "{part:?} of {size}");
        let rest = left.checked_sub(part.end - part.start);
        left = rest.unwrap_or_else(|| panic!("{parts:?} are more than {size}"));
    }
}

/// A body has the announced length, and its parts are the requested bytes.
fn assert_written(parts: &[Range<u64>], size: u64) {
    for content_type in [None, Some("text/plain")] {
        let text = content_type.map(str::as_bytes);
        let mut told = u128::from(length(BOUNDARY.as_bytes(), text, parts, size));
        if told == u128::from(u64::MAX) {
            return;
        }
        let mut body = Vec::new();
        for part in parts {
            part_head(BOUNDARY.as_bytes(), text, part, size, &mut body);
            match size {
                0..=WRITTEN => body.extend(part.clone().map(byte)),
                _ => told -= u128::from(part.end - part.start),
            }
        }
        closing(BOUNDARY.as_bytes(), &mut body);
        assert_eq!(body.len() as u128, told, "{parts:?} of {size}");
        if size <= WRITTEN {
            let expected = parts.iter().map(|part| expected(part, content_type, size)).collect();
            assert_eq!(model::parts(&body, BOUNDARY), Some(expected), "{parts:?} of {size}");
        }
    }
}

/// The byte at a position of the file, which has no line ends.
fn byte(at: u64) -> u8 {
    b' ' + (at % 90) as u8
}

fn expected(part: &Range<u64>, content_type: Option<&str>, size: u64) -> model::Part {
    let typed = content_type.map(|text| format!("content-type: {text}\r\n"));
    let (first, last) = (part.start, part.end - 1);
    let fields = format!(
        "{}content-range: bytes {first}-{last}/{size}",
        typed.unwrap_or_default()
    );
    (fields, part.clone().map(byte).collect())
}
