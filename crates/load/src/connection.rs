//! One client of the run: its socket and its exchange.
//!
//! ```text
//!           begin              writable                            close
//!   Closed --------> Connecting ----------------------> Open --------------> Closed
//!      \                  \                            / /
//!       \                  \____> Securing __________/ /
//!        \                writable         handshake  /
//!         \__________________________________________/
//!                 connected at once, without TLS
//! ```
//! The exchange outlives the socket: requests that still wait when the socket is closed are sent again on the next one.
//! `worker` decides when to open a connection and when to give up.

use crate::clock::Nanos;
use crate::dial::dial;
use crate::exchange::Exchange;
use crate::poller::{Interest, Poller};
use crate::received::{Received, Trouble};
use crate::socket::{Shaken, Socket};
use crate::tls::Client;
use rustix::io::{self, Errno};
use rustix::net::{self, SocketAddrAny};
use std::net::Ipv4Addr;

#[derive(Debug)]
pub(crate) struct Connection<'a> {
    link: Link,
    pub(crate) exchange: Box<dyn Exchange + 'a>,
    /// The client's TLS, if the URL asks for it.
    client: Option<Client>,
    /// Index of the address of the target to connect to.
    pub(crate) address: usize,
    /// Earliest time at which the connection may be opened again.
    pub(crate) retry_at: Nanos,
    /// The peer accepts no more data; data that it sent before may still be read.
    broken: bool,
    /// Time at which data was last received.
    pub(crate) heard_at: Nanos,
    /// The next request in the schedule of an open loop.
    pub(crate) turn: u64,
}

#[derive(Debug)]
enum Link {
    Closed,
    Connecting(Socket),
    /// The TLS handshake has been in progress since this time.
    Securing {
        socket: Socket,
        interest: Interest,
        since: Nanos,
    },
    Open {
        socket: Socket,
        interest: Interest,
    },
}

/// Progress of opening a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Pending,
    /// Open, without TLS.
    Plain,
    /// Open with TLS; the time is the beginning of the handshake.
    Secure(Shaken, Nanos),
}

impl<'a> Connection<'a> {
    pub(crate) fn new(exchange: Box<dyn Exchange + 'a>, turn: u64, client: Option<Client>) -> Connection<'a> {
        Connection {
            link: Link::Closed,
            exchange,
            client,
            address: 0,
            retry_at: 0,
            broken: false,
            heard_at: 0,
            turn,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.link, Link::Closed)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.link, Link::Open { .. })
    }

    /// Returns `true` during the TLS handshake.
    pub(crate) fn is_securing(&self) -> bool {
        matches!(self.link, Link::Securing { .. })
    }

    /// Returns `true` if the peer refused to accept more data.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Starts to connect, from `source` if it matters. `Ok` does not mean that it succeeded: see [`Connection::is_open`].
    pub(crate) fn begin(
        &mut self,
        address: &SocketAddrAny,
        source: Option<Ipv4Addr>,
        poller: &Poller,
        token: usize,
    ) -> io::Result<()> {
        let (socket, connected) = dial(address, source)?;
        let socket = Socket::new(socket);
        if connected && self.client.is_none() {
            poller.add(&socket, token, Interest::Read)?;
            self.link = Link::Open {
                socket,
                interest: Interest::Read,
            };
        } else {
            poller.add(&socket, token, Interest::ReadAndWrite)?;
            self.link = Link::Connecting(socket);
        }
        Ok(())
    }

    /// The socket that is being opened became ready. Returns the progress, or why opening failed. `buffer` is space for
    /// reading.
    pub(crate) fn go_on_opening(
        &mut self,
        poller: &Poller,
        token: usize,
        buffer: &mut [u8],
        now: Nanos,
    ) -> Result<Opening, Trouble> {
        match std::mem::replace(&mut self.link, Link::Closed) {
            Link::Connecting(mut socket) => {
                net::sockopt::socket_error(&socket)??;
                let interest = Interest::ReadAndWrite;
                let Some(client) = &self.client else {
                    self.link = Link::Open { socket, interest };
                    return Ok(Opening::Plain);
                };
                socket.secure(client)?;
                let interest = socket.watch(poller, token, interest)?;
                self.link = Link::Securing {
                    socket,
                    interest,
                    since: now,
                };
                Ok(Opening::Pending)
            }
            Link::Securing {
                mut socket,
                interest,
                since,
            } => {
                if let Some(shaken) = socket.shake(buffer)? {
                    self.link = Link::Open { socket, interest };
                    return Ok(Opening::Secure(shaken, since));
                }
                let interest = socket.watch(poller, token, interest)?;
                self.link = Link::Securing {
                    socket,
                    interest,
                    since,
                };
                Ok(Opening::Pending)
            }
            link @ (Link::Closed | Link::Open { .. }) => {
                self.link = link;
                Ok(Opening::Pending)
            }
        }
    }

    /// Closes the socket; requests that still wait will be sent again.
    pub(crate) fn close(&mut self) {
        if let Link::Open { socket, .. } = std::mem::replace(&mut self.link, Link::Closed) {
            socket.leave();
        }
        self.broken = false;
        self.exchange.closed();
    }

    /// Writes as much as the socket takes, and watches for writability if data is left.
    pub(crate) fn write(&mut self, poller: &Poller, token: usize) -> io::Result<()> {
        let Link::Open { socket, interest } = &mut self.link else {
            return Ok(());
        };
        let mut blocked = false;
        while !self.broken && !blocked {
            let output = self.exchange.output();
            if output.is_empty() {
                break;
            }
            match socket.send(output) {
                Ok(bytes) => self.exchange.sent(bytes),
                Err(Errno::AGAIN) => blocked = true,
                Err(Errno::INTR) => {}
                Err(_) => self.broken = true,
            }
        }
        if !self.broken && !socket.is_flushed() {
            match socket.flush() {
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(_) => self.broken = true,
            }
        }
        let wanted = Interest::of(!self.broken && (blocked || !socket.is_flushed()));
        if *interest != wanted {
            poller.change(&*socket, token, wanted)?;
            *interest = wanted;
        }
        Ok(())
    }

    /// Reads once into `buffer`.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Received, Trouble> {
        match &mut self.link {
            Link::Open { socket, .. } => socket.recv(buffer),
            Link::Connecting(_) | Link::Securing { .. } | Link::Closed => Ok(Received::Nothing),
        }
    }

    /// Returns `true` if the peer has announced the end of its data. Its socket may still be open.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(&self.link, Link::Open { socket, .. } if socket.has_ended())
    }
}
