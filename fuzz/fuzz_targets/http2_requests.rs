//! Sends fields of an HTTP/2 request through `h2`, the text of a head and its parser: the same fields come out, or
//! none.

#![no_main]

#[path = "../../crates/engine/tests/heads/check.rs"]
mod check;
#[path = "../../crates/engine/src/http2/head.rs"]
#[allow(dead_code, reason = "only the engine's request heads are used")]
mod head;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::request(bytes);
});
