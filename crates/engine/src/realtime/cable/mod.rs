//! Action Cable: messages of a channel go to a WebSocket inside of the frame that Action Cable's clients expect, with the
//! identifier of the client's subscription. No Ruby runs for them.
//!
//! * [`Stream`] (`stream.rs`) delivers one channel of the hub under one identifier (`identifiers.rs`).
//! * `frames.rs` makes the frames: one for all clients with the same identifier.
//! * `streams.rs` has the streams of a client.
//! * `missing.rs` sends messages from before the start of a stream.
//! * `signed_streams.rs` confirms subscriptions without the application.
//! * `receipts.rs` asks how far a client has received the messages for its pages.
//! * `pings.rs`: the pings of Action Cable, which are messages.

mod frames;
mod identifiers;
mod missing;
mod pings;
mod receipts;
mod signed_streams;
mod stream;
mod streams;

pub(super) use identifiers::Identifiers;
pub(super) use pings::PINGS;
pub(super) use receipts::{Receipts, SavedQuestion, SavedReceipts};
pub use signed_streams::SignedStreams;
pub(super) use stream::Stream;
pub(super) use streams::Streams;
pub use streams::{StreamOptions, StreamStart, Streamed};
