//! A listening socket and what the app is told of it; accepting, and what to do when descriptors run out.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{self, SocketFlags};
use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

/// What an app sees of the address that a connection came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `http` (later also `https`).
    pub scheme: String,
    /// Host or address; for a Unix socket `localhost`.
    pub host: String,
    /// Port; 0 for a Unix socket.
    pub port: u16,
    /// Whether it is a Unix socket, whose peers have no address.
    pub unix: bool,
}

/// An open, accepting socket.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    origin: Arc<Origin>,
}

/// What came of an attempt to accept.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A connection, and who is at its other end: `None` only for a Unix socket. Later a peer may be gone, and with it
    /// what the kernel knows of it.
    Connection(OwnedFd, Option<SocketAddr>),
    /// Nobody is waiting (any more).
    Nobody,
    /// This process or the machine is out of descriptors or memory.
    OutOfResources(Errno),
}

impl Listener {
    /// Makes the socket non-blocking; it must be listening already.
    ///
    /// # Errors
    /// If the flags of the socket cannot be changed.
    pub fn new(socket: OwnedFd, origin: Origin) -> std::io::Result<Listener> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener {
            socket,
            origin: Arc::new(origin),
        })
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(crate) fn accept(&self) -> Incoming {
        loop {
            return match net::acceptfrom_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok((socket, address)) => {
                    let peer = address.and_then(|address| address.try_into().ok());
                    if peer.is_none() && !self.origin.unix {
                        continue;
                    }
                    Incoming::Connection(socket, peer)
                }
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => continue,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    Incoming::OutOfResources(error)
                }
                Err(_) => Incoming::Nobody,
            };
        }
    }
}

/// A descriptor held in reserve: given up for a moment, so that a connection for which there is none can be refused
/// with a response instead of left waiting.
#[derive(Default)]
pub(crate) struct Reserve(Option<OwnedFd>);

impl Reserve {
    pub(crate) fn hold(&mut self) {
        if self.0.is_none() {
            self.0 = File::open("/dev/null").ok().map(OwnedFd::from);
        }
    }

    /// Refuses one waiting connection; false when there was nothing to give up or nobody to refuse.
    pub(crate) fn refuse_one(&mut self, listener: &Listener, response: &[u8]) -> bool {
        if self.0.take().is_none() {
            return false;
        }
        let refused = match listener.accept() {
            Incoming::Connection(socket, _) => {
                refuse(&socket, response);
                true
            }
            _ => false,
        };
        self.hold();
        refused
    }
}

/// Answers a connection that was never served, as far as its socket takes it, and says that nothing follows.
pub(crate) fn refuse(socket: impl AsFd, response: &[u8]) {
    // What the client has sent already would turn our close into a reset, which could overtake the response.
    let mut sent = [0u8; 4096];
    let _ = io::read(&socket, &mut sent);
    let _ = net::send(&socket, response, net::SendFlags::NOSIGNAL);
    let _ = net::shutdown(&socket, net::Shutdown::Write);
}
