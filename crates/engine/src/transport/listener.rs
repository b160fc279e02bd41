//! A listening socket, and what the app is told about it; accepting, and what to do when descriptors run out.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{self, SocketFlags};
use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

/// What the app is told about the address at which a connection was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `http` (later also `https`).
    pub scheme: String,
    /// Host or address; `localhost` for a Unix socket.
    pub host: String,
    /// Port; 0 for a Unix socket.
    pub port: u16,
    /// Whether it is a Unix socket, whose peers have no address.
    pub unix: bool,
}

impl Origin {
    /// A number by which workers that have loaded different configurations find the same address among theirs (FNV-1a).
    pub(crate) fn fingerprint(&self) -> u32 {
        let texts = [self.scheme.as_bytes(), b"\0", self.host.as_bytes(), b"\0"]
            .into_iter()
            .flatten();
        let rest = [
            self.port.to_le_bytes()[0],
            self.port.to_le_bytes()[1],
            u8::from(self.unix),
        ];
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        texts.chain(&rest).fold(0x811c_9dc5, mix)
    }
}

/// An open, accepting socket.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    origin: Arc<Origin>,
}

/// The result of an attempt to accept.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A connection and its peer's address: `None` only for a Unix socket. The address is taken now, because the kernel
    /// no longer has it once the peer is gone.
    Connection(OwnedFd, Option<SocketAddr>),
    /// No connection is waiting (any more).
    Nobody,
    /// This process or the machine is out of descriptors or memory.
    OutOfResources(Errno),
}

impl Listener {
    /// Makes the socket non-blocking; it must already be listening.
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

/// A descriptor held in reserve. It is closed for a moment when no other one is free, so that a connection can be
/// accepted and refused with a response instead of left waiting.
#[derive(Default)]
pub(crate) struct Reserve(Option<OwnedFd>);

impl Reserve {
    pub(crate) fn hold(&mut self) {
        if self.0.is_none() {
            self.0 = File::open("/dev/null").ok().map(OwnedFd::from);
        }
    }

    /// Refuses one waiting connection. False if there was no reserve, or no connection was waiting.
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

/// Sends `response` to a connection that is not served, as far as its socket takes it, and shuts down writing.
pub(crate) fn refuse(socket: impl AsFd, response: &[u8]) {
    // Unread bytes of the client would turn the close into a reset, which could overtake the response.
    let mut sent = [0u8; 4096];
    let _ = io::read(&socket, &mut sent);
    let _ = net::send(&socket, response, net::SendFlags::NOSIGNAL);
    let _ = net::shutdown(&socket, net::Shutdown::Write);
}
