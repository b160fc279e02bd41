//! The preconditions of a request (RFC 9110 §13): whether what the client has, or thinks that there is, is current.
//!
//! Only GET and HEAD are decided here; what a condition means for a request that changes something, the application
//! knows. A field that cannot be understood never saves a transfer: the client gets the whole response, or 412 where it
//! insisted (If-Match). How ranges are read is the affair of [`crate::ranges`].

mod date;
mod entity_tag;

pub use date::{format_http_date, parse_http_date};

use crate::parameters::values;
use crate::Head;
use entity_tag::{names, strongly_equal, weakly_equal, EntityTag};

/// What tells one state of a representation from another (RFC 9110 §8.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The value of its ETag field, strong or weak. What is no entity tag equals none.
    pub etag: Option<&'a [u8]>,
    /// When it was last modified, in the whole seconds since 1970 that its Last-Modified field tells.
    pub modified: Option<u64>,
}

/// What the conditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Response as if there were no conditions.
    Proceed,
    /// The client has it already: 304.
    NotModified,
    /// It is not what the client insists on: 412.
    Failed,
}

/// Evaluates the conditions of a request in the order of RFC 9110 §13.2.2, for a representation that exists and would be
/// answered with 200. For methods other than GET and HEAD always [`Verdict::Proceed`].
///
/// A field with entity tags takes the place of the one with a date, whatever is in it (§13.1.3, §13.1.4). If-Range
/// comes after all others: [`permits_range`].
pub fn evaluate(head: &Head, bytes: &[u8], validators: &Validators<'_>) -> Verdict {
    if !matches!(head.method.of(bytes), b"GET" | b"HEAD") {
        return Verdict::Proceed;
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
        return Verdict::Failed;
    }
    let known = matches(b"if-none-match", weakly_equal).or_else(|| unmodified_since(b"if-modified-since"));
    match known {
        Some(true) => Verdict::NotModified,
        _ => Verdict::Proceed,
    }
}

/// Whether the Range field of a request may be obeyed: true unless an If-Range field names another state than the
/// current one (RFC 9110 §13.1.5). An entity tag has to be equal and strong, a date the very second.
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

/// Whether one of the entity tags in the fields called `name` is `wanted`; `None` without such a field. `*` stands for
/// whatever exists. Repeated fields are one list (RFC 9110 §5.3), and one with a fault names nothing.
fn any_of(head: &Head, bytes: &[u8], name: &'static [u8], wanted: impl Fn(EntityTag<'_>) -> bool) -> Option<bool> {
    values(head, bytes, name).next()?;
    if only(head, bytes, name) == Some(b"*") {
        return Some(true);
    }
    let mut lists = values(head, bytes, name);
    let found = lists.try_fold(false, |found, list| Some(names(list, &wanted)? || found));
    found.or(Some(false))
}

/// The value of a field that counts only if it comes once.
pub(crate) fn only<'a>(head: &'a Head, bytes: &'a [u8], name: &'static [u8]) -> Option<&'a [u8]> {
    let mut found = values(head, bytes, name);
    found.next().filter(|_| found.next().is_none())
}
