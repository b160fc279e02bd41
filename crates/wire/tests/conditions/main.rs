//! The tests of preconditions: which entity tags are equal, what is a date, which field decides, and what becomes of
//! those that cannot be understood.

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
