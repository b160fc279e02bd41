//! Transport in memory, for tests. It carries at most a given number of bytes at a time, and fails at a given point.
//! Its descriptor is readable while there is something to receive, and always writable.

use super::{ByteStream, Shutdown, Transport};
use crate::sync::{Condvar, Mutex};
use fairlead_system::wake_up;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

/// Limits of a transport in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// Most bytes that are received at a time.
    pub(crate) receives: usize,
    /// Most bytes that are sent at a time. Then it is full until the next attempt.
    pub(crate) sends: usize,
    /// Bytes that are received before it fails.
    pub(crate) receives_in_all: usize,
    /// Bytes that are sent before it fails.
    pub(crate) sends_in_all: usize,
}

impl Default for Manners {
    fn default() -> Manners {
        Manners {
            receives: usize::MAX,
            sends: usize::MAX,
            receives_in_all: usize::MAX,
            sends_in_all: usize::MAX,
        }
    }
}

/// End of the engine.
#[derive(Debug)]
pub(crate) struct MemoryTransport {
    manners: Manners,
    shared: Arc<Wire>,
}

/// End of the client. Dropping it ends the engine's input.
#[derive(Debug)]
pub(crate) struct Peer {
    shared: Arc<Wire>,
    patience: Duration,
}

#[derive(Debug)]
struct Wire {
    state: Mutex<MemoryState>,
    changed: Condvar,
    /// Its counter is above 0 while there is something to receive.
    readable: OwnedFd,
}

#[derive(Debug, Default)]
struct MemoryState {
    to_engine: VecDeque<u8>,
    to_peer: VecDeque<u8>,
    /// True if the peer, or the engine, sends no more.
    peer_has_ended: bool,
    engine_has_ended: bool,
    was_reset: bool,
    received: usize,
    sent: usize,
    /// True if the next attempt to send fails because the transport is full.
    is_full: bool,
}

/// Both ends. The client's end waits at most `patience`.
pub(crate) fn pair(manners: Manners, patience: Duration) -> (MemoryTransport, Peer) {
    let readable = wake_up::open().expect("a descriptor");
    let shared = Arc::new(Wire {
        state: Mutex::default(),
        changed: Condvar::new(),
        readable,
    });
    let transport = MemoryTransport {
        manners,
        shared: Arc::clone(&shared),
    };
    (transport, Peer { shared, patience })
}

impl Wire {
    fn set_readable(&self) {
        wake_up::ring(&self.readable);
    }
}

impl AsFd for MemoryTransport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.readable.as_fd()
    }
}

impl ByteStream for MemoryTransport {
    fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.state.lock();
        if state.was_reset || state.received >= self.manners.receives_in_all {
            return Err(Errno::CONNRESET);
        }
        if state.to_engine.is_empty() {
            return if state.peer_has_ended { Ok(0) } else { Err(Errno::AGAIN) };
        }
        let most = self.manners.receives.min(self.manners.receives_in_all - state.received);
        let count = space.len().min(most).min(state.to_engine.len());
        for (place, byte) in space.iter_mut().zip(state.to_engine.drain(..count)) {
            *place = byte;
        }
        state.received += count;
        let fails_next = state.received >= self.manners.receives_in_all;
        if state.to_engine.is_empty() && !state.peer_has_ended && !fails_next {
            wake_up::take(&self.shared.readable);
        }
        Ok(count)
    }

    fn has_received(&self) -> io::Result<bool> {
        let state = self.shared.state.lock();
        match (state.to_engine.is_empty(), state.peer_has_ended) {
            (false, _) => Ok(true),
            (true, true) => Ok(false),
            (true, false) => Err(Errno::AGAIN),
        }
    }

    fn send(&self, bytes: &[u8], _more: bool) -> io::Result<usize> {
        let mut state = self.shared.state.lock();
        if state.engine_has_ended || state.was_reset || state.sent >= self.manners.sends_in_all {
            return Err(Errno::PIPE);
        }
        if std::mem::take(&mut state.is_full) {
            return Err(Errno::AGAIN);
        }
        let most = self.manners.sends.min(self.manners.sends_in_all - state.sent);
        let count = bytes.len().min(most);
        state.to_peer.extend(&bytes[..count]);
        state.sent += count;
        state.is_full = count < bytes.len();
        self.shared.changed.notify_all();
        Ok(count)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let first = pieces.iter().find(|piece| !piece.is_empty());
        first.map_or(Ok(0), |piece| self.send(piece, false))
    }

    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize> {
        let mut bytes = vec![0; length.min(64 * 1024)];
        let read = file.read_at(&mut bytes, *offset).map_err(|_| Errno::IO)?;
        if read == 0 {
            return Ok(0);
        }
        let sent = self.send(&bytes[..read], false)?;
        *offset += sent as u64;
        Ok(sent)
    }

    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        state.engine_has_ended |= how != Shutdown::Read;
        state.peer_has_ended |= how != Shutdown::Write;
        self.shared.changed.notify_all();
        Ok(())
    }

    fn reset(&self) {
        let mut state = self.shared.state.lock();
        state.was_reset = true;
        self.shared.changed.notify_all();
    }
}

impl Transport for MemoryTransport {
    fn as_plain(&self) -> Option<&OwnedFd> {
        None
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        let _ = self.shut_down(Shutdown::Both);
    }
}

impl Peer {
    /// Ends the engine's input.
    pub(crate) fn shut_down(&self) {
        self.shared.state.lock().peer_has_ended = true;
        self.shared.set_readable();
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.shared.state.lock();
        state.to_engine.extend(bytes);
        drop(state);
        self.shared.set_readable();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Read for Peer {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let mut state = self.shared.state.lock();
        while state.to_peer.is_empty() && !state.engine_has_ended && !state.was_reset {
            if self.shared.changed.wait_for(&mut state, self.patience) {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
        }
        if state.was_reset {
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        let count = space.len().min(state.to_peer.len());
        for (place, byte) in space.iter_mut().zip(state.to_peer.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shut_down();
    }
}
