//! The transport: carries the bytes of one peer. Everything that is received from or sent to a peer passes here; its
//! users do not know whether it is a plain socket or something on top of one.

use super::poller::{Interest, Key, Poller};
use super::relayed::AfterResponse;
use super::send_queue;
use crate::limits::budget::Budget;
use crate::limits::descriptors::Counted;
use crate::tls::{reason, Session};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::sendfile;
use rustix::io::{self, Errno};
use rustix::net::{self, send, sendmsg, RecvFlags, SendAncillaryBuffer, SendFlags};
use std::fmt::Debug;
use std::fs::File;
use std::io::IoSlice;
use std::sync::Arc;

pub(crate) use rustix::net::Shutdown;

/// The connection to one peer. Nothing here blocks: what is not possible now fails with [`Errno::AGAIN`]. The
/// descriptor is for the poller. Several threads may use it at once, but only one may receive.
pub(crate) trait Transport: AsFd + Debug + Send + Sync {
    /// Whether nothing can be sent or received before [`Transport::handshake`] is done.
    fn awaits_handshake(&self) -> bool {
        false
    }

    /// Goes on with the handshake, as far as that is possible now. It may take a millisecond of computing.
    ///
    /// # Errors
    /// If there will be no handshake. The peer has been told, if it speaks TLS.
    fn handshake(&self) -> Result<Handshake, HandshakeError> {
        Ok(Handshake::Done)
    }

    /// Receives what has arrived, as far as it fits into `space`; 0 at the end of input. Fails with [`Errno::PROTO`] if the
    /// peer has violated the protocol and was told so; it should be left the time to read that.
    fn receive(&self, space: &mut [u8]) -> io::Result<usize>;

    /// Whether something has arrived, without receiving it; false at the end of input.
    fn has_received(&self) -> io::Result<bool>;

    /// Whether there is something to receive that the poller does not know of.
    fn holds_received(&self) -> bool {
        false
    }

    /// Sends some of `bytes`; returns how many. `more`: further bytes follow at once. The kernel may have fewer of them:
    /// see [`Transport::send_rest`].
    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize>;

    /// Sends some bytes of several pieces, in order; returns how many.
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends some bytes of a file, at most `length` from `offset`, which is advanced; 0 at the end of the file.
    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize>;

    /// Gives the kernel what was taken and is not there yet; fails with [`Errno::AGAIN`] if it does not take all of it.
    /// Each attempt to send or receive does that, too.
    fn send_rest(&self) -> io::Result<()> {
        Ok(())
    }

    /// Bytes that were given to the kernel so far, if those may be fewer than were taken. How fast a peer is, shows here.
    fn carried(&self) -> Option<u64> {
        None
    }

    /// Bytes that the kernel has and the peer has not acknowledged; 0 if that is not known.
    fn unacknowledged(&self) -> usize {
        0
    }

    /// Shuts down the given directions.
    fn shut_down(&self, how: Shutdown) -> io::Result<()>;

    /// Shuts down both directions in the middle of something. If there is a way to tell a proper end, this is none.
    fn cut(&self) {
        let _ = self.shut_down(Shutdown::Both);
    }

    /// Resets the connection (RFC 9293 §3.10.7.4), so that the peer sees that something is missing, and the kernel
    /// keeps no data for it. Works even if another process has the socket, too.
    fn reset(&self);

    /// The socket, if its bytes are those of the protocol, without another layer: only then can another process or the
    /// app take it over.
    fn as_plain(&self) -> Option<&OwnedFd>;

    /// If another worker has the connection, and this is what it has lent for one response: where it is told what comes
    /// afterwards.
    fn back_channel(&self) -> Option<&OwnedFd> {
        None
    }

    /// Whether this is lent. How fast the peer takes what is sent is then the concern of the worker that has the
    /// connection: it takes nothing more before the peer has taken what it has.
    fn is_relayed(&self) -> bool {
        self.back_channel().is_some()
    }

    /// Whether it ends with one response, of which somebody else keeps the connection: another worker, or a session of
    /// HTTP/2. The end of the response is said by [`Transport::give_back`].
    fn is_for_one_response(&self) -> bool {
        self.is_relayed()
    }

    /// Budget of the session, for a stream of HTTP/2.
    fn budget(&self) -> Option<&Arc<Budget>> {
        None
    }

    /// The request begins to run: tells the worker that has the connection, if that waits for it.
    fn begin(&self) {}

    /// The response was sent: tells whoever has the connection what comes afterwards.
    fn give_back(&self, _: AfterResponse) {}

    /// The app has taken it: a drain does not wait for its end.
    fn hijacked(&self) {}

    /// Whether another worker can take it over, now and when more was sent and received.
    fn can_move(&self) -> bool {
        true
    }

    /// Whoever tells of its events, if that is not the poller of the operating system.
    fn own_events(&self) -> Option<&dyn OwnEvents> {
        None
    }

    /// For a thread that polls until there is something to receive (`IN`), or the peer takes more (`OUT`): a descriptor, and
    /// the event of it. What was asked for before counts no more.
    fn signal(&self, wanted: PollFlags) -> (BorrowedFd<'_>, PollFlags) {
        (self.as_fd(), wanted)
    }

    /// What TLS has agreed on with the peer; `None` without TLS.
    fn session(&self) -> Option<&Arc<Session>> {
        None
    }
}

/// A transport that shares its descriptor with others tells itself what has happened, by an event with its key.
/// Level-triggered, as the poller: as long as something is possible that is watched for, there is an event.
pub(crate) trait OwnEvents {
    /// Watches for something to read, or room to write; the end is always told once.
    fn watch(&self, key: Key, reads: bool, writes: bool);

    /// No event comes any more.
    fn unwatch(&self);
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Done,
    /// The peer's first message is not complete; more of it is awaited.
    AwaitsHello,
    /// It goes on when the socket is readable, or writable.
    Waits(Interest),
}

/// Why there is no handshake.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The peer has gone.
    Gone,
    /// The peer speaks HTTP without TLS.
    PlainHttp,
    /// The peer does not speak TLS.
    NoTls,
    /// There is no certificate to show yet; the peer was told.
    NoCertificate,
    /// It has taken too much processor time.
    Costly,
    /// There are too many at a time, and this one gives way.
    Displaced,
    /// The peers do not agree: why.
    Tls(String),
    Socket(Errno),
}

impl From<rustls::Error> for HandshakeError {
    fn from(error: rustls::Error) -> HandshakeError {
        HandshakeError::Tls(reason(&error))
    }
}

impl From<Errno> for HandshakeError {
    fn from(error: Errno) -> HandshakeError {
        HandshakeError::Socket(error)
    }
}

/// A plain socket.
#[derive(Debug)]
pub(crate) struct Socket(Counted<OwnedFd>);

impl Socket {
    /// `socket` must be non-blocking.
    pub(crate) fn new(socket: Counted<OwnedFd>) -> Socket {
        Socket(socket)
    }

    /// The next byte to receive, without receiving it; `None` at the end of input.
    pub(super) fn peek(&self) -> io::Result<Option<u8>> {
        let mut byte = [0; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (count, _) = net::recv(&self.0, &mut byte, flags)?;
        Ok((count > 0).then_some(byte[0]))
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

    fn as_plain(&self) -> Option<&OwnedFd> {
        Some(&self.0)
    }
}

impl dyn Transport + '_ {
    /// Watches for `interest` instead of what was watched for.
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

    /// No event is reported until something else is watched for.
    pub(crate) fn silence(&self, key: Key, poller: &Poller) {
        match self.own_events() {
            Some(own) => own.watch(key, false, false),
            None => _ = poller.silence(self, key),
        }
    }

    /// Nothing is watched for any more.
    pub(crate) fn unwatch(&self, poller: &Poller) {
        match self.own_events() {
            Some(own) => own.unwatch(),
            None => poller.remove(self),
        }
    }

    /// Whether the peer takes something now.
    pub(crate) fn has_room(&self) -> bool {
        let (descriptor, event) = self.signal(PollFlags::OUT);
        let now = Timespec::default();
        matches!(poll(&mut [PollFd::new(&descriptor, event)], Some(&now)), Ok(1..))
    }

    /// What has arrived and belongs to no layer on top of the socket, without receiving it. Fails with
    /// [`Errno::NOTCONN`] once a handshake has begun.
    pub(crate) fn peek(&self, space: &mut [u8]) -> io::Result<usize> {
        let socket = self.as_plain().ok_or(Errno::NOTCONN)?;
        net::recv(socket, space, RecvFlags::PEEK | RecvFlags::DONTWAIT).map(|(count, _)| count)
    }

    /// Receives as much as `space` has room for, of which `peek` has shown that it is there.
    pub(crate) fn skip(&self, space: &mut [u8]) -> io::Result<()> {
        let socket = self.as_plain().ok_or(Errno::NOTCONN)?;
        let wanted = space.len();
        match net::recv(socket, space, RecvFlags::DONTWAIT)? {
            (count, _) if count == wanted => Ok(()),
            _ => Err(Errno::PROTO),
        }
    }

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
