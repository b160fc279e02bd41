//! Paths, as sent and as decoded: against the naive model and against imitations of other platforms.

#![no_main]

#[path = "../../crates/wire/tests/path/check.rs"]
mod check;
#[path = "../../crates/wire/tests/path/model.rs"]
mod model;
#[path = "../../crates/wire/tests/path/platforms.rs"]
mod platforms;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::path(bytes);
});
