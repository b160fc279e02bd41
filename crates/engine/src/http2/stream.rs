//! A stream as a transport for one response. Received: the body of the request. Sent: the head of the response in
//! HTTP/1, possibly interim responses before it, and its body without framing. [`ConnectionOwner::give_back`] says that the
//! response is complete; a stream that ends without it is reset, so that the client notices the missing rest.

use super::connection::Http2Connection;
use super::receiving::Receiving;
use super::sending::Sending;
use crate::limits::budget::Budget;
use crate::sync::Mutex;
use crate::tls::Session as TlsSession;
use crate::transport::poller::{Dispatching, Happened, Key};
use crate::transport::{AfterResponse, ByteStream, ConnectionOwner, OwnEvents, Shutdown, Transport};
use fairlead_system::wake_up;
use h2::Reason;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Waker};

/// Bytes of a file that are read at a time.
const FILE_PIECE: usize = 64 * 1024;

/// See the head of this file.
pub(crate) struct StreamSocket {
    me: Weak<StreamSocket>,
    connection: Arc<Http2Connection>,
    receiving: Mutex<Receiving>,
    sending: Mutex<Sending>,
    watched: Mutex<Watched>,
    /// Wakes a thread that waits for the events in [`Watched::signalled`].
    signal: OnceLock<OwnedFd>,
    /// The request was HEAD, so no response has a body.
    is_head_request: bool,
    /// The app has hijacked the stream.
    is_hijacked: AtomicBool,
}

/// The events that a thread or the poller waits for.
struct Watched {
    key: Option<Key>,
    reads: bool,
    writes: bool,
    /// The end of the stream was reported.
    is_told: bool,
    /// The engine has forgotten the stream.
    has_left: bool,
    /// The events that the signal is for.
    signalled: PollFlags,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched {
            key: None,
            reads: false,
            writes: false,
            is_told: false,
            has_left: false,
            signalled: PollFlags::empty(),
        }
    }
}

/// A context for polls of `h2` that are repeated when the connection has made progress, so that no waker is needed.
pub(super) fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl StreamSocket {
    pub(super) fn new(
        connection: &Arc<Http2Connection>,
        receiving: Receiving,
        sending: Sending,
        is_head_request: bool,
    ) -> Arc<StreamSocket> {
        connection.opened();
        Arc::new_cyclic(|me| StreamSocket {
            me: me.clone(),
            connection: Arc::clone(connection),
            receiving: Mutex::new(receiving),
            sending: Mutex::new(sending),
            watched: Mutex::default(),
            signal: OnceLock::new(),
            is_head_request,
            is_hijacked: AtomicBool::new(false),
        })
    }

    /// Its number in the HTTP/2 connection.
    pub(super) fn id(&self) -> u32 {
        self.sending.lock().id()
    }

    /// Returns the event that the poller waits for, if it has happened. Also wakes a thread that waits.
    pub(super) fn due(&self) -> Option<(Key, Happened)> {
        let mut watched = self.watched.lock();
        let (is_gone, has_room) = self.state();
        let waits_to_read = watched.reads || watched.signalled.contains(PollFlags::IN);
        let has_some = waits_to_read && (is_gone || self.receiving.lock().has_some());
        if let Some(signal) = self.signal.get() {
            let may_read = has_some && watched.signalled.contains(PollFlags::IN);
            let may_write = has_room && watched.signalled.contains(PollFlags::OUT);
            if is_gone || may_read || may_write {
                wake_up::ring(signal);
            }
        }
        let key = watched.key?;
        let happened = Happened {
            readable: watched.reads && has_some || is_gone && !watched.is_told,
            writable: watched.writes && (is_gone || has_room),
            ended: is_gone,
        };
        watched.is_told |= is_gone;
        (happened.readable || happened.writable).then_some((key, happened))
    }

    /// Returns two flags: the stream was reset or the connection has ended; and the stream takes bytes to send.
    fn state(&self) -> (bool, bool) {
        let mut sending = self.sending.lock();
        let is_gone = self.connection.is_over() || sending.is_reset();
        (is_gone, sending.body.is_none() || sending.room(&self.connection, 1) > 0)
    }

    /// True if the engine has forgotten the stream, and no relay of the app uses it.
    fn has_left(&self) -> bool {
        self.watched.lock().has_left && !self.is_hijacked.load(SeqCst)
    }

    /// The reason why nothing was taken: the client has reset the stream or is gone, or there is no room.
    fn why_nothing(&self) -> Errno {
        match self.state() {
            (true, _) => Errno::PIPE,
            _ => Errno::AGAIN,
        }
    }

    /// See [`Receiving::gather`].
    pub(super) fn gather(&self) {
        self.receiving.lock().gather();
    }

    fn reset_with(&self, reason: Reason) {
        let is_new = self.sending.lock().reset(reason);
        if is_new {
            self.connection.push();
        }
    }

    fn end(&self) {
        if self.sending.lock().end() {
            self.connection.push_soon();
        }
    }
}

impl Drop for StreamSocket {
    fn drop(&mut self) {
        if self.receiving.get_mut().has_body() {
            self.connection.received(self.sending.get_mut().id());
        }
        self.connection.left(self.is_hijacked.load(SeqCst));
    }
}

impl std::fmt::Debug for StreamSocket {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StreamSocket").finish_non_exhaustive()
    }
}

/// The descriptor of the connection, which many streams share. [`Transport::signal`] returns one for this stream alone.
impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.transport().as_fd()
    }
}

impl ByteStream for StreamSocket {
    fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        let received = self.receiving.lock().take_into(space);
        self.connection.push_if_due();
        match received {
            Err(Errno::AGAIN) if self.state().0 => Err(Errno::CONNRESET),
            received => received,
        }
    }

    fn has_received(&self) -> io::Result<bool> {
        let (is_gone, _) = self.state();
        if is_gone {
            return Err(Errno::CONNRESET);
        }
        self.receiving.lock().look()
    }

    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        if self.connection.is_over() {
            return Err(Errno::PIPE);
        }
        let mut sending = self.sending.lock();
        let mut taken = 0;
        if sending.body.is_none() {
            taken = sending.take_heads(bytes, self.is_head_request)?;
        }
        if taken < bytes.len() && sending.body.is_some() {
            taken += sending.take_body(&bytes[taken..], &self.connection)?;
        }
        if taken == 0 && sending.is_reset() {
            return Err(Errno::PIPE);
        }
        let has_ended = sending.has_ended;
        // More bytes follow at once, but there is room for them only when these have been sent.
        let is_full = more && sending.body.is_some() && sending.room(&self.connection, 1) == 0;
        drop(sending);
        if has_ended {
            self.connection.push_soon();
        } else if !more || taken < bytes.len() || is_full {
            self.connection.push();
        }
        match taken {
            0 if !bytes.is_empty() => Err(self.why_nothing()),
            _ => Ok(taken),
        }
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut sent = 0;
        for piece in pieces {
            match self.send(piece, false) {
                Ok(count) => {
                    sent += count;
                    if count < piece.len() {
                        break;
                    }
                }
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize> {
        let room = self.sending.lock().room_now(&self.connection, length.min(FILE_PIECE));
        if room == 0 {
            return Err(self.why_nothing());
        }
        let mut piece = vec![0; room];
        let count = file.read_at(&mut piece, *offset).map_err(|_| Errno::IO)?;
        if count == 0 {
            return Ok(0);
        }
        let sent = self.send(&piece[..count], false)?;
        *offset += sent as u64;
        Ok(sent)
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        if how == Shutdown::Read {
            return Ok(());
        }
        if self.sending.lock().is_given_away {
            self.end();
        }
        if how == Shutdown::Both {
            self.reset_with(Reason::INTERNAL_ERROR);
            self.connection.unwatch(self.id());
        }
        Ok(())
    }

    fn cut(&self) {
        self.reset_with(Reason::INTERNAL_ERROR);
    }

    fn reset(&self) {
        self.reset_with(Reason::CANCEL);
    }
}

impl Transport for StreamSocket {
    fn as_plain(&self) -> Option<&OwnedFd> {
        None
    }

    fn can_move(&self) -> bool {
        false
    }

    fn session(&self) -> Option<&Arc<TlsSession>> {
        self.connection.transport().session()
    }

    fn own_events(&self) -> Option<&dyn OwnEvents> {
        Some(self)
    }

    fn signal(&self, wanted: PollFlags) -> (BorrowedFd<'_>, PollFlags) {
        let signal = match self.signal.get() {
            Some(signal) => Some(signal),
            None => match wake_up::open() {
                Ok(signal) => Some(self.signal.get_or_init(|| signal)),
                Err(_) => None,
            },
        };
        let Some(signal) = signal else {
            return (self.as_fd(), wanted);
        };
        self.watched.lock().signalled = wanted;
        wake_up::take(signal);
        if let Some(me) = self.me.upgrade() {
            self.connection.watch(me);
        }
        // The body sender may not know yet that the response is over: nobody would unwatch the stream.
        if self.has_left() {
            self.connection.unwatch(self.id());
        }
        // The event may have happened before it was watched.
        let _ = self.due();
        (signal.as_fd(), PollFlags::IN)
    }

    fn owner(&self) -> Option<&dyn ConnectionOwner> {
        Some(self)
    }
}

impl ConnectionOwner for StreamSocket {
    fn give_back(&self, next: AfterResponse) {
        match next {
            AfterResponse::GivenAway => self.sending.lock().is_given_away = true,
            AfterResponse::NextRequest | AfterResponse::Close => self.end(),
        }
    }

    /// RFC 9113 §8.7.
    fn decline(&self) -> bool {
        self.reset_with(Reason::REFUSED_STREAM);
        true
    }

    fn hijacked(&self) {
        if !self.is_hijacked.swap(true, SeqCst) {
            self.connection.hijacked();
        }
    }

    fn budget(&self) -> Option<&Arc<Budget>> {
        Some(self.connection.budget())
    }
}

impl OwnEvents for StreamSocket {
    fn watch(&self, key: Key, reads: bool, writes: bool) {
        let mut watched = self.watched.lock();
        (watched.key, watched.reads, watched.writes) = (Some(key), reads, writes);
        drop(watched);
        if let Some(me) = self.me.upgrade() {
            self.connection.watch(me);
        }
        if !Dispatching::is_here() || reads || writes {
            self.connection.look_later();
        }
    }

    fn unwatch(&self) {
        let mut watched = self.watched.lock();
        let was_watched = watched.key.take().is_some();
        (watched.is_told, watched.has_left) = (false, true);
        drop(watched);
        let signal = self.signal.get();
        if was_watched || signal.is_some() {
            self.connection.unwatch(self.id());
        }
        // A concurrent poller checks again.
        if let Some(signal) = signal {
            wake_up::ring(signal);
        }
    }
}
