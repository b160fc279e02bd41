//! The length of a socket's send queue, for the engine.

use rustix::fd::BorrowedFd;
#[cfg(not(target_vendor = "apple"))]
use rustix::ioctl::{ioctl, Getter, Opcode};
use std::ffi::c_int;
#[cfg(target_vendor = "apple")]
use std::os::fd::AsRawFd;

/// SIOCOUTQ, see tcp(7) and unix(7).
#[cfg(all(
    target_os = "linux",
    not(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64"
    ))
))]
const LENGTH: Opcode = 0x5411;
#[cfg(all(
    target_os = "linux",
    any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64"
    )
))]
const LENGTH: Opcode = 0x4004_7473;
/// FIONWRITE, of FreeBSD.
#[cfg(target_os = "freebsd")]
const LENGTH: Opcode = 0x4004_6677;

pub(crate) fn init() {
    fairlead_engine::measure_send_queues(length);
}

/// 0 if the socket has no send queue.
#[cfg(not(target_vendor = "apple"))]
fn length(socket: BorrowedFd<'_>) -> usize {
    // SAFETY: the request writes one int, and nothing else. Another kind of file refuses it, or writes an int as well.
    let length = unsafe { ioctl(socket, Getter::<LENGTH, c_int>::new()) };
    length.map_or(0, |length| usize::try_from(length).unwrap_or(0))
}

/// 0 if the socket has no send queue.
#[cfg(target_vendor = "apple")]
fn length(socket: BorrowedFd<'_>) -> usize {
    let (mut length, mut size) = (0 as c_int, size_of::<c_int>() as nix::libc::socklen_t);
    // SAFETY: the option is one int, for which there is room. Another kind of file refuses it.
    let result = unsafe {
        nix::libc::getsockopt(
            socket.as_raw_fd(),
            nix::libc::SOL_SOCKET,
            nix::libc::SO_NWRITE,
            (&raw mut length).cast(),
            &raw mut size,
        )
    };
    if result == 0 {
        usize::try_from(length).unwrap_or(0)
    } else {
        0
    }
}
