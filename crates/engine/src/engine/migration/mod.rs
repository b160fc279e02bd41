//! Work that moves between workers: requests with their connections (`requests.rs`), requests of connections that have to
//! stay (`relays.rs`), both watched for clients that leave (`abandoned.rs`), and in a drain connections without a request or
//! with a response that is being sent (`connections.rs`, `responses.rs`; `sent_files.rs` has the files of these responses), and
//! clients (`clients.rs`).
//!
//! ```text
//!   requests ──▶ relays ──▶ outgoing          (to other workers)
//!       │──▶ abandoned
//!       ├──▶ incoming ◀── connections ──▶ responses ──▶ sent_files
//!       │                   │     clients     (to and from other workers)
//!       └──▶ admission ◀────┴───────┘         (decides if they may come)
//! ```

mod abandoned;
mod admission;
mod clients;
mod connections;
mod incoming;
mod outgoing;
mod relays;
mod requests;
mod responses;
mod sent_files;

pub(super) use abandoned::AbandonedRequests;
pub(super) use admission::Admission;
pub(super) use clients::ClientMigration;
pub(super) use connections::ConnectionMigration;
pub(super) use incoming::IncomingConnections;
pub(super) use relays::Relays;
pub(super) use requests::RequestMigration;
