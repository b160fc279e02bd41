//! A plain socket.

use super::byte_stream::ByteStream;
use super::link::Transport;
use super::send_queue;
use crate::limits::descriptors::Counted;
use fairlead_system::files;
use fairlead_system::sockets::{MORE, SEND};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{self, send, sendmsg, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use std::fs::File;
use std::io::IoSlice;

/// A plain socket.
#[derive(Debug)]
pub(crate) struct Socket(Counted<OwnedFd>);

impl Socket {
    /// `socket` must be non-blocking.
    pub(crate) fn new(socket: Counted<OwnedFd>) -> Socket {
        Socket(socket)
    }

    /// Returns the next byte to receive, without receiving it; `None` at the end of input.
    pub(super) fn peek(&self) -> io::Result<Option<u8>> {
        let mut byte = [0; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (count, _) = net::recv(&self.0, &mut byte, flags)?;
        Ok((count > 0).then_some(byte[0]))
    }

    /// Makes a socket with its own budget.
    #[cfg(test)]
    pub(crate) fn uncounted(socket: OwnedFd) -> Socket {
        let permit = crate::limits::descriptors::Descriptors::with(1, 1).for_connection();
        Socket(Counted::new(socket, permit.expect("the budget is unused")))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl ByteStream for Socket {
    fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        net::recv(&self.0, space, RecvFlags::DONTWAIT).map(|(count, _)| count)
    }

    fn has_received(&self) -> io::Result<bool> {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        net::recv(&self.0, &mut [0; 1], flags).map(|(count, _)| count > 0)
    }

    // Another process with a copy of the descriptor may make it blocking, so each call must request not to block.
    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let more = if more { MORE } else { SendFlags::empty() };
        send(&self.0, bytes, SEND | more)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        sendmsg(&self.0, pieces, &mut SendAncillaryBuffer::default(), SEND)
    }

    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize> {
        files::send(&self.0, file, offset, length)
    }

    fn unacknowledged(&self) -> usize {
        send_queue::length(self.as_fd())
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
}

impl Transport for Socket {
    fn as_plain(&self) -> Option<&OwnedFd> {
        Some(&self.0)
    }
}
