//! Heads of HTTP/2 as heads of HTTP/1 and back: no part becomes a line of its own.

#![no_main]

#[path = "../../crates/wire/tests/http2/check.rs"]
#[allow(dead_code, reason = "another target uses the rest")]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::request(bytes);
    check::response(bytes);
    check::priority(bytes);
});
