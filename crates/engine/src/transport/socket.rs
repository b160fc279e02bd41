//! The transport: carries the bytes of one peer. Everything that is received from or sent to a peer passes here; its
//! users do not know whether it is a plain socket or something on top of one.

use crate::limits::descriptors::Counted;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::sendfile;
use rustix::io::{self, Errno};
use rustix::net::{self, send, sendmsg, RecvFlags, SendAncillaryBuffer, SendFlags};
use std::fmt::Debug;
use std::fs::File;
use std::io::IoSlice;

pub(crate) use rustix::net::Shutdown;

/// The connection to one peer. Nothing here blocks: what is not possible now fails with [`Errno::AGAIN`]. The
/// descriptor is for the poller. Several threads may use it at once, but only one may receive.
pub(crate) trait Transport: AsFd + Debug + Send + Sync {
    /// Receives what has arrived, as far as it fits into `space`; 0 at the end of input.
    fn receive(&self, space: &mut [u8]) -> io::Result<usize>;

    /// Whether something has arrived, without receiving it; false at the end of input.
    fn has_received(&self) -> io::Result<bool>;

    /// Sends some of `bytes`; returns how many. `more`: further bytes follow at once.
    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize>;

    /// Sends some bytes of several pieces, in order; returns how many.
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends some bytes of a file, at most `length` from `offset`, which is advanced; 0 at the end of the file.
    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize>;

    /// Shuts down the given directions.
    fn shut_down(&self, how: Shutdown) -> io::Result<()>;

    /// Resets the connection (RFC 9293 §3.10.7.4), so that the peer sees that something is missing, and the kernel
    /// keeps no data for it. Works even if another process has the socket, too.
    fn reset(&self);

    /// The socket, if its bytes are those of the protocol, without another layer: only then can another process or the
    /// app take it over.
    fn as_plain(&self) -> Option<&OwnedFd>;
}

/// A plain socket.
#[derive(Debug)]
pub(crate) struct Socket(Counted<OwnedFd>);

impl Socket {
    /// `socket` must be non-blocking.
    pub(crate) fn new(socket: Counted<OwnedFd>) -> Socket {
        Socket(socket)
    }

    /// A socket with its own budget.
    #[cfg(test)]
    pub(crate) fn uncounted(socket: OwnedFd) -> Socket {
        let permit = crate::limits::descriptors::Descriptors::with(1, 1).for_connection();
        Socket(Counted::new(socket, permit.expect("the budget is unused")))
    }
}

/// Another process with a copy of the descriptor may make it blocking, so each call says that it must not block.
const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Transport for Socket {
    fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        net::recv(&self.0, space, RecvFlags::DONTWAIT).map(|(count, _)| count)
    }

    fn has_received(&self) -> io::Result<bool> {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        net::recv(&self.0, &mut [0; 1], flags).map(|(count, _)| count > 0)
    }

    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let more = if more { SendFlags::MORE } else { SendFlags::empty() };
        send(&self.0, bytes, SEND | more)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        sendmsg(&self.0, pieces, &mut SendAncillaryBuffer::default(), SEND)
    }

    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize> {
        sendfile(&self.0, file, Some(offset), length)
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        net::shutdown(&self.0, how)
    }

    fn reset(&self) {
        // A socket without reset, such as a Unix socket, is shut down.
        if net::connect_unspec(&self.0).is_err() {
            let _ = self.shut_down(Shutdown::Both);
        }
    }

    fn as_plain(&self) -> Option<&OwnedFd> {
        Some(&self.0)
    }
}

impl dyn Transport + '_ {
    /// Sends until no more is taken; returns how many bytes were sent.
    pub(crate) fn send_most(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.send(&bytes[sent..], more) {
                Ok(taken) => sent += taken,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Sends at most `most` bytes of a file up to `end`; returns how many, and whether the socket took fewer than it
    /// was offered.
    pub(crate) fn send_part(&self, file: &File, offset: &mut u64, end: u64, most: u64) -> io::Result<(u64, bool)> {
        let wanted = (end - *offset).min(most);
        let mut taken = 0;
        while taken < wanted {
            match self.send_file(file, offset, (wanted - taken) as usize) {
                // The file has become shorter than the announced length: the response cannot be completed.
                Ok(0) => return Err(Errno::PIPE),
                Ok(count) => taken += count as u64,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((taken, taken < wanted))
    }
}
