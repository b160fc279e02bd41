//! The end of a queue for senders: puts connections and clients in.

use super::message::{Message, OutgoingMigration, DATAGRAM_BYTES, DESCRIPTORS};
use fairlead_system::datagrams;
use fairlead_system::memory_file;
use fairlead_system::sockets::SEND;
use fairlead_tls_record::SecretBytes;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, retry_on_intr, Errno};
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage};
use std::io::IoSlice;
use std::mem::MaybeUninit;

/// In front of the state of a client: it follows.
pub(super) const INLINE: u8 = 0;

/// It is in the file.
pub(super) const IN_FILE: u8 = 1;

/// It is in the file, which is to be wiped.
pub(super) const IN_SECRET: u8 = 2;

/// See the head of this file.
pub(super) struct Outlet(OwnedFd);

/// Result of an attempt to put a connection in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Done,
    /// The kernel's buffer is full, or too many descriptors are in such buffers.
    Full,
    /// It needs a file in memory, and none could be made.
    TooLong,
    /// No process can take anything out any more.
    Gone,
}

/// Puts a datagram in.
pub(super) type Put<'a> = dyn FnMut() -> io::Result<usize> + 'a;

impl Outlet {
    pub(super) fn new(sender: OwnedFd) -> Outlet {
        Outlet(sender)
    }

    pub(super) fn sender(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Bytes in the queue, with the memory that the kernel needs for each datagram.
    pub(super) fn under_way(&self) -> usize {
        datagrams::under_way(&self.0).unwrap_or(0)
    }

    /// Puts a connection in. The caller keeps it, too. `count`: calls its argument, and counts the connection.
    pub(super) fn send_connection(
        &self,
        outgoing: &OutgoingMigration<'_>,
        count: impl FnOnce(&mut Put<'_>) -> io::Result<usize>,
    ) -> Sent {
        let Ok(mut message) = Message::new(outgoing) else {
            return Sent::TooLong;
        };
        if !message.is_short() && message.lengthen().is_err() {
            return Sent::TooLong;
        }
        let put = |message: &Message<'_>| self.put(&message.datagram(), &message.descriptors());
        let sent = count(&mut || match put(&message) {
            // The kernel gave a buffer so small that not even a short datagram fits.
            Err(Errno::MSGSIZE) if message.lengthen().is_ok() => put(&message),
            sent => sent,
        });
        Sent::of(sent)
    }

    /// Puts a client in. `is_secret`: the state has keys. `count`: as above.
    pub(super) fn send_client(
        &self,
        socket: &OwnedFd,
        state: &SecretBytes,
        is_secret: bool,
        count: impl FnOnce(&mut Put<'_>) -> io::Result<usize>,
    ) -> Sent {
        let is_short = !is_secret && state.len() < DATAGRAM_BYTES;
        let make = || match is_secret {
            true => memory_file::secret("fairlead client", state).map(|file| (IN_SECRET, file)),
            false => memory_file::constant("fairlead client", &[state]).map(|file| (IN_FILE, file)),
        };
        let Ok(file) = (!is_short).then(make).transpose() else {
            return Sent::TooLong;
        };
        let (kind, state, file) = match &file {
            Some((kind, file)) => (*kind, &[][..], Some(file)),
            None => (INLINE, &state[..], None),
        };
        let descriptors: Vec<BorrowedFd<'_>> = [Some(socket), file].into_iter().flatten().map(AsFd::as_fd).collect();
        Sent::of(count(&mut || {
            self.put(&[IoSlice::new(&[kind]), IoSlice::new(state)], &descriptors)
        }))
    }

    fn put(&self, datagram: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(descriptors));
        retry_on_intr(|| sendmsg(&self.0, datagram, &mut control, SEND))
    }
}

impl Sent {
    fn of(sent: io::Result<usize>) -> Sent {
        match sent {
            Ok(_) => Sent::Done,
            Err(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::NOTCONN) => Sent::Gone,
            Err(_) => Sent::Full,
        }
    }
}
