//! The tests of range requests: which bytes a Range asks for, when it is ignored, what it can cost, and how the parts
//! are written.

#![allow(clippy::single_range_in_vec_init, reason = "a list of parts may have one")]

mod advisories;
mod check;
#[path = "../conditions/check.rs"]
#[allow(dead_code, reason = "only If-Range is checked here")]
mod conditions;
mod examples;
#[path = "../http1/support.rs"]
#[allow(dead_code, reason = "parsing and random numbers are used here")]
mod http1;
mod malformed;
mod multipart;
mod random;
mod requests;
