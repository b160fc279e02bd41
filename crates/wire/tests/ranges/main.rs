//! Tests of range requests: the bytes that a Range selects, ignored fields, limits of cost, and the writing of parts.

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
