//! The tests of content codings: who accepts which, what is worth it, and that what an encoder makes can be read, at once
//! after each flush, however the content comes.

mod decoding;
#[path = "../http1/support.rs"]
#[allow(dead_code, reason = "only the random numbers and heads are used here")]
mod http1;
mod media_types;
mod negotiation;
#[path = "../websocket/puff.rs"]
#[allow(dead_code, reason = "how a stream ends is told by its trailer here")]
mod puff;
mod streams;
