//! Range requests (RFC 9110 §14): the bytes of a file that a request asks for.
//!
//! A server may always ignore Range, so a malformed or excessive request gets the whole file, which costs no more than
//! any other request. [`crate::multipart`] writes the parts.

use crate::conditions::{only, permits_range, Validators};
use crate::fields::members;
use crate::Head;
use std::ops::Range;

/// Most ranges in one request: enough for PDF viewers, and too few to be a burden.
pub const MAX_RANGES: usize = 100;

/// The parts of a file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The whole file, as without Range: 200.
    Whole,
    /// Nothing, because all requested ranges start after its end: 416.
    Unsatisfiable,
    /// These parts, in the requested order: 206. There is at least one, and none is empty or extends beyond the end.
    /// They may overlap, but together have no more bytes than the file.
    Parts(Vec<Range<u64>>),
}

impl Ranges {
    /// The ranges of a file of `size` bytes that a request asks for, if it would otherwise get a 200 response.
    ///
    /// Range only applies to GET, only if it occurs once (RFC 9110 §14.2), and only if If-Range agrees.
    pub fn of(head: &Head, bytes: &[u8], validators: &Validators<'_>, size: u64) -> Ranges {
        match only(head, bytes, b"range") {
            Some(value) if head.method.of(bytes) == b"GET" && permits_range(head, bytes, validators) => {
                ranges(value, size)
            }
            _ => Ranges::Whole,
        }
    }
}

/// The ranges of a file of `size` bytes that the value of a Range field asks for (RFC 9110 §14.1.2).
///
/// [`Ranges::Whole`] also for a unit other than bytes, for more than [`MAX_RANGES`] ranges or more bytes than the file
/// has, and for an empty file, because no range of it could be written in a Content-Range.
pub fn ranges(value: &[u8], size: u64) -> Ranges {
    parts(value, size).map_or(Ranges::Whole, |parts| match parts.is_empty() {
        true => Ranges::Unsatisfiable,
        false => Ranges::Parts(parts),
    })
}

/// The satisfiable parts; `None` to send the whole file.
fn parts(value: &[u8], size: u64) -> Option<Vec<Range<u64>>> {
    let (unit, set) = value.split_at(memchr::memchr(b'=', value)?);
    if !unit.eq_ignore_ascii_case(b"bytes") || size == 0 {
        return None;
    }
    let mut parts = Vec::new();
    let mut asked = 0;
    let mut left = size;
    for spec in members(&set[1..]) {
        asked += 1;
        if asked > MAX_RANGES {
            return None;
        }
        let part = part(spec, size)?;
        left = left.checked_sub(part.end - part.start)?;
        if !part.is_empty() {
            parts.push(part);
        }
    }
    (asked > 0).then_some(parts)
}

/// The bytes that a range-spec selects of `size`; empty if it cannot be satisfied, `None` if it is malformed.
fn part(spec: &[u8], size: u64) -> Option<Range<u64>> {
    let (first, last) = spec.split_at(memchr::memchr(b'-', spec)?);
    match (Position::parse(first)?, Position::parse(&last[1..])?) {
        (None, None) => None,
        (None, Some(suffix)) => Some(size - suffix.value().min(size)..size),
        (Some(first), None) => Some(first.value().min(size)..size),
        (Some(first), Some(last)) if first <= last => {
            Some(first.value().min(size)..last.value().saturating_add(1).min(size))
        }
        _ => None,
    }
}

/// A number of any length: its digits without leading zeros. Of two numbers, the one with more digits is greater.
#[derive(PartialEq, PartialOrd)]
struct Position<'a> {
    length: usize,
    digits: &'a [u8],
}

impl<'a> Position<'a> {
    /// `Some(None)` for an empty text, `None` for anything but digits.
    fn parse(text: &'a [u8]) -> Option<Option<Position<'a>>> {
        if !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let zeros = text.iter().take_while(|&&digit| digit == b'0').count();
        let digits = &text[zeros..];
        let length = digits.len();
        Some((!text.is_empty()).then_some(Position { length, digits }))
    }

    /// The number, or `u64::MAX` if it is greater: no file is that long.
    fn value(&self) -> u64 {
        let digits = self.digits.iter().map(|digit| u64::from(digit - b'0'));
        digits.fold(0, |value: u64, digit| value.saturating_mul(10).saturating_add(digit))
    }
}
