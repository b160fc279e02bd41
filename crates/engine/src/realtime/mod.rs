//! Connections that stay: WebSockets, event streams, and responses that go on after the app has returned.
//!
//! * [`Client`] (`client.rs`) is one of them, shared by whoever writes to it (`sending.rs`); `ending.rs` is how it comes to its
//!   end.
//! * `reader.rs` turns what the peer sends into events, `inbox.rs` keeps those in order until a thread runs them, one at a
//!   time, and `intake.rs` bounds what waits in all inboxes; `outbox.rs` keeps what the peer has not taken yet; `encoding.rs`
//!   makes frames.
//! * `clients.rs` is the register of an engine; `upgrade.rs` makes a client of a connection, `turns.rs` runs its events.
//! * `process.rs` is a subscription that belongs to no client but to the process.

mod client;
mod clients;
mod encoding;
mod ending;
mod inbox;
mod intake;
mod outbox;
mod process;
mod reader;
mod sending;
mod turns;
mod upgrade;

pub use client::{Client, Events, Protocol};
pub(crate) use clients::{is_client, Clients};
pub use inbox::Event;
pub(crate) use intake::Intake;
pub use process::ProcessSubscription;
pub use sending::Offered;
pub(crate) use upgrade::{is_own_field, upgrade_offer, Given, Upgrade};
