//! The record layer of an established TLS connection: TLS 1.3 (RFC 8446 §5) and TLS 1.2 with AEAD suites (RFC 5288,
//! RFC 7905), on the server's side. [`Records`] continues a connection after another library has made the handshake,
//! and its state can be exported to another process at any time.
//!
//! It makes no handshake, and it has no socket and no clock. Violations get the alerts that rustls sends.
//!
//! * `suite.rs`: versions and ciphers.
//! * `secret.rs`: traffic secrets, and the keys that are derived from them.
//! * `keys.rs`: the keys and the sequence number of one direction.
//! * `header.rs`: finds the records in a stream of bytes.
//! * `seal.rs`, `open.rs`: one record of either direction.
//! * `messages.rs`: handshake messages after the handshake.
//! * `violation.rs`: violations by the peer, and their alerts.
//! * `records.rs`: a connection.
//! * `check.rs`: properties of any input, for tests.
//! * `format.rs`, `state.rs`: the exported state; `secret_bytes.rs`: its bytes.
#![forbid(unsafe_code)]

#[cfg(any(test, fuzzing))]
pub mod check;
mod format;
mod header;
mod keys;
mod messages;
mod open;
mod records;
mod seal;
mod secret;
mod secret_bytes;
mod state;
mod suite;
mod violation;

pub use header::{frame, Frame};
pub use keys::Keys;
pub use records::{Exhausted, Records};
pub use secret::TrafficSecret;
pub use secret_bytes::SecretBytes;
pub use state::{Imported, Malformed};
pub use suite::{Suite, Version};
pub use violation::{Alert, Violation};
pub use zeroize::Zeroizing;

/// Most bytes of data in a record (RFC 8446 §5.1).
pub const FRAGMENT_BYTES: usize = 1 << 14;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
