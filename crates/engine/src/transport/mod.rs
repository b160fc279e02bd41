//! Sockets, and what the kernel says of them: the poll set, the time-outs that a poll waits for, and listening sockets.

pub(crate) mod listener;
pub(crate) mod poller;
pub(crate) mod timer;

use rustix::fd::OwnedFd;
use rustix::fs::sendfile;
use rustix::io::{self, Errno};
use rustix::net::{self, send, SendFlags};
use std::fs::File;

/// How long the rest of what a peer says is read and thrown away after the last word to it, so that no reset overtakes that.
pub(crate) const LINGER_MILLISECONDS: u64 = 2_000;

/// Says in both directions that nothing follows, whoever else has the socket: a thread of the app that still waits for the peer
/// learns of it, too.
pub(crate) fn shut_down(socket: &OwnedFd) {
    let _ = net::shutdown(socket, net::Shutdown::Both);
}

/// Ends a connection so that its peer sees a reset (RFC 9293 §3.10.7.4) and the kernel keeps nothing for it, whoever else has
/// the socket. What has no reset, such as a Unix socket, is shut down.
pub(crate) fn reset(socket: &OwnedFd) {
    if net::connect_unspec(socket).is_err() {
        shut_down(socket);
    }
}

/// Sends at most `most` bytes of a file up to `end`; returns how many, and whether the socket took fewer than it was offered.
pub(crate) fn send_file(
    socket: &OwnedFd,
    file: &File,
    offset: &mut u64,
    end: u64,
    most: u64,
) -> io::Result<(u64, bool)> {
    let wanted = (end - *offset).min(most);
    let mut taken = 0;
    while taken < wanted {
        match sendfile(socket, file, Some(offset), (wanted - taken) as usize) {
            // The file has become shorter than its announced length: nothing honest can follow.
            Ok(0) => return Err(Errno::PIPE),
            Ok(count) => taken += count as u64,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((taken, taken < wanted))
}

/// Writes until the socket is full; returns how many bytes it has taken.
pub(crate) fn write_some(socket: &OwnedFd, bytes: &[u8], more: bool) -> io::Result<usize> {
    let flags = if more {
        SendFlags::NOSIGNAL | SendFlags::MORE
    } else {
        SendFlags::NOSIGNAL
    };
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket, &bytes[sent..], flags) {
            Ok(taken) if taken == bytes.len() - sent => return Ok(bytes.len()),
            Ok(taken) => sent += taken,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
