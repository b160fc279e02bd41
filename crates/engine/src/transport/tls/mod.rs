//! TLS on a socket. Received bytes are decrypted at once, and sent bytes are encrypted at once; so the rest of the
//! engine sees a transport like any other. Two things differ, and the trait has a method for each: there may be
//! something to receive although the socket has nothing ([`ByteStream::holds_received`]), and taken bytes may not be in
//! the kernel yet ([`ByteStream::send_rest`]).

use super::byte_stream::ByteStream;
use super::handshake::{Handshake, HandshakeError};
use super::link::Transport;
use super::poller::Interest;
use super::socket::Socket;
use super::READ_TURN;
use crate::sync::Mutex;
use crate::tls::{Session, Tls, CHALLENGE_PROTOCOL};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::Shutdown;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::ServerConnection;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Most bytes that are encrypted before the socket is offered them: each connection may hold this many.
const BATCH_BYTES: usize = 64 * 1024;

/// Bytes received at a time: two records of the greatest length, and a little more.
const CIPHERTEXT_BYTES: usize = 40 * 1024;

/// Most reads of the socket for a handshake in one turn.
const HANDSHAKE_READS: usize = 16;

/// A fatal alert (RFC 8446 §6.2): a handshake does not begin with the first message.
const UNEXPECTED_MESSAGE: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];

/// First byte of a handshake (RFC 8446 §5.1).
const HANDSHAKE_RECORD: u8 = 22;

thread_local! {
    /// Space for received bytes, or bytes read from a file.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// See the head of this file.
pub(crate) struct TlsSocket {
    socket: Socket,
    tls: Arc<Tls>,
    session: OnceLock<Arc<Session>>,
    channel: Mutex<Channel>,
    /// True if anything was received.
    has_begun: AtomicBool,
    /// See [`ByteStream::holds_received`].
    holds_received: AtomicBool,
    /// See [`ByteStream::carried`].
    carried: AtomicU64,
}

struct Channel {
    stage: Stage,
    /// Received, and not decrypted yet, because the receiver had no space left.
    ahead: Vec<u8>,
    /// True if the peer was sent close_notify.
    is_closed: bool,
}

enum Stage {
    /// Waits for the peer's first message, which decides the offer to it.
    Hello(Box<Acceptor>),
    /// The handshake continues, or is over.
    Open(Box<ServerConnection>),
    /// The handshake failed, or the peer has violated the protocol later.
    Failed,
}

/// The socket, for rustls.
struct Wire<'a> {
    socket: &'a Socket,
    /// True if further bytes follow at once.
    more: bool,
}

impl Read for Wire<'_> {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        Ok(self.socket.receive(space)?)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.socket.send(bytes, self.more)?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> std::io::Result<usize> {
        match pieces {
            [piece] => self.write(piece),
            _ => Ok(self.socket.send_pieces(pieces)?),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the number of an error. Errors of rustls have none and get the number of a violated protocol.
fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PROTO)
}

impl TlsSocket {
    /// Makes a socket and expects the peer to begin a handshake.
    pub(crate) fn new(socket: Socket, tls: Arc<Tls>) -> TlsSocket {
        TlsSocket {
            socket,
            tls,
            session: OnceLock::new(),
            channel: Mutex::new(Channel {
                stage: Stage::Hello(Box::default()),
                ahead: Vec::new(),
                is_closed: false,
            }),
            has_begun: AtomicBool::new(false),
            holds_received: AtomicBool::new(false),
            carried: AtomicU64::new(0),
        }
    }

    /// Checks that the peer's first byte looks like TLS.
    fn look_at_first_byte(&self) -> Result<(), HandshakeError> {
        match self.socket.peek()? {
            None => Err(HandshakeError::Gone),
            Some(HANDSHAKE_RECORD) => {
                self.has_begun.store(true, Relaxed);
                Ok(())
            }
            Some(b'A'..=b'Z') => Err(HandshakeError::PlainHttp),
            Some(_) => Err(HandshakeError::NoTls),
        }
    }

    fn hear_hello(&self, acceptor: &mut Acceptor) -> Result<Option<Box<ServerConnection>>, HandshakeError> {
        for _ in 0..HANDSHAKE_READS {
            match acceptor.accept() {
                Ok(Some(accepted)) => return self.answer_hello(accepted).map(Some),
                Ok(None) => {}
                Err((error, alert)) => return Err(self.refuse_hello(error, alert)),
            }
            match acceptor.read_tls(&mut self.wire()) {
                Ok(0) => return Err(HandshakeError::Gone),
                Ok(_) => {}
                Err(error) if errno(&error) == Errno::AGAIN => return Ok(None),
                Err(error) => return Err(errno(&error).into()),
            }
        }
        Ok(None)
    }

    fn answer_hello(&self, accepted: Accepted) -> Result<Box<ServerConnection>, HandshakeError> {
        let config = self.tls.config_for(&accepted.client_hello());
        match accepted.into_connection(config) {
            Ok(mut connection) => {
                connection.set_buffer_limit(None);
                Ok(Box::new(connection))
            }
            Err((error, alert)) => {
                let error = self.refuse_hello(error, alert);
                Err(match self.tls.has_certificate() {
                    true => error,
                    false => HandshakeError::NoCertificate,
                })
            }
        }
    }

    /// Tells the peer why there is no handshake. rustls has no alert as long as it knows nothing of the peer.
    fn refuse_hello(&self, error: rustls::Error, mut alert: AcceptedAlert) -> HandshakeError {
        let mut bytes = Vec::new();
        if alert.write_all(&mut bytes).is_err() || bytes.is_empty() {
            bytes = UNEXPECTED_MESSAGE.to_vec();
        }
        let _ = self.socket.send(&bytes, false);
        error.into()
    }

    fn shake_hands(&self, connection: &mut ServerConnection) -> Result<Handshake, HandshakeError> {
        for _ in 0..HANDSHAKE_READS {
            // The first time, these packets have come together with the first message.
            if let Err(error) = connection.process_new_packets() {
                let _ = self.send_ciphertext(connection, false);
                return Err(error.into());
            }
            match self.send_ciphertext(connection, false) {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Ok(Handshake::Waits(Interest::Write)),
                Err(error) => return Err(error.into()),
            }
            if !connection.is_handshaking() {
                self.tls.check_resumed(connection)?;
                self.note_rest(connection, false);
                return Ok(Handshake::Done);
            }
            match connection.read_tls(&mut self.wire()) {
                Ok(0) => return Err(HandshakeError::Gone),
                Ok(_) => {}
                Err(error) if errno(&error) == Errno::AGAIN => return Ok(Handshake::Waits(Interest::Read)),
                Err(error) => return Err(errno(&error).into()),
            }
        }
        Ok(Handshake::Waits(Interest::Read))
    }

    fn wire(&self) -> Wire<'_> {
        Wire {
            socket: &self.socket,
            more: false,
        }
    }

    /// Gives the encrypted bytes to the kernel; fails with [`Errno::AGAIN`] if it does not take all of them.
    fn send_ciphertext(&self, connection: &mut ServerConnection, more: bool) -> io::Result<()> {
        let mut wire = Wire {
            socket: &self.socket,
            more,
        };
        while connection.wants_write() {
            match connection.write_tls(&mut wire).map_err(|error| errno(&error)) {
                Ok(count) => _ = self.carried.fetch_add(count as u64, Relaxed),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Decrypts `bytes` into `space`, from `filled` on, as far as it has room; returns the number of bytes left.
    fn decrypt(
        &self,
        connection: &mut ServerConnection,
        mut bytes: &[u8],
        space: &mut [u8],
        filled: &mut usize,
    ) -> io::Result<usize> {
        while !bytes.is_empty() && *filled < space.len() {
            if connection.read_tls(&mut bytes).map_err(|error| errno(&error))? == 0 {
                // Bytes after the peer's close_notify are ignored (RFC 8446 §6.1).
                return Ok(0);
            }
            if connection.process_new_packets().is_err() {
                // Sends the peer the alert.
                let _ = self.send_ciphertext(connection, false);
                return Err(Errno::PROTO);
            }
            *filled += take_plaintext(connection, &mut space[*filled..]);
        }
        Ok(bytes.len())
    }

    fn note_rest(&self, connection: &mut ServerConnection, has_more: bool) {
        let is_readable = has_more || connection.reader().fill_buf().is_ok();
        self.holds_received.store(is_readable, Relaxed);
    }

    fn receive_into(
        &self,
        connection: &mut ServerConnection,
        ahead: &mut Vec<u8>,
        space: &mut [u8],
    ) -> io::Result<usize> {
        let mut filled = take_plaintext(connection, space);
        let early = std::mem::take(ahead);
        let left = self.decrypt(connection, &early, space, &mut filled)?;
        *ahead = early[early.len() - left..].to_vec();
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(CIPHERTEXT_BYTES, 0);
            while filled < space.len() && ahead.is_empty() && !has_ended(connection) {
                let count = match self.socket.receive(scratch) {
                    Ok(0) => {
                        let _ = connection.read_tls(&mut std::io::empty());
                        return Ok(filled);
                    }
                    Ok(count) => count,
                    Err(Errno::INTR) => continue,
                    Err(_) if filled > 0 => return Ok(filled),
                    Err(error) => return Err(error),
                };
                let left = self.decrypt(connection, &scratch[..count], space, &mut filled)?;
                ahead.extend_from_slice(&scratch[count - left..count]);
                if filled > 0 && count < scratch.len() {
                    break;
                }
            }
            Ok(filled)
        })
    }

    /// Discards further input of a peer that was sent an alert, so that no reset overtakes the alert.
    fn discard(&self, space: &mut [u8]) -> io::Result<usize> {
        for _ in 0..READ_TURN / space.len().max(1) {
            if self.socket.receive(space)? == 0 {
                return Ok(0);
            }
        }
        Err(Errno::AGAIN)
    }

    /// Encrypts the bytes from `write`, as long as the kernel takes them; returns the number of taken bytes.
    fn send_with(
        &self,
        more: bool,
        write: impl FnOnce(&mut ServerConnection) -> std::io::Result<usize>,
    ) -> io::Result<usize> {
        let mut channel = self.channel.lock();
        let Stage::Open(connection) = &mut channel.stage else {
            return Err(Errno::NOTCONN);
        };
        self.send_ciphertext(connection, false)?;
        let taken = write(connection).map_err(|error| errno(&error))?;
        match self.send_ciphertext(connection, more) {
            Ok(()) | Err(Errno::AGAIN) => Ok(taken),
            Err(error) => Err(error),
        }
    }
}

/// True if the peer has sent close_notify, and everything before it was taken.
fn has_ended(connection: &mut ServerConnection) -> bool {
    connection.reader().fill_buf().is_ok_and(<[u8]>::is_empty)
}

/// Moves decrypted bytes to `space`; returns their number.
fn take_plaintext(connection: &mut ServerConnection, space: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < space.len() {
        match connection.reader().read(&mut space[filled..]) {
            Ok(count @ 1..) => filled += count,
            _ => break,
        }
    }
    filled
}

impl std::fmt::Debug for TlsSocket {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TlsSocket")
            .field("socket", &self.socket)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl AsFd for TlsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ByteStream for TlsSocket {
    fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        let mut channel = self.channel.lock();
        let Channel { stage, ahead, .. } = &mut *channel;
        let connection = match stage {
            Stage::Open(connection) => connection,
            Stage::Hello(_) => return Err(Errno::NOTCONN),
            Stage::Failed => return self.discard(space),
        };
        let received = self.receive_into(connection, ahead, space);
        if received == Err(Errno::PROTO) {
            *stage = Stage::Failed;
            self.holds_received.store(false, Relaxed);
            return received;
        }
        // A response to received bytes (RFC 8446 §4.6.3), or the rest of the sent bytes.
        let _ = self.send_ciphertext(connection, false);
        self.note_rest(connection, !ahead.is_empty());
        received
    }

    fn has_received(&self) -> io::Result<bool> {
        if self.holds_received.load(Relaxed) {
            return Ok(true);
        }
        self.socket.has_received()
    }

    fn holds_received(&self) -> bool {
        self.holds_received.load(Relaxed)
    }

    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        self.send_with(more, |connection| {
            connection.writer().write(&bytes[..bytes.len().min(BATCH_BYTES)])
        })
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes = 0;
        let fits = |piece: &&IoSlice<'_>| {
            bytes += piece.len();
            bytes <= BATCH_BYTES
        };
        match pieces.iter().take_while(fits).count() {
            0 => self.send(pieces.first().map_or(&[], |piece| piece), true),
            count => self.send_with(count < pieces.len(), |connection| {
                connection.writer().write_vectored(&pieces[..count])
            }),
        }
    }

    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize> {
        self.send_rest()?;
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(scratch.len().max(BATCH_BYTES), 0);
            let count = file
                .read_at(&mut scratch[..length.min(BATCH_BYTES)], *offset)
                .map_err(|error| errno(&error))?;
            if count == 0 {
                return Ok(0);
            }
            let taken = self.send(&scratch[..count], false)?;
            *offset += taken as u64;
            Ok(taken)
        })
    }

    fn send_rest(&self) -> io::Result<()> {
        match &mut self.channel.lock().stage {
            Stage::Open(connection) => self.send_ciphertext(connection, false),
            _ => Ok(()),
        }
    }

    fn carried(&self) -> Option<u64> {
        Some(self.carried.load(Relaxed))
    }

    fn unacknowledged(&self) -> usize {
        self.socket.unacknowledged()
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        let mut channel = self.channel.lock();
        if let (
            Channel {
                stage: Stage::Open(connection),
                is_closed,
                ..
            },
            Shutdown::Write | Shutdown::Both,
        ) = (&mut *channel, how)
        {
            // A truncated response gets no clean end.
            if !std::mem::replace(is_closed, true) && !connection.wants_write() {
                connection.send_close_notify();
                let _ = self.send_ciphertext(connection, false);
            }
        }
        self.socket.shut_down(how)
    }

    fn cut(&self) {
        let _ = self.socket.shut_down(Shutdown::Both);
    }

    fn reset(&self) {
        self.socket.reset();
    }
}

impl Transport for TlsSocket {
    fn awaits_handshake(&self) -> bool {
        self.session.get().is_none()
    }

    fn handshake(&self) -> Result<Handshake, HandshakeError> {
        let mut channel = self.channel.lock();
        if !self.has_begun.load(Relaxed) {
            match self.look_at_first_byte() {
                Ok(()) => {}
                Err(HandshakeError::Socket(Errno::AGAIN)) => return Ok(Handshake::AwaitsHello),
                Err(error) => {
                    channel.stage = Stage::Failed;
                    return Err(error);
                }
            }
        }
        if let Stage::Hello(acceptor) = &mut channel.stage {
            match self.hear_hello(acceptor) {
                Ok(None) => return Ok(Handshake::AwaitsHello),
                Ok(Some(connection)) => channel.stage = Stage::Open(connection),
                Err(error) => {
                    channel.stage = Stage::Failed;
                    return Err(error);
                }
            }
        }
        let Stage::Open(connection) = &mut channel.stage else {
            return Err(HandshakeError::Gone);
        };
        match self.shake_hands(connection) {
            // The authority has checked the certificate, and nothing follows (RFC 8737 §3).
            Ok(Handshake::Done) if connection.alpn_protocol() == Some(CHALLENGE_PROTOCOL) => {
                connection.send_close_notify();
                let _ = self.send_ciphertext(connection, false);
                channel.stage = Stage::Failed;
                Err(HandshakeError::Gone)
            }
            Ok(Handshake::Done) => {
                self.session.get_or_init(|| Arc::new(Session::of(connection)));
                Ok(Handshake::Done)
            }
            Ok(waits) => Ok(waits),
            Err(error) => {
                channel.stage = Stage::Failed;
                Err(error)
            }
        }
    }

    fn as_plain(&self) -> Option<&OwnedFd> {
        self.socket.as_plain().filter(|_| self.can_move())
    }

    fn can_move(&self) -> bool {
        !self.has_begun.load(Relaxed)
    }

    fn session(&self) -> Option<&Arc<Session>> {
        self.session.get()
    }
}
