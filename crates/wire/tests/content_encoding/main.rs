//! Tests of content codings: accepted codings, compressible types, and encoders. A peer can read the output of an
//! encoder, and after each flush at once, for any split of the content.

mod decoding;
#[path = "../http1/support.rs"]
#[allow(dead_code, reason = "only the random numbers and heads are used here")]
mod http1;
mod media_types;
mod negotiation;
#[path = "../websocket/puff.rs"]
#[allow(dead_code, reason = "here the trailer shows the end of a stream")]
mod puff;
mod streams;
