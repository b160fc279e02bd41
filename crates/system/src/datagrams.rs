//! Queue of datagrams that the kernel keeps for all processes that have inherited it, so that it outlives each of them.
//!
//! Linux: a socket pair of type SEQPACKET. Elsewhere: of type DGRAM, which keeps boundaries and descriptors, too.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Result;
use rustix::net::{sockopt, SocketType};

/// Buffer size requested from the kernel; the kernel may provide less.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;

const KIND: SocketType = match cfg!(native_linux) {
    true => SocketType::SEQPACKET,
    false => SocketType::DGRAM,
};

/// Returns the two ends of a new queue: for senders and for receivers.
///
/// # Errors
/// If descriptors are short.
pub fn queue() -> Result<(OwnedFd, OwnedFd)> {
    let (sender, receiver) = crate::sockets::pair(KIND, false)?;
    #[cfg(native_linux)]
    if sockopt::set_socket_send_buffer_size_force(&sender, QUEUE_BYTES).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(&sender, QUEUE_BYTES);
    }
    // The sender's buffer limits a datagram, and the receiver's buffer holds them all. The system may refuse a large size.
    #[cfg(not(native_linux))]
    for shift in 0..6 {
        let bytes = QUEUE_BYTES >> shift;
        let sends = sockopt::set_socket_send_buffer_size(&sender, bytes);
        if sends
            .and_then(|()| sockopt::set_socket_recv_buffer_size(&receiver, bytes))
            .is_ok()
        {
            break;
        }
    }
    Ok((sender, receiver))
}

/// The memory of the datagrams that were sent through this end and not yet received, in bytes. `None` where the system does not
/// tell.
pub fn under_way(sender: impl AsFd) -> Option<usize> {
    #[cfg(native_linux)]
    {
        use rustix::ioctl::{ioctl, Getter, Opcode};
        /// TIOCOUTQ.
        const UNSENT: Opcode = 0x5411;
        // SAFETY: this request stores an int, and nothing else.
        let bytes: Result<i32> = unsafe { ioctl(sender, Getter::<UNSENT, i32>::new()) };
        bytes.ok().and_then(|bytes| usize::try_from(bytes).ok())
    }
    #[cfg(not(native_linux))]
    {
        let _ = sender;
        None
    }
}

#[cfg(all(test, native_linux))]
mod tests {
    use super::*;
    use rustix::net::{recv, send, RecvFlags, SendFlags};

    #[test]
    fn a_queue_tells_how_much_is_under_way() {
        let (sender, receiver) = queue().expect("a queue");
        assert_eq!(under_way(&sender), Some(0));
        for _ in 0..3 {
            send(&sender, b"datagram", SendFlags::empty()).expect("room");
        }
        let three = under_way(&sender).expect("a count");
        assert!(three >= 3 * 256, "{three}");
        for _ in 0..3 {
            let _ = recv(&receiver, &mut [0; 8], RecvFlags::empty()).expect("a datagram");
        }
        assert_eq!(under_way(&sender), Some(0));
    }
}
