//! Send queue of a socket: bytes that the kernel has taken and the peer has not acknowledged. Reading its length takes
//! a system call without a safe form, so the program that uses the engine provides it.

use rustix::fd::BorrowedFd;
use std::sync::OnceLock;

/// Reads the length of a socket's send queue from the kernel, in bytes; 0 if there is none.
pub type SendQueue = fn(BorrowedFd<'_>) -> usize;

static LENGTH: OnceLock<SendQueue> = OnceLock::new();

/// Makes the engine use `length` from now on. Without it every send queue counts as empty.
pub fn measure_send_queues(length: SendQueue) {
    LENGTH.get_or_init(|| length);
}

/// Length of a socket's send queue.
pub(super) fn length(socket: BorrowedFd<'_>) -> usize {
    LENGTH.get().map_or(0, |length| length(socket))
}
