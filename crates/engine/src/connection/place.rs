//! A connection's place in its engine: the key, the registration with the poller, the count. It is given back when the
//! connection goes, by whatever way: answered, refused, given away, or dropped by a panic.
//!
//! A process that the app has forked shares the socket and the poll set. So the registration is taken back and the connection
//! shut down before the descriptor is closed, which alone would do neither while the other process lives; and the other
//! process must do nothing of that kind.

use crate::engine::Engine;
use crate::limits::descriptors::Counted;
use crate::reactor::parked::Key;
use crate::reactor::poller::Interest;
use rustix::fd::OwnedFd;
use rustix::{io, net};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Weak};

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
    engine: Weak<Engine>,
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
    /// A new one, which counts as a connection.
    pub(crate) fn new(engine: &Engine) -> Place {
        let key = engine.parked.lock().reserve();
        engine.counters().connections.fetch_add(1, Relaxed);
        Place {
            engine: engine.me.clone(),
            key,
            ending: SocketEnd::Close,
        }
    }

    /// For a connection that belongs to no engine.
    #[cfg(test)]
    pub(crate) fn nowhere(key: Key) -> Place {
        Place {
            engine: Weak::new(),
            key,
            ending: SocketEnd::Close,
        }
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Registers the connection's socket with the poller, which wants `interest` of it (`None`: nothing yet).
    pub(crate) fn register(
        &self,
        engine: &Engine,
        socket: &Arc<Counted<OwnedFd>>,
        interest: Option<Interest>,
    ) -> io::Result<()> {
        if engine.fault("watch a connection") {
            return Err(io::Errno::NOSPC);
        }
        match interest {
            Some(interest) => engine.poller.add(socket, self.key, interest)?,
            None => engine.poller.add_silent(socket, self.key)?,
        }
        engine.parked.lock().register(self.key, socket, interest);
        Ok(())
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
        let engine = self.engine.upgrade().filter(|engine| engine.is_at_home());
        let Some(engine) = engine else { return };
        let socket = engine.parked.lock().release(self.key);
        if self.ending == SocketEnd::Client {
            return;
        }
        engine.counters().connections.fetch_sub(1, SeqCst);
        if let Some(socket) = socket {
            engine.poller.remove(&socket);
            match self.ending {
                SocketEnd::Close => end(&socket),
                SocketEnd::Reset => reset(&socket),
                SocketEnd::GivenAway | SocketEnd::Client => {}
            }
        }
        engine.tell_of_place();
    }
}

/// Says in both directions that nothing follows, whoever else has the socket: a thread of the app that still waits for the peer
/// learns of it, too.
fn end(socket: &OwnedFd) {
    let _ = net::shutdown(socket, net::Shutdown::Both);
}

/// Ends a connection so that its peer sees a reset (RFC 9293 §3.10.7.4) and the kernel keeps nothing for it, whoever else has
/// the socket. What has no reset, such as a Unix socket, is shut down.
pub(crate) fn reset(socket: &OwnedFd) {
    if net::connect_unspec(socket).is_err() {
        end(socket);
    }
}
