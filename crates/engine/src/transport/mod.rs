//! Sockets, and what the kernel says of them: the way to a peer and back ([`Transport`]), the poll set, the time-outs that a poll
//! waits for, and listening sockets.

pub(crate) mod listener;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod poller;
mod socket;
pub(crate) mod timer;

pub(crate) use socket::{Shutdown, Socket, Transport};

use std::sync::Arc;
use std::time::Duration;

/// A transport, shared by the connection and whoever else may send over it.
pub(crate) type Link = Arc<dyn Transport>;

/// How long the rest of what a peer says is read and thrown away after the last word to it, so that no reset overtakes that.
pub(crate) const LINGER: Duration = Duration::from_millis(2_000);
