//! Records of TLS connections that have moved, and the states with which they move.

#![no_main]

use fairlead_tls_record::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::states(bytes);
    check::forgeries(bytes);
    check::contents(bytes);
});
