//! The line of the PROXY protocol, against a naive reading of it.

#![no_main]

#[path = "../../crates/wire/tests/proxy/check.rs"]
mod check;
#[path = "../../crates/wire/tests/proxy/model.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::proxy_line(bytes);
});
