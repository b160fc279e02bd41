//! A listening socket, and the app's view of its address; accepts connections, and handles a lack of descriptors.

use super::{Link, Socket, TlsSocket};
use crate::limits::descriptors::Counted;
use crate::tls::Tls;
use fairlead_system::sockets;
use fairlead_wire::ProxyVersions;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sent to a client for which there is no slot.
pub(crate) const NO_PLACE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The same before a handshake: the fatal alert `internal_error` (RFC 8446 §6.2); no alert is more specific.
const INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

/// Address at which a connection was accepted, as the app sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: String,
    /// Host or address; `localhost` for a Unix socket.
    pub host: String,
    /// Port; 0 for a Unix socket.
    pub port: u16,
    /// True for a Unix socket; its peers have no address.
    pub unix: bool,
}

impl Origin {
    /// Number by which workers with different configurations recognize the same address (FNV-1a).
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
    endpoint: Arc<Endpoint>,
}

/// Properties that the connections of a listener have in common.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) origin: Origin,
    /// `None` without TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Expected versions of the PROXY header; `None` without one.
    pub(crate) proxy_protocol: Option<ProxyVersions>,
}

impl Endpoint {
    /// Transport of a connection that has just been accepted on `socket`.
    pub(crate) fn transport(&self, socket: Counted<OwnedFd>) -> Link {
        let socket = Socket::new(socket);
        match &self.tls {
            Some(tls) => Arc::new(TlsSocket::new(socket, Arc::clone(tls))),
            None => Arc::new(socket),
        }
    }

    /// Transport of a TLS connection that another process has exported ([`Transport::export`]).
    ///
    /// # Errors
    /// The reason, to complete "closed a connection".
    ///
    /// [`Transport::export`]: super::Transport::export
    pub(crate) fn transport_with_tls(&self, socket: Counted<OwnedFd>, state: &[u8]) -> Result<Link, &'static str> {
        let tls = self.tls.as_ref().ok_or("its address has no TLS any more")?;
        match TlsSocket::continued(Socket::new(socket), Arc::clone(tls), state) {
            Some(transport) => Ok(Arc::new(transport)),
            None => Err("its TLS state has an unknown format"),
        }
    }
}

impl Endpoint {
    /// Transport of a client that another worker has had, without TLS.
    pub(crate) fn plain_transport(&self, socket: Counted<OwnedFd>) -> Link {
        Arc::new(Socket::new(socket))
    }
}

/// Result of an attempt to accept.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A connection and its peer's address: `None` only for a Unix socket. The address is taken now, because the kernel
    /// no longer has it once the peer is gone.
    Connection(OwnedFd, Option<SocketAddr>),
    /// No connection is waiting any more.
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
            endpoint: Arc::new(Endpoint {
                origin,
                tls: None,
                proxy_protocol: None,
            }),
        })
    }

    /// Makes its connections begin with a TLS handshake.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<Tls>) -> Listener {
        Arc::make_mut(&mut self.endpoint).tls = Some(tls);
        self
    }

    /// Makes its connections begin with a PROXY header; connections without one are refused.
    #[must_use]
    pub fn with_proxy_protocol(mut self, versions: ProxyVersions) -> Listener {
        Arc::make_mut(&mut self.endpoint).proxy_protocol = Some(versions);
        self
    }

    /// Address of the socket; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        net::getsockname(&self.socket).ok()?.try_into().ok()
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// True if a connection waits to be accepted.
    pub(crate) fn has_connection(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        let is_known = poll(&mut polled, Some(&Timespec::default())).is_ok();
        is_known && polled[0].revents() == PollFlags::IN // with other flags, it was shut down
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Number that identifies the socket in all processes.
    pub(crate) fn inode(&self) -> Option<u64> {
        rustix::fs::fstat(&self.socket).ok().map(|stat| stat.st_ino)
    }

    /// True if connections in the backlog can still be accepted after the socket has been shut down. With TCP they get
    /// a reset.
    pub(crate) fn keeps_backlog(&self) -> bool {
        self.endpoint.origin.unix
    }

    /// Stops listening in all processes that have the socket.
    pub(crate) fn shut_down(&self) {
        let _ = net::shutdown(&self.socket, net::Shutdown::Both);
    }

    /// Stops listening as above, and ends the connections in the backlog.
    pub(crate) fn abort(&self) {
        self.shut_down();
        if self.keeps_backlog() {
            while let Incoming::Connection(..) = self.accept() {}
        }
    }

    /// Response to a connection for which there is no slot.
    pub(crate) fn refusal(&self) -> &'static [u8] {
        match self.endpoint.tls {
            Some(_) => &INTERNAL_ERROR,
            None => NO_PLACE,
        }
    }

    pub(crate) fn accept(&self) -> Incoming {
        loop {
            return match sockets::accept(&self.socket) {
                Ok((socket, address)) => {
                    let peer = address.and_then(|address| address.try_into().ok());
                    if peer.is_none() && !self.endpoint.origin.unix {
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

/// Spare descriptor. It is closed when no other one is free, so that one connection can be accepted: to refuse it with a response instead
/// of leaving it waiting, or to serve it.
#[derive(Default)]
pub(crate) struct Reserve(Option<OwnedFd>);

impl Reserve {
    pub(crate) fn hold(&mut self) {
        if self.0.is_none() {
            self.0 = File::open("/dev/null").ok().map(OwnedFd::from);
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// Accepts one waiting connection; `None` if there was no spare descriptor, or no connection was waiting.
    pub(crate) fn accept_one(&mut self, listener: &Listener) -> Option<(OwnedFd, Option<SocketAddr>)> {
        self.0.take()?;
        match listener.accept() {
            Incoming::Connection(socket, peer) => Some((socket, peer)),
            _ => {
                self.hold();
                None
            }
        }
    }

    /// Refuses one waiting connection. Returns false as [`Reserve::accept_one`] does.
    pub(crate) fn refuse_one(&mut self, listener: &Listener) -> bool {
        let Some((socket, _)) = self.accept_one(listener) else {
            return false;
        };
        refuse(&socket, listener.refusal());
        drop(socket);
        self.hold();
        true
    }
}

/// Sends `response` to a connection that is not served, as far as its socket takes it, and shuts down writing.
pub(crate) fn refuse(socket: impl AsFd, response: &[u8]) {
    // Unread bytes of the client would turn the close into a reset, which could overtake the response.
    let mut sent = [0u8; 4096];
    let _ = io::read(&socket, &mut sent);
    let _ = net::send(&socket, response, sockets::NO_SIGNAL);
    let _ = net::shutdown(&socket, net::Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    fn listener(socket: OwnedFd, unix: bool) -> Listener {
        let origin = Origin {
            scheme: "http".into(),
            host: "localhost".into(),
            port: 0,
            unix,
        };
        Listener::new(socket, origin).expect("a listener")
    }

    #[test]
    fn a_listener_is_shut_down_although_there_are_copies() {
        let copy = TcpListener::bind("127.0.0.1:0").expect("a port");
        let listener = listener(copy.try_clone().expect("a descriptor").into(), false);
        let address = listener.address().expect("an address");
        assert!(matches!(listener.accept(), Incoming::Nobody));
        let _client = TcpStream::connect(address).expect("the socket listens");
        assert!(matches!(listener.accept(), Incoming::Connection(_, Some(_))));
        listener.abort();
        assert!(matches!(listener.accept(), Incoming::Nobody));
        TcpStream::connect(address).expect_err("the socket does not listen any more");
    }

    #[test]
    fn what_waits_at_a_unix_socket_is_accepted_after_it_was_shut_down_or_aborted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let copy = UnixListener::bind(&path).expect("a socket");
        let listener = listener(copy.try_clone().expect("a descriptor").into(), true);
        let [_accepted, mut aborted] = [(); 2].map(|()| UnixStream::connect(&path).expect("the socket listens"));
        listener.shut_down();
        UnixStream::connect(&path).expect_err("the socket does not listen any more");
        assert!(matches!(listener.accept(), Incoming::Connection(..)));
        listener.abort();
        assert!(
            matches!(aborted.read(&mut [0]), Ok(0) | Err(_)),
            "the connection is not left waiting"
        );
    }
}
