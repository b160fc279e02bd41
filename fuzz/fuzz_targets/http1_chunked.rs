//! Chunked bodies: the decoder against the naive model, and in pieces against all at once.

#![no_main]

#[path = "../../crates/wire/tests/http1/check.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod check;
#[path = "../../crates/wire/tests/http1/model.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod model;

use libfuzzer_sys::fuzz_target;

/// Small, so that the fuzzer reaches it.
const MAX_TRAILER_BYTES: usize = 60;

fuzz_target!(|bytes: &[u8]| {
    check::chunked(bytes, MAX_TRAILER_BYTES);
});
