//! A connection's place in its engine: the key, the registration with the poller, the count. It is given back when the
//! connection goes, by whatever way: answered, refused, given away, or dropped by a panic.
//!
//! A process that the app has forked shares the socket and the poll set. So the registration is taken back and the connection
//! shut down before the descriptor is closed, which alone would do neither while the other process lives; and the other
//! process must do nothing of that kind.

use super::connections::Connections;
use crate::transport::poller::Key;
use crate::transport::Shutdown;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Weak;

/// What becomes of the socket when the connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketEnd {
    /// It is shut down.
    Close,
    /// The peer is to see that the response is not whole.
    Reset,
    /// It belongs to somebody else: the app, or another worker.
    GivenAway,
    /// It belongs to a client, which has the registration and the count as well.
    Client,
}

pub(crate) struct Place {
    connections: Weak<Connections>,
    key: Key,
    ending: SocketEnd,
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
    /// The place of that key; given back when this is dropped.
    pub(super) fn new(connections: Weak<Connections>, key: Key) -> Place {
        Place {
            connections,
            key,
            ending: SocketEnd::Close,
        }
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// What the kernel has not sent yet is not to be sent.
    pub(crate) fn reset(&mut self) {
        self.ending = SocketEnd::Reset;
    }

    /// The socket stays open, for its new owner.
    pub(crate) fn give_away(&mut self) {
        self.ending = SocketEnd::GivenAway;
    }

    /// The socket stays open and registered, and the connection counted.
    pub(crate) fn become_client(&mut self) {
        self.ending = SocketEnd::Client;
    }
}

impl Drop for Place {
    /// Must not happen while the parked connections are locked.
    fn drop(&mut self) {
        // An engine that goes itself closes its descriptors and leaves everything else as it is.
        let connections = self.connections.upgrade();
        let Some(connections) = connections.filter(|connections| connections.worker().is_at_home()) else {
            return;
        };
        let worker = connections.worker();
        let transport = connections.parked().release(self.key);
        if self.ending == SocketEnd::Client {
            return;
        }
        worker.counters().connections.fetch_sub(1, SeqCst);
        if let Some(transport) = transport {
            worker.poller.remove(&transport);
            match self.ending {
                SocketEnd::Close => _ = transport.shut_down(Shutdown::Both),
                SocketEnd::Reset => transport.reset(),
                SocketEnd::GivenAway | SocketEnd::Client => {}
            }
        }
        worker.give_place_back();
    }
}
