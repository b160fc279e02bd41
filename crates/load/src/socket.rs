//! A socket as a client uses it, with TLS or without.

use crate::poller::{Interest, Poller};
use crate::received::{Received, Trouble};
use crate::tls::{Agreement, Client, Stream};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    tls: Option<Box<Stream>>,
}

/// What a handshake came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shaken {
    pub(crate) resumed: bool,
    pub(crate) agreement: Agreement,
    /// So many bytes in the buffer came right behind it: a server of HTTP/2 may speak first (RFC 9113 §3.4).
    pub(crate) first: usize,
}

impl Socket {
    pub(crate) fn new(socket: OwnedFd) -> Socket {
        Socket { socket, tls: None }
    }

    /// Begins a handshake on a socket that is connected.
    pub(crate) fn secure(&mut self, client: &Client) -> Result<(), Trouble> {
        let stream = client.stream().map_err(Trouble::Tls)?;
        let stream = self.tls.insert(Box::new(stream));
        match stream.flush(self.socket.as_fd()) {
            Ok(()) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on with the handshake; `None` while it is not over. Its last message goes out with what is sent next.
    pub(crate) fn shake(&mut self, buffer: &mut [u8]) -> Result<Option<Shaken>, Trouble> {
        let Some(stream) = &mut self.tls else {
            return Ok(None);
        };
        let first = match stream.recv(self.socket.as_fd(), buffer)? {
            Received::End | Received::Cut => return Err(Trouble::Closed),
            Received::Bytes(bytes) if stream.may_be_spoken_to() => bytes,
            // No server of HTTP/1.1 speaks before it is asked, and an answer to nothing would be malformed.
            Received::Bytes(_) => return Err(Trouble::Tls("the server spoke before it was asked".into())),
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

    /// Takes as many of the bytes as there is room for. `AGAIN` when there is none.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match &mut self.tls {
            None => net::send(&self.socket, bytes, SendFlags::NOSIGNAL),
            Some(stream) => stream.send(self.socket.as_fd(), bytes),
        }
    }

    /// Sends what was taken and is not gone yet.
    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        match &mut self.tls {
            None => Ok(()),
            Some(stream) => stream.flush(self.socket.as_fd()),
        }
    }

    /// Watches for what a handshake waits for; `interest` is what is watched for now.
    pub(crate) fn watch(&self, poller: &Poller, token: usize, interest: Interest) -> Result<Interest, Errno> {
        let wanted = Interest::of(!self.is_flushed());
        if wanted != interest {
            poller.change(self, token, wanted)?;
        }
        Ok(wanted)
    }

    /// Whether all that was taken is gone.
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

    /// Whether the peer has said that nothing comes behind what was received, although its socket may still be open.
    pub(crate) fn has_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|stream| stream.has_ended())
    }

    /// Says goodbye as far as the socket takes it.
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
