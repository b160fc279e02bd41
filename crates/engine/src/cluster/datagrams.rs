//! Queue of datagrams that the kernel keeps for all processes that have inherited it, so that it outlives each of them.

use rustix::fd::OwnedFd;
use rustix::io;
use rustix::net::{socketpair, sockopt, AddressFamily, SocketFlags, SocketType};

/// Buffer size requested from the kernel; the kernel may provide less.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;

/// Returns the two ends of a new queue: for senders and for receivers.
pub(crate) fn queue() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (sender, receiver) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    if sockopt::set_socket_send_buffer_size_force(&sender, QUEUE_BYTES).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(&sender, QUEUE_BYTES);
    }
    Ok((sender, receiver))
}
