//! Work that moves between workers: requests with their connections (`requests.rs`), requests of connections that have to
//! stay (`relays.rs`), and connections without a request, in a drain (`connections.rs`).
//!
//! ```text
//!   requests ──▶ relays ──▶ outgoing          (to other workers)
//!       │
//!       ├──▶ incoming ◀── connections         (from other workers)
//!       └──▶ admission ◀────┘                 (decides if they may come)
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
