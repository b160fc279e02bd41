//! Heads of HTTP/2 as heads of HTTP/1 and back: the parser finds the same values in the text as a naive reading of the
//! parts.

#![no_main]

#[path = "../../crates/wire/tests/http2/check.rs"]
#[allow(dead_code, reason = "another target uses the rest")]
mod check;

#[path = "../../crates/wire/tests/http1/model.rs"]
#[allow(dead_code, reason = "another target uses the rest")]
mod http1;
#[path = "../../crates/wire/tests/http2/model.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::request(bytes);
    check::response(bytes);
    check::priority(bytes);
});
