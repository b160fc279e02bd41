//! Tests of WebSocket: accepted handshakes and offers, the meaning of frames, the failure for each violation; the
//! results do not depend on the split of the bytes.

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
mod saved;
mod splits;
mod support;
mod text;
mod writing;
