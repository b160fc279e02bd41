//! The preconditions of a request (RFC 9110 §13), which compare the client's version of a representation with the
//! current one.
//!
//! This module evaluates only GET and HEAD; for a request that changes something, the application decides. An invalid
//! field never saves a transfer: the client gets the complete response, or 412 for If-Match. [`crate::ranges`] parses
//! ranges.

mod date;
mod entity_tag;

pub use date::{format_http_date, parse_http_date};

use crate::parameters::values;
use crate::Head;
use entity_tag::{names, strongly_equal, weakly_equal, EntityTag};

/// The validators that distinguish versions of a representation (RFC 9110 §8.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The value of its ETag field, strong or weak. An invalid entity tag equals no other.
    pub etag: Option<&'a [u8]>,
    /// The time of the last modification, in whole seconds since 1970, as in the Last-Modified field.
    pub modified: Option<u64>,
}

/// The result of evaluating the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Respond as if there were no conditions.
    Proceed,
    /// The client has the current version: 304.
    NotModified,
    /// The current version is not the version that the client requires: 412.
    Failed,
}

/// Evaluates the conditions of a request in the order of RFC 9110 §13.2.2, for a representation that exists and would
/// get a 200 response. Always [`Outcome::Proceed`] for methods other than GET and HEAD.
///
/// A field with entity tags replaces the field with a date, even if it is invalid (§13.1.3, §13.1.4). If-Range comes
/// after all others: [`permits_range`].
pub fn evaluate(head: &Head, bytes: &[u8], validators: &Validators<'_>) -> Outcome {
    if !matches!(head.method.of(bytes), b"GET" | b"HEAD") {
        return Outcome::Proceed;
    }
    let current = validators.etag.and_then(EntityTag::parse);
    let matches = |name, same: fn(EntityTag<'_>, EntityTag<'_>) -> bool| {
        any_of(head, bytes, name, |tag| {
            current.is_some_and(|current| same(current, tag))
        })
    };
    let unmodified_since = |name| {
        let date = parse_http_date(only(head, bytes, name)?)?;
        Some(validators.modified? <= date)
    };
    let intact = matches(b"if-match", strongly_equal).or_else(|| unmodified_since(b"if-unmodified-since"));
    if intact == Some(false) {
        return Outcome::Failed;
    }
    let known = matches(b"if-none-match", weakly_equal).or_else(|| unmodified_since(b"if-modified-since"));
    match known {
        Some(true) => Outcome::NotModified,
        _ => Outcome::Proceed,
    }
}

/// Returns true if the Range field of a request may be used. An If-Range field with a version other than the current
/// one forbids it (RFC 9110 §13.1.5). An entity tag must be equal and strong, a date must be exactly equal.
pub fn permits_range(head: &Head, bytes: &[u8], validators: &Validators<'_>) -> bool {
    if values(head, bytes, b"if-range").next().is_none() {
        return true;
    }
    let Some(validator) = only(head, bytes, b"if-range") else {
        return false;
    };
    if let Some(tag) = EntityTag::parse(validator) {
        let current = validators.etag.and_then(EntityTag::parse);
        return current.is_some_and(|current| strongly_equal(current, tag));
    }
    let date = parse_http_date(validator);
    date.is_some() && date == validators.modified
}

/// Returns true if one of the entity tags in the fields called `name` is `wanted`; `None` without such a field. `*`
/// matches everything that exists. Repeated fields are one list (RFC 9110 §5.3); an invalid list matches nothing.
fn any_of(head: &Head, bytes: &[u8], name: &'static [u8], wanted: impl Fn(EntityTag<'_>) -> bool) -> Option<bool> {
    values(head, bytes, name).next()?;
    if only(head, bytes, name) == Some(b"*") {
        return Some(true);
    }
    let mut lists = values(head, bytes, name);
    let found = lists.try_fold(false, |found, list| Some(names(list, &wanted)? || found));
    found.or(Some(false))
}

/// The value of a field that only counts if it occurs once.
pub(crate) fn only<'a>(head: &'a Head, bytes: &'a [u8], name: &'static [u8]) -> Option<&'a [u8]> {
    let mut found = values(head, bytes, name);
    found.next().filter(|_| found.next().is_none())
}
