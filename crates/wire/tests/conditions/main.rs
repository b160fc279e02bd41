//! Tests of preconditions: equality of entity tags, dates, precedence of fields, and invalid fields.

mod check;
mod dates;
mod entity_tags;
#[path = "../http1/support.rs"]
#[allow(dead_code, reason = "parsing and random numbers are used here")]
mod http1;
mod if_range;
mod precedence;
mod random;
mod support;
