//! Transport: carries the bytes of one peer. All input and output of a peer passes here; its users need not know if it
//! is a plain socket or a layer on top of one.

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

/// Connection to one peer. Nothing here blocks: an operation that is not possible now fails with [`Errno::AGAIN`]. The
/// descriptor is for the poller. Several threads may use it at once, but only one may receive.
pub(crate) trait Transport: AsFd + Debug + Send + Sync {
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

    /// Receives input, as far as it fits into `space`; 0 at the end of input. Fails with [`Errno::PROTO`] if the peer
    /// has violated the protocol and was sent an alert; leave it the time to read the alert.
    fn receive(&self, space: &mut [u8]) -> io::Result<usize>;

    /// True if input has arrived; does not receive it. False at the end of input.
    fn has_received(&self) -> io::Result<bool>;

    /// True if there is input to receive that the poller does not report.
    fn holds_received(&self) -> bool {
        false
    }

    /// Sends a part of `bytes`; returns its length. `more`: further bytes follow at once. The kernel may have fewer of
    /// them: see [`Transport::send_rest`].
    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize>;

    /// Sends bytes of several pieces, in order; returns their number.
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends some bytes of a file, at most `length` from `offset`, which is advanced; 0 at the end of the file.
    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize>;

    /// Gives the kernel the bytes that were taken and are still held here; fails with [`Errno::AGAIN`] if it does not
    /// take all of them. Each attempt to send or receive does this, too.
    fn send_rest(&self) -> io::Result<()> {
        Ok(())
    }

    /// Bytes given to the kernel so far, if these may be fewer than the taken bytes. They show the speed of the peer.
    fn carried(&self) -> Option<u64> {
        None
    }

    /// Bytes that the kernel has and the peer has not acknowledged; 0 if unknown.
    fn unacknowledged(&self) -> usize {
        0
    }

    /// Shuts down the given directions.
    fn shut_down(&self, how: Shutdown) -> io::Result<()>;

    /// Closes both directions in the middle of a message. The peer must not take this for a clean end (no
    /// close_notify).
    fn cut(&self) {
        let _ = self.shut_down(Shutdown::Both);
    }

    /// Resets the connection (RFC 9293 §3.10.7.4), so that the peer sees that something is missing, and the kernel
    /// keeps no data for it. Works even if another process has the socket, too.
    fn reset(&self);

    /// The socket, if it carries the protocol without another layer: only then can another process or the app take it
    /// over.
    fn as_plain(&self) -> Option<&OwnedFd>;

    /// If this transport relays one response to another worker, which has the connection: the descriptor that reports
    /// the step after the response to it.
    fn back_channel(&self) -> Option<&OwnedFd> {
        None
    }

    /// True if this is a relay. The speed of the peer is then measured by the worker that has the connection: it takes
    /// no more bytes before the peer has taken the earlier ones.
    fn is_relayed(&self) -> bool {
        self.back_channel().is_some()
    }

    /// True if it ends with one response, and another owner keeps the connection: another worker, or an HTTP/2
    /// connection. [`Transport::give_back`] reports the end of the response.
    fn is_for_one_response(&self) -> bool {
        self.is_relayed()
    }

    /// Budget of the HTTP/2 connection, for a stream of it.
    fn budget(&self) -> Option<&Arc<Budget>> {
        None
    }

    /// Reports to the worker that has the connection that the request begins to run, if it waits for that.
    fn begin(&self) {}

    /// Reports the step after the sent response to the owner of the connection.
    fn give_back(&self, _: AfterResponse) {}

    /// Notes that the app has taken it: a drain does not wait for its end.
    fn hijacked(&self) {}

    /// True if another worker can take it over, now and after further bytes.
    fn can_move(&self) -> bool {
        true
    }

    /// Source of its events, if they do not come from the poller of the operating system.
    fn own_events(&self) -> Option<&dyn OwnEvents> {
        None
    }

    /// Descriptor, and its event, for a thread that polls until there is something to receive (`IN`), or the peer takes
    /// more (`OUT`). Replaces the previous request.
    fn signal(&self, wanted: PollFlags) -> (BorrowedFd<'_>, PollFlags) {
        (self.as_fd(), wanted)
    }

    /// Result of the TLS handshake with the peer; `None` without TLS.
    fn session(&self) -> Option<&Arc<Session>> {
        None
    }
}

/// A transport that shares its descriptor with others reports its own events, with its key. Level-triggered, as the
/// poller: as long as a watched operation is possible, there is an event.
pub(crate) trait OwnEvents {
    /// Watches for input, or for room to write; the end is always reported once.
    fn watch(&self, key: Key, reads: bool, writes: bool);

    /// Reports no more events.
    fn unwatch(&self);
}

/// State of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Done,
    /// The peer's first message is incomplete.
    AwaitsHello,
    /// It continues when the socket is readable, or writable.
    Waits(Interest),
}

/// Reason for a failed handshake.
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
    /// The peers do not agree, for this reason.
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

/// Another process with a copy of the descriptor may make it blocking, so each call must request not to block.
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
