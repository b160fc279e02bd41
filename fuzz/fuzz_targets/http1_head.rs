//! Request heads: the parser against the naive model, and byte by byte against all at once.

#![no_main]

#[path = "../../crates/wire/tests/http1/check.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod check;
#[path = "../../crates/wire/tests/http1/model.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod model;

use fairlead_wire::HeadLimits;
use libfuzzer_sys::fuzz_target;

/// Small, so that the fuzzer reaches them.
const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 400,
    fields: 8,
    target_bytes: 60,
};

fuzz_target!(|bytes: &[u8]| {
    check::head(bytes, &LIMITS);
});
