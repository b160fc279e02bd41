//! Sends fields of a request of HTTP/2 through `h2`, the text of a head and its parser: the same fields come out, or none.

#![no_main]

#[path = "../../crates/engine/tests/heads/check.rs"]
mod check;
#[path = "../../crates/engine/src/http2/head.rs"]
#[allow(dead_code, reason = "of what the engine has, only heads of requests are looked at")]
mod head;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::request(bytes);
});
