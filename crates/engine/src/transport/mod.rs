//! Sockets, with TLS or without, and the kernel's poll set: sending to and receiving from a peer ([`Transport`]),
//! polling, the timeouts of a poll, and listening sockets.

mod byte_stream;
mod handshake;
mod link;
pub(crate) mod listener;
#[cfg(test)]
pub(crate) mod memory;
mod owner;
pub(crate) mod poller;
mod relayed;
mod send_queue;
mod socket;
pub(crate) mod timer;
mod tls;

pub(crate) use byte_stream::ByteStream;
pub(crate) use handshake::{Handshake, HandshakeError};
pub(crate) use link::{Export, OwnEvents, Presence, Transport};
pub(crate) use owner::ConnectionOwner;
pub(crate) use relayed::{AfterResponse, RelayOwner, RelayRunner, RelayedSocket};
pub(crate) use rustix::net::Shutdown;
pub use send_queue::{measure_send_queues, SendQueue};
pub(crate) use socket::Socket;
pub(crate) use tls::TlsSocket;

use std::sync::Arc;
use std::time::Duration;

/// A transport, shared by the connection and others that may send over it.
pub(crate) type Link = Arc<dyn Transport>;

/// Time for which further input of a peer is read and discarded after the last bytes to it, so that no reset overtakes
/// them.
pub(crate) const LINGER: Duration = Duration::from_millis(2_000);

/// Bytes read from one peer in a turn: a peer that sends faster must let others have their turn.
pub(crate) const READ_TURN: usize = 256 * 1024;

/// Bytes read at a time.
pub(crate) const SCRATCH_BYTES: usize = 64 * 1024;
