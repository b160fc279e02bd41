//! Pub/sub: from whoever publishes to all who subscribed, in every process of the server.
//!
//! ```text
//!              Hub of this process                      Hub of a sibling
//! publish ──┬─> Queue ────────┐
//!           │                 ├─> Dispatcher ──> Subscribers
//!           │    Mailbox ─────┘
//!           └─> Bus ────────────────────> Mailbox ──> Dispatcher ──> Subscribers
//! ```
//!
//! * [`Hub`] (`hub.rs`) is what others use; `channels.rs` knows who subscribed to what.
//! * `queue.rs` holds what was published here, `dispatcher.rs` is the thread that delivers it to each [`Subscriber`], as a
//!   [`Publication`] that makes each of its wire forms once.
//! * `bus.rs`, `mailbox.rs`, `envelope.rs`: from process to process.
//!
//! What one thread publishes to a channel reaches each subscriber once and in order, whole or (if its process will not take
//! it) not at all; the latter is reported to the publisher. Nothing is kept for those who subscribe later.

mod bus;
mod channels;
mod dispatcher;
mod envelope;
mod hub;
mod mailbox;
mod publication;
mod queue;
mod subscriber;

pub use bus::Bus;
pub use fairlead_wire::pattern::Match;
pub use hub::{Hub, Posted, PubSubStats, Scope};
pub use publication::{Publication, ENCODINGS};
pub use subscriber::{Delivery, Subscriber};
