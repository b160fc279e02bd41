//! Action Cable: messages of a channel go to a WebSocket inside of the frame that Action Cable's clients expect, with the
//! identifier of the client's subscription. No Ruby runs for them.
//!
//! * [`Stream`] (`stream.rs`) delivers one channel of the hub under one [`Identifier`] (`identifiers.rs`).
//! * `frames.rs` makes the frames: one for all clients with the same identifier.
//! * `streams.rs` has the streams of a client.
//! * `pings.rs`: the pings of Action Cable, which are messages.

mod frames;
mod identifiers;
mod pings;
mod stream;
mod streams;

pub(super) use identifiers::Identifiers;
pub(super) use pings::PINGS;
pub(super) use stream::Stream;
pub(super) use streams::Streams;
pub use streams::{StreamOptions, Streamed};
