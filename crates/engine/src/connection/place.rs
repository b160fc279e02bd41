//! Place of a connection in its engine: its key, its registration with the poller, and its count. Released when the
//! connection is dropped for any reason: closed, refused, given away, or lost in a panic.
//!
//! A process that the app has forked shares the socket and the poll set. Closing the descriptor alone would neither
//! remove the registration nor end the connection while that process lives, so both are done explicitly. The forked
//! process itself must do neither.

use super::connections::Connections;
use crate::transport::poller::Key;
use crate::transport::Shutdown;
use crate::worker::Count;
use std::sync::Weak;

/// Fate of the socket when the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketEnd {
    /// It is shut down.
    Close,
    /// It is shut down, too, but the peer gets the bytes sent so far and sees that the response is incomplete, if the
    /// transport's protocol can show this.
    Cut,
    /// It is reset, so that the peer sees that the response is incomplete.
    Reset,
    /// It belongs to another owner: the app, or another worker.
    GivenAway,
    /// It belongs to a client, which takes over the registration and the count.
    Client,
}

pub(crate) struct Place {
    connections: Weak<Connections>,
    key: Key,
    ending: SocketEnd,
    /// `None` for a request of an HTTP/2 connection, which is counted itself.
    count: Option<Count>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Place")
            .field("key", &self.key)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// Place for a key; released when dropped. `count`: `None` for one of several requests of a connection that is
    /// counted itself.
    pub(super) fn new(connections: Weak<Connections>, key: Key, count: Option<Count>) -> Place {
        Place {
            connections,
            key,
            ending: SocketEnd::Close,
            count,
        }
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Shuts down the socket at the end, in the middle of a response.
    pub(crate) fn cut(&mut self) {
        self.ending = SocketEnd::Cut;
    }

    /// Resets the socket at the end: unsent bytes in the kernel are discarded.
    pub(crate) fn reset(&mut self) {
        self.ending = SocketEnd::Reset;
    }

    /// Shuts down the socket at the end, after the sent bytes.
    pub(crate) fn close(&mut self) {
        self.ending = SocketEnd::Close;
    }

    /// Leaves the socket open for its new owner.
    pub(crate) fn give_away(&mut self) {
        self.ending = SocketEnd::GivenAway;
    }

    /// From now on an HTTP/2 connection decides which events the socket is watched for, under a separate key. An event
    /// already under way for this key changes nothing.
    fn leave_poller(&self) {
        if let Some(connections) = self.connections.upgrade() {
            connections.parked().leave_interest(self.key);
        }
    }

    /// The same; and the connection counts as one of HTTP/2.
    pub(crate) fn becomes_http2(&mut self) {
        self.leave_poller();
        if let Some(count) = &mut self.count {
            count.becomes_http2();
        }
    }

    /// Shares the socket with a client until [`Place::close`]; the key and the count stay here.
    pub(crate) fn share_with_client(&mut self) {
        self.ending = SocketEnd::Client;
        self.leave_poller();
    }

    /// Leaves the socket open and registered. Returns the count, which belongs to the client from now on.
    #[must_use]
    pub(crate) fn become_client(&mut self) -> Option<Count> {
        self.ending = SocketEnd::Client;
        self.count.take()
    }
}

impl Drop for Place {
    /// Must not happen while the parked connections are locked.
    fn drop(&mut self) {
        // If the engine itself is dropped, it closes its descriptors, and needs nothing else.
        let connections = self.connections.upgrade();
        let Some(connections) = connections.filter(|connections| connections.worker().is_at_home()) else {
            return;
        };
        let worker = connections.worker();
        let transport = connections.parked().release(self.key);
        if self.ending == SocketEnd::Client {
            return;
        }
        // Before the peer sees the end, so that the count is correct as soon as the peer does.
        self.count = None;
        if let Some(transport) = transport {
            transport.unwatch(&worker.poller);
            match self.ending {
                SocketEnd::Close => _ = transport.shut_down(Shutdown::Both),
                SocketEnd::Cut => transport.cut(),
                SocketEnd::Reset => transport.reset(),
                SocketEnd::GivenAway | SocketEnd::Client => {}
            }
        }
    }
}
