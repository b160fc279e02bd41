//! TLS on a socket. Received bytes are decrypted at once, and sent bytes are encrypted at once; so the rest of the
//! engine sees a transport like any other. Two things differ, and the trait has a method for each: there may be
//! something to receive although the socket has nothing ([`ByteStream::holds_received`]), and taken bytes may not be in
//! the kernel yet ([`ByteStream::send_rest`]).
//!
//! * `handshake.rs`: the handshake.
//! * `protection.rs`: encrypts and decrypts the records.
//! * `leaving.rs`: takes a connection out of rustls, for another process; `quiet.rs` helps with it.
//! * `moving.rs`: a connection leaves this process, or comes from another one.
//! * `wire.rs`: the socket, for libraries.

mod handshake;
mod leaving;
mod moving;
mod protection;
mod quiet;
mod wire;

use super::byte_stream::ByteStream;
use super::handshake::{Handshake, HandshakeError};
use super::link::{Export, Transport};
use super::socket::Socket;
use super::READ_TURN;
use crate::sync::Mutex;
use crate::tls::{Session, Tls, TrafficSecrets};
use fairlead_tls_record::{frame, Frame};
use protection::Protection;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::Shutdown;
use rustls::server::Acceptor;
use std::cell::RefCell;
use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use wire::{errno, Wire};

/// Most bytes that are encrypted before the socket is offered them: each connection may hold this many.
const BATCH_BYTES: usize = 64 * 1024;

/// Bytes received at a time: two records of the greatest length, and a little more.
const CIPHERTEXT_BYTES: usize = 40 * 1024;

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
    /// True while the connection may belong to another process: see [`Transport::export`].
    is_exported: AtomicBool,
    /// See [`ByteStream::holds_received`].
    holds_received: AtomicBool,
    /// See [`ByteStream::carried`].
    carried: AtomicU64,
}

struct Channel {
    stage: Stage,
    /// Received, and not decrypted yet: an incomplete record, or the receiver had no space left.
    ahead: Vec<u8>,
    /// For another process; empty with TLS 1.2.
    secrets: TrafficSecrets,
    /// True if the peer was sent close_notify.
    is_closed: bool,
}

enum Stage {
    /// Waits for the peer's first message, which decides the offer to it.
    Hello(Box<Acceptor>),
    /// The handshake continues, or is over.
    Open(Protection),
    /// The handshake failed, or the peer has violated the protocol later.
    Failed,
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
                secrets: TrafficSecrets::default(),
                is_closed: false,
            }),
            has_begun: AtomicBool::new(false),
            is_exported: AtomicBool::new(false),
            holds_received: AtomicBool::new(false),
            carried: AtomicU64::new(0),
        }
    }

    fn wire(&self, more: bool) -> Wire<'_> {
        Wire {
            socket: &self.socket,
            more,
            carried: &self.carried,
        }
    }

    /// Fails while the connection may belong to another process.
    fn check_ownership(&self) -> io::Result<()> {
        match self.is_exported.load(Relaxed) {
            false => Ok(()),
            true => Err(Errno::AGAIN),
        }
    }

    fn note_rest(&self, protection: &mut Protection, ahead: &[u8]) {
        let is_readable = frame(ahead) != Frame::Partial || protection.is_readable();
        self.holds_received.store(is_readable, Relaxed);
    }

    /// Decrypts as [`Protection::decrypt`]. A peer that has violated the protocol is told.
    fn decrypt(
        &self,
        protection: &mut Protection,
        bytes: &mut [u8],
        space: &mut [u8],
        filled: &mut usize,
    ) -> io::Result<usize> {
        let left = protection.decrypt(bytes, space, filled);
        if left.is_err() {
            let _ = protection.flush(&mut self.wire(false));
        }
        left
    }

    fn receive_into(&self, protection: &mut Protection, ahead: &mut Vec<u8>, space: &mut [u8]) -> io::Result<usize> {
        let mut filled = protection.take_data(space);
        if !ahead.is_empty() {
            let left = self.decrypt(protection, ahead, space, &mut filled)?;
            ahead.drain(..ahead.len() - left);
        }
        let received = SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(scratch.len().max(CIPHERTEXT_BYTES), 0);
            while filled < space.len() && !protection.has_ended() {
                // The beginning of a record is ahead.
                let begun = ahead.len();
                let count = match self.socket.receive(&mut scratch[begun..CIPHERTEXT_BYTES]) {
                    Ok(0) => return Ok(filled),
                    Ok(count) => begun + count,
                    Err(Errno::INTR) => continue,
                    Err(_) if filled > 0 => return Ok(filled),
                    Err(error) => return Err(error),
                };
                scratch[..begun].copy_from_slice(ahead);
                ahead.clear();
                let left = self.decrypt(protection, &mut scratch[..count], space, &mut filled)?;
                ahead.extend_from_slice(&scratch[count - left..count]);
                if filled > 0 && count < CIPHERTEXT_BYTES {
                    break;
                }
            }
            Ok(filled)
        });
        if ahead.is_empty() {
            *ahead = Vec::new();
        }
        received
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

    /// Encrypts the pieces, as long as the kernel takes them; returns the number of taken bytes.
    fn send_batch(&self, pieces: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        let mut channel = self.channel.lock();
        self.check_ownership()?;
        let Stage::Open(protection) = &mut channel.stage else {
            return Err(Errno::NOTCONN);
        };
        protection.flush(&mut self.wire(false))?;
        let taken = protection.write(pieces)?;
        match protection.flush(&mut self.wire(more)) {
            Ok(()) | Err(Errno::AGAIN) => Ok(taken),
            Err(error) => Err(error),
        }
    }
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
        self.check_ownership()?;
        let Channel { stage, ahead, .. } = &mut *channel;
        let protection = match stage {
            Stage::Open(protection) => protection,
            Stage::Hello(_) => return Err(Errno::NOTCONN),
            Stage::Failed => return self.discard(space),
        };
        let received = self.receive_into(protection, ahead, space);
        if received == Err(Errno::PROTO) {
            *stage = Stage::Failed;
            self.holds_received.store(false, Relaxed);
            return received;
        }
        // A response to received bytes (RFC 8446 §4.6.3), or the rest of the sent bytes.
        let _ = protection.flush(&mut self.wire(false));
        self.note_rest(protection, ahead);
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
        self.send_batch(&[IoSlice::new(&bytes[..bytes.len().min(BATCH_BYTES)])], more)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes = 0;
        let fits = |piece: &&IoSlice<'_>| {
            bytes += piece.len();
            bytes <= BATCH_BYTES
        };
        match pieces.iter().take_while(fits).count() {
            0 => self.send(pieces.first().map_or(&[], |piece| piece), true),
            count => self.send_batch(&pieces[..count], count < pieces.len()),
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
        let mut channel = self.channel.lock();
        match &mut channel.stage {
            Stage::Open(protection) if self.check_ownership().is_ok() => protection.flush(&mut self.wire(false)),
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
        self.check_ownership()?;
        let Channel { stage, is_closed, .. } = &mut *channel;
        if let (Stage::Open(protection), Shutdown::Write | Shutdown::Both) = (stage, how) {
            // A truncated response gets no clean end.
            if !std::mem::replace(is_closed, true) && !protection.wants_flush() {
                protection.close();
                let _ = protection.flush(&mut self.wire(false));
            }
        }
        self.socket.shut_down(how)
    }

    fn cut(&self) {
        if self.check_ownership().is_ok() {
            let _ = self.socket.shut_down(Shutdown::Both);
        }
    }

    fn reset(&self) {
        if self.check_ownership().is_ok() {
            self.socket.reset();
        }
    }
}

impl Transport for TlsSocket {
    fn awaits_handshake(&self) -> bool {
        self.session.get().is_none()
    }

    fn handshake(&self) -> Result<Handshake, HandshakeError> {
        self.go_on_with_handshake()
    }

    fn as_plain(&self) -> Option<&OwnedFd> {
        let has_begun = self.has_begun.load(Relaxed);
        self.socket.as_plain().filter(|_| !has_begun)
    }

    fn can_move(&self) -> bool {
        !self.has_begun.load(Relaxed) || self.can_leave()
    }

    fn can_export(&self) -> bool {
        self.can_leave()
    }

    fn export(&self) -> Option<Export<'_>> {
        let socket = self.socket.as_plain()?;
        let tls = match self.as_plain() {
            Some(_) => None,
            None => Some(self.export_state()?),
        };
        Some(Export { socket, tls })
    }

    fn stay(&self) {
        self.is_exported.store(false, Relaxed);
    }

    fn session(&self) -> Option<&Arc<Session>> {
        self.session.get()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
