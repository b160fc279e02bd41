//! WebSocket connections: the decoder against the naive model, and in pieces against all at once. The first three bytes
//! choose the role, the compression and the cuts of the rest.

#![no_main]

#[path = "../../crates/wire/tests/websocket/check.rs"]
mod check;
#[path = "../../crates/wire/tests/websocket/model.rs"]
mod model;
#[path = "../../crates/wire/tests/websocket/puff.rs"]
mod puff;
#[path = "../../crates/wire/tests/websocket/support.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use fairlead_wire::websocket::{Limits, Role};
use libfuzzer_sys::fuzz_target;
use support::{Setup, ALONE, KEPT};

/// Small, so that the fuzzer reaches them.
const LIMITS: Limits = Limits {
    message_bytes: 300,
    fragments: 5,
};

fuzz_target!(|bytes: &[u8]| {
    let [choice, first, second, connection @ ..] = bytes else {
        return;
    };
    let setup = Setup {
        role: [Role::Server, Role::Client][usize::from(choice % 2)],
        deflate: [None, Some(ALONE), Some(KEPT)][usize::from(choice / 2 % 3)],
        limits: LIMITS,
    };
    let sizes = [1 + usize::from(first % 16), 1 + usize::from(second % 64), 1];
    let _ = check::connection(connection, &setup, &sizes);
});
