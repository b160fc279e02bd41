//! The socket below TLS, for libraries that read and write.

use super::super::byte_stream::ByteStream;
use super::super::socket::Socket;
use rustix::io::Errno;
use std::io::{IoSlice, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the head of this file.
pub(super) struct Wire<'a> {
    pub(super) socket: &'a Socket,
    /// True if further bytes follow at once.
    pub(super) more: bool,
    /// Counts the bytes that the kernel takes.
    pub(super) carried: &'a AtomicU64,
}

impl Wire<'_> {
    fn count(&self, taken: usize) -> usize {
        self.carried.fetch_add(taken as u64, Relaxed);
        taken
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.count(self.socket.send(bytes, self.more)?))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> std::io::Result<usize> {
        match pieces {
            [piece] => self.write(piece),
            _ => Ok(self.count(self.socket.send_pieces(pieces)?)),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the number of an error. Errors of rustls have none and get the number of a violated protocol.
pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PROTO)
}
