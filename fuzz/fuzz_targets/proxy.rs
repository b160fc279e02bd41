//! Input from proxies: the PROXY header, against a naive reading of it; and the fields about the route of a request, in
//! which a client must not override the values that a proxy adds.

#![no_main]

#[path = "../../crates/wire/tests/proxy/check.rs"]
mod check;
#[path = "../../crates/wire/tests/forwarded/check.rs"]
mod forwarded;
#[path = "../../crates/wire/tests/proxy/model.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::proxy_header(bytes);
    forwarded::nothing_forged_counts(bytes);
});
