//! Work that migrates between workers: `requests.rs` has requests that come from other workers and go to them,
//! `relays.rs` has requests of connections that have to stay, and `connections.rs` has connections without a request, in a
//! drain.
//!
//! ```text
//!   transfers ──▶ relays ──▶ departure        (to other workers)
//!       │
//!       ├──▶ arrivals ◀── handoff             (from other workers)
//!       └──▶ admission ◀────┘                 (may they come?)
//! ```

mod admission;
mod connections;
mod incoming;
mod outgoing;
mod relays;
mod requests;

pub(super) use admission::Admission;
pub(super) use connections::ConnectionMigration;
pub(super) use incoming::IncomingConnections;
pub(super) use relays::Relays;
pub(super) use requests::RequestMigration;
