//! Publish and subscribe: delivers messages to all subscribers, in every process of the server.
//!
//! ```text
//!              Hub of this process                      Hub of a sibling
//! publish ──┬─> Queue ────────┐
//!           │                 ├─> Dispatcher ──> Subscribers
//!           │    Mailbox ─────┘
//!           └─> Bus ────────────────────> Mailbox ──> Dispatcher ──> Subscribers
//! ```
//!
//! * [`Hub`] (`hub.rs`) is what others use; `channels.rs` has the subscriptions,
//!   `patterns.rs` those to patterns, `shares.rs` how many each owner has.
//! * `queue.rs` holds what was published here; `dispatcher.rs` is the thread that delivers it to each [`Subscriber`],
//!   as a [`Publication`] that makes each of its wire forms once.
//! * `bus.rs`, `mailbox.rs`, `envelope.rs`: from process to process.
//!
//! What one thread publishes to a channel reaches each subscriber at most once, in order and complete. If a process
//! does not take a message, that is reported to the publisher. Nothing is kept for later subscribers.

mod bus;
mod channels;
mod dispatcher;
mod envelope;
mod hub;
mod mailbox;
mod patterns;
mod publication;
mod queue;
mod shares;
mod subscriber;

pub use crate::limits::holders::Owner;
pub use bus::Bus;
pub use channels::{Full, Totals};
pub use fairlead_wire::pattern::Match;
pub use hub::{Hub, Posted, PubSubStats, Scope};
pub use publication::{Publication, WireForm, ENCODINGS};
pub use shares::Most;
pub use subscriber::{Delivery, Subscriber};

/// How long a publisher waits for a process that does not take messages.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
