//! A client's socket, with TLS or without.

use crate::poller::{Interest, Poller};
use crate::received::{Received, Trouble};
use crate::tls::{Agreement, Client, Stream};
use fairlead_system::sockets::NO_SIGNAL;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};

#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    tls: Option<Box<Stream>>,
}

/// Result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shaken {
    pub(crate) resumed: bool,
    pub(crate) agreement: Agreement,
    /// Number of bytes in the buffer that came right after it: an HTTP/2 server may speak first (RFC 9113 §3.4).
    pub(crate) first: usize,
}

impl Socket {
    pub(crate) fn new(socket: OwnedFd) -> Socket {
        Socket { socket, tls: None }
    }

    /// Begins a handshake on a connected socket.
    pub(crate) fn secure(&mut self, client: &Client) -> Result<(), Trouble> {
        let stream = client.stream().map_err(Trouble::Tls)?;
        let stream = self.tls.insert(Box::new(stream));
        match stream.flush(self.socket.as_fd()) {
            Ok(()) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Continues the handshake; `None` while it is not complete. Its last message is sent together with the first data.
    pub(crate) fn shake(&mut self, buffer: &mut [u8]) -> Result<Option<Shaken>, Trouble> {
        let Some(stream) = &mut self.tls else {
            return Ok(None);
        };
        let first = match stream.recv(self.socket.as_fd(), buffer)? {
            Received::End | Received::Cut => return Err(Trouble::Closed),
            Received::Bytes(bytes) if stream.may_be_spoken_to() => bytes,
            // An HTTP/1.1 server never speaks first: a response without a request would be malformed.
            Received::Bytes(_) => return Err(Trouble::Tls("the server sent data before the first request".into())),
            Received::Nothing => 0,
        };
        if stream.is_shaking() {
            return match stream.flush(self.socket.as_fd()) {
                Ok(()) | Err(Errno::AGAIN) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
        stream.check_protocol()?;
        let resumed = stream.is_resumed();
        let shaken = |agreement| Shaken {
            resumed,
            agreement,
            first,
        };
        Ok(stream.agreement().map(shaken))
    }

    /// Accepts as many of the bytes as there is room for. Returns `AGAIN` if there is none.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match &mut self.tls {
            None => net::send(&self.socket, bytes, NO_SIGNAL),
            Some(stream) => stream.send(self.socket.as_fd(), bytes),
        }
    }

    /// Sends accepted bytes that have not been sent yet.
    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        match &mut self.tls {
            None => Ok(()),
            Some(stream) => stream.flush(self.socket.as_fd()),
        }
    }

    /// Watches for the event that a handshake needs next; `interest` is the current one.
    pub(crate) fn watch(&self, poller: &Poller, token: usize, interest: Interest) -> Result<Interest, Errno> {
        let wanted = Interest::of(!self.is_flushed());
        if wanted != interest {
            poller.change(self, token, wanted)?;
        }
        Ok(wanted)
    }

    /// Returns `true` if all accepted bytes have been sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|stream| stream.is_flushed())
    }

    /// Receives once.
    pub(crate) fn recv(&mut self, buffer: &mut [u8]) -> Result<Received, Trouble> {
        if let Some(stream) = &mut self.tls {
            return stream.recv(self.socket.as_fd(), buffer);
        }
        match net::recv(&self.socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Received::End),
            Ok((bytes, _)) => Ok(Received::Bytes(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `true` if the peer has announced the end of its data. Its socket may still be open.
    pub(crate) fn has_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|stream| stream.has_ended())
    }

    /// Closes the connection cleanly, as far as the socket takes the closing bytes.
    pub(crate) fn leave(mut self) {
        if let Some(stream) = &mut self.tls {
            stream.leave(self.socket.as_fd());
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
