//! The length of a socket's send queue, for the engine.

use rustix::fd::BorrowedFd;
use rustix::ioctl::{ioctl, Getter, Opcode};
use std::ffi::c_int;

/// SIOCOUTQ, see tcp(7) and unix(7).
#[cfg(not(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "powerpc",
    target_arch = "powerpc64"
)))]
const LENGTH: Opcode = 0x5411;
#[cfg(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "powerpc",
    target_arch = "powerpc64"
))]
const LENGTH: Opcode = 0x4004_7473;

pub(crate) fn init() {
    fairlead_engine::measure_send_queues(length);
}

/// 0 if the socket has no send queue.
fn length(socket: BorrowedFd<'_>) -> usize {
    // SAFETY: the request writes one int, and nothing else. Another kind of file refuses it, or writes an int as well.
    let length = unsafe { ioctl(socket, Getter::<LENGTH, c_int>::new()) };
    length.map_or(0, |length| usize::try_from(length).unwrap_or(0))
}
