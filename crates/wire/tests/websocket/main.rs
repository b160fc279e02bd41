//! The WebSocket tests: which handshakes and offers are accepted, what frames mean, which misdeeds are answered with what,
//! and that none of it depends on how the bytes arrive.

mod check;
mod closing;
mod compression;
mod fragments;
mod handshakes;
mod headers;
#[path = "../http1/support.rs"]
#[allow(dead_code, reason = "only the random numbers are used here")]
mod http1;
mod limits;
mod model;
mod negotiation;
mod puff;
mod random;
mod splits;
mod support;
mod text;
mod writing;
