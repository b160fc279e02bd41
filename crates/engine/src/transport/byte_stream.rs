//! Moves the bytes of one peer.

use rustix::fd::AsFd;
use rustix::io;
use rustix::net::Shutdown;
use std::fmt::Debug;
use std::fs::File;
use std::io::IoSlice;

/// Moves the bytes of one peer. Nothing here blocks: an operation that is not possible now fails with
/// [`Errno::AGAIN`](io::Errno::AGAIN). The descriptor is for the poller. Several threads may use it at once, but only one
/// may receive.
pub(crate) trait ByteStream: AsFd + Debug + Send + Sync {
    /// Receives input, as far as it fits into `space`; 0 at the end of input. Fails with [`io::Errno::PROTO`] if the peer
    /// has violated the protocol and was sent an alert; leave it the time to read the alert.
    fn receive(&self, space: &mut [u8]) -> io::Result<usize>;

    /// True if input has arrived; does not receive it. False at the end of input.
    fn has_received(&self) -> io::Result<bool>;

    /// True if there is input to receive that the poller does not report.
    fn holds_received(&self) -> bool {
        false
    }

    /// Sends a part of `bytes`; returns its length. `more`: further bytes follow at once. The kernel may have fewer of
    /// them: see [`ByteStream::send_rest`].
    fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize>;

    /// Sends bytes of several pieces, in order; returns their number.
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends some bytes of a file, at most `length` from `offset`, which is advanced; 0 at the end of the file.
    fn send_file(&self, file: &File, offset: &mut u64, length: usize) -> io::Result<usize>;

    /// Gives the kernel the bytes that were taken and are still held here; fails with [`io::Errno::AGAIN`] if it does not
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
}
