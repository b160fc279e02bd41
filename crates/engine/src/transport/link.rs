//! The transport of one peer: its users need not know if it is a plain socket or a layer on top of one.

use super::byte_stream::ByteStream;
use super::handshake::{Handshake, HandshakeError};
use super::owner::ConnectionOwner;
use super::poller::{Interest, Key, Poller};
use super::relayed::AfterResponse;
use crate::limits::budget::Budget;
use crate::tls::Session;
use fairlead_system::sockets;
use fairlead_tls_record::SecretBytes;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{self, RecvFlags};
use std::fs::File;
use std::sync::Arc;

/// The connection to one peer.
pub(crate) trait Transport: ByteStream {
    /// True if nothing can be sent or received before the end of [`Transport::handshake`].
    fn awaits_handshake(&self) -> bool {
        false
    }

    /// Continues the handshake, as far as possible now. May compute for a millisecond.
    ///
    /// # Errors
    /// If the handshake fails. The peer has been told, if it speaks TLS.
    fn handshake(&self) -> Result<Handshake, HandshakeError> {
        Ok(Handshake::Done)
    }

    /// Result of the TLS handshake with the peer; `None` without TLS.
    fn session(&self) -> Option<&Arc<Session>> {
        None
    }

    /// The socket, if it carries the protocol without another layer: only then can another process or the app take it
    /// over.
    fn as_plain(&self) -> Option<&OwnedFd>;

    /// True if another worker can take it over, now and after further bytes.
    fn can_move(&self) -> bool {
        true
    }

    /// True if another process could continue with it.
    fn can_export(&self) -> bool {
        self.owner().is_none() && self.as_plain().is_some()
    }

    /// Everything that another process needs to continue with it; `None` if that is not possible at this moment: try again
    /// after further bytes.
    ///
    /// From now on nothing is sent, received or shut down here if it has TLS, until [`Transport::stay`] says that no other
    /// process has the state. Two processes must not send records with the same keys.
    fn export(&self) -> Option<Export<'_>> {
        let socket = self.as_plain()?;
        Some(Export { socket, tls: None })
    }

    /// Continues here after an export in vain.
    fn stay(&self) {}

    /// Source of its events, if they do not come from the poller of the operating system.
    fn own_events(&self) -> Option<&dyn OwnEvents> {
        None
    }

    /// Descriptor, and its event, for a thread that polls until there is something to receive (`IN`), or the peer takes
    /// more (`OUT`). Replaces the previous request.
    fn signal(&self, wanted: PollFlags) -> (BorrowedFd<'_>, PollFlags) {
        (self.as_fd(), wanted)
    }

    /// The owner of the connection, if this transport ends with one response.
    fn owner(&self) -> Option<&dyn ConnectionOwner> {
        None
    }
}

/// A transport for another process.
#[derive(Debug)]
pub(crate) struct Export<'a> {
    pub(crate) socket: &'a OwnedFd,
    /// State of the TLS connection; `None` for a plain one.
    pub(crate) tls: Option<SecretBytes>,
}

/// The peer, while it waits for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    There,
    /// It sends nothing more: it waits for the response, or has closed the connection. The next bytes to it will show
    /// which.
    HalfClosed,
    /// It has reset or closed the connection, or reset the stream: no response reaches it.
    Left,
}

/// A transport that shares its descriptor with others reports its own events, with its key. Level-triggered, as the
/// poller: as long as a watched operation is possible, there is an event.
pub(crate) trait OwnEvents {
    /// Watches for input, or for room to write; the end is always reported once.
    fn watch(&self, key: Key, reads: bool, writes: bool);

    /// Reports no more events.
    fn unwatch(&self);
}

impl dyn Transport + '_ {
    /// True if this transport ends with one response; [`ConnectionOwner::give_back`] tells the owner of the connection.
    pub(crate) fn is_for_one_response(&self) -> bool {
        self.owner().is_some()
    }

    /// True if this is a relay. The speed of the peer is then measured by the worker that has the connection: it takes
    /// no more bytes before the peer has taken the earlier ones.
    pub(crate) fn is_relayed(&self) -> bool {
        self.back_channel().is_some()
    }

    /// The eventfd of the owner, if that is another worker.
    pub(crate) fn back_channel(&self) -> Option<&OwnedFd> {
        self.owner().and_then(ConnectionOwner::back_channel)
    }

    /// The budget of the HTTP/2 connection, for its streams.
    pub(crate) fn budget(&self) -> Option<&Arc<Budget>> {
        self.owner().and_then(ConnectionOwner::budget)
    }

    /// Tells the owner that the request begins to run.
    pub(crate) fn begin(&self) {
        self.owner().into_iter().for_each(ConnectionOwner::begin);
    }

    /// Tells the owner what follows the response.
    pub(crate) fn give_back(&self, next: AfterResponse) {
        if let Some(owner) = self.owner() {
            owner.give_back(next);
        }
    }

    /// Tells the owner that the app has taken the socket.
    pub(crate) fn hijacked(&self) {
        self.owner().into_iter().for_each(ConnectionOwner::hijacked);
    }

    /// Watches for `interest` instead of the previous events.
    pub(crate) fn watch_for(&self, interest: Interest, key: Key, poller: &Poller) -> io::Result<()> {
        let Some(own) = self.own_events() else {
            return poller.change(self, key, interest);
        };
        own.watch(key, interest.reads(), interest.writes());
        Ok(())
    }

    /// The same for a client.
    pub(crate) fn watch_client(&self, reads: bool, writes: bool, key: Key, poller: &Poller) -> io::Result<()> {
        let Some(own) = self.own_events() else {
            return poller.change_client(self, key, reads, writes);
        };
        own.watch(key, reads, writes);
        Ok(())
    }

    /// Reports no event until something else is watched for.
    pub(crate) fn silence(&self, key: Key, poller: &Poller) {
        match self.own_events() {
            Some(own) => own.watch(key, false, false),
            None => _ = poller.silence(self, key),
        }
    }

    /// Watches for no events any more.
    pub(crate) fn unwatch(&self, poller: &Poller) {
        match self.own_events() {
            Some(own) => own.unwatch(),
            None => poller.remove(self),
        }
    }

    /// True if the peer takes something now.
    pub(crate) fn has_room(&self) -> bool {
        let (descriptor, event) = self.signal(PollFlags::OUT);
        let now = Timespec::default();
        matches!(poll(&mut [PollFd::new(&descriptor, event)], Some(&now)), Ok(1..))
    }

    /// The peer, as far as the system knows: one system call, except for streams of HTTP/2.
    pub(crate) fn presence(&self) -> Presence {
        if self.own_events().is_some() {
            let is_reset = self.has_received().is_err_and(|error| error != Errno::AGAIN);
            return if is_reset { Presence::Left } else { Presence::There };
        }
        match sockets::peer(self.as_fd()) {
            sockets::Peer::Gone => Presence::Left,
            sockets::Peer::SendsNoMore => Presence::HalfClosed,
            sockets::Peer::There => Presence::There,
        }
    }

    /// Tells the peer of a stream of HTTP/2 that its request was not run. Returns false for other transports.
    pub(crate) fn decline(&self) -> bool {
        self.owner().is_some_and(ConnectionOwner::decline)
    }

    /// Reads input that belongs to no layer on top of the socket, without receiving it. Fails with [`Errno::NOTCONN`]
    /// once a handshake has begun.
    pub(crate) fn peek(&self, space: &mut [u8]) -> io::Result<usize> {
        let socket = self.as_plain().ok_or(Errno::NOTCONN)?;
        net::recv(socket, space, RecvFlags::PEEK | RecvFlags::DONTWAIT).map(|(count, _)| count)
    }

    /// Receives as much as fits into `space`; `peek` has shown that the bytes are there.
    pub(crate) fn skip(&self, space: &mut [u8]) -> io::Result<()> {
        let socket = self.as_plain().ok_or(Errno::NOTCONN)?;
        let wanted = space.len();
        match net::recv(socket, space, RecvFlags::DONTWAIT)? {
            (count, _) if count == wanted => Ok(()),
            _ => Err(Errno::PROTO),
        }
    }

    /// Sends until the socket takes no more; returns the number of bytes sent.
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

    /// Sends at most `most` bytes of a file up to `end`; returns their number, and true if the socket took fewer than
    /// it was offered.
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
