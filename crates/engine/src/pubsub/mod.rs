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
//! * [`Hub`] (`hub.rs`) is the interface for other modules; `channels.rs` has the subscriptions, `patterns.rs` the
//!   subscriptions to patterns, `shares.rs` the number of them for each owner.
//! * `queue.rs` holds publications of this process; `dispatcher.rs` is the thread that delivers them to each
//!   [`Subscriber`], as a [`Publication`] that makes each of its wire forms once.
//! * `bus.rs`, `mailbox.rs`, `envelope.rs`: from process to process.
//!
//! * `history/` keeps recent messages in memory that the processes share; `keeping.rs` publishes through it.
//! * `beat.rs` repeats a publication.
//!
//! A subscriber may move to another process, and gets each publication once: see [`Between`].
//! `publication_id.rs` names publications, `cut.rs` and `numbers.rs` have sets of them, `passing.rs` keeps the set of the
//! publications that the dispatcher has handed out, `recent.rs` keeps these for a while, and `reached.rs` shows the progress to other
//! threads.
//!
//! Messages of one thread to one channel reach each subscriber at most once, in order and complete. If a process does
//! not take a message, the publisher gets a report. Only the history keeps
//! messages for later subscribers.

mod beat;
mod between;
mod bus;
mod channels;
mod cut;
mod dispatcher;
mod envelope;
pub(crate) mod history;
mod hub;
mod keeping;
mod mailbox;
mod numbers;
mod passing;
mod patterns;
mod publication;
mod publication_id;
mod queue;
mod reached;
mod recent;
mod shares;
mod subscriber;

pub use crate::limits::holders::Owner;
pub(crate) use beat::Beat;
pub use between::{Between, Job, Lost};
pub use bus::Bus;
pub use channels::{Full, Totals};
pub use cut::Cut;
pub use fairlead_wire::pattern::Match;
pub(crate) use history::from_hex;
pub use history::{History, Kept, PagePosition, Past, Position, Since};
pub use hub::{Hub, Posted, PubSubStats, Scope};
pub use publication::{Publication, WireForm, ENCODINGS};
pub use publication_id::PublicationId;
pub use reached::Targets;
pub use shares::Most;
pub use subscriber::{Delivery, Subscriber};

/// The time that a publisher waits for a process that does not take messages.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
