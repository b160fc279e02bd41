//! Frames of HTTP/2: the results of the meter against a naive reading, and in pieces against all at once.

#![no_main]

#[path = "../../crates/wire/tests/http2/check.rs"]
#[allow(dead_code, reason = "another target uses the rest")]
mod check;

#[path = "../../crates/wire/tests/http1/model.rs"]
#[allow(dead_code, reason = "other targets use it")]
mod http1;
#[path = "../../crates/wire/tests/http2/model.rs"]
#[allow(dead_code, reason = "another target uses it")]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check::frames(bytes));
