//! Flags of descriptors: Linux sets them when it makes a descriptor. Other systems need a second call, so there a process that is
//! started in between by another thread may inherit the descriptor.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{fcntl_getfd, fcntl_setfd, FdFlags, Result};

/// Closes the descriptor on exec.
///
/// # Errors
/// If it is not open.
pub fn close_on_exec(descriptor: impl AsFd) -> Result<()> {
    let flags = fcntl_getfd(&descriptor)?;
    fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC)
}

/// A pipe, closed on exec: its ends for reading and for writing. `blocks`: a read waits for bytes, and a write for room.
///
/// # Errors
/// If descriptors are short.
pub fn pipe(blocks: bool) -> Result<(OwnedFd, OwnedFd)> {
    #[cfg(native_linux)]
    {
        use rustix::pipe::{pipe_with, PipeFlags};
        let nonblocking = if blocks {
            PipeFlags::empty()
        } else {
            PipeFlags::NONBLOCK
        };
        pipe_with(PipeFlags::CLOEXEC | nonblocking)
    }
    #[cfg(not(native_linux))]
    {
        let (reader, writer) = rustix::pipe::pipe()?;
        for end in [&reader, &writer] {
            close_on_exec(end)?;
            rustix::io::ioctl_fionbio(end, !blocks)?;
        }
        Ok((reader, writer))
    }
}

/// Makes `to` a descriptor of the file of `from`, closed on exec.
///
/// # Errors
/// As dup2(2).
pub fn replace(from: impl AsFd, to: &mut OwnedFd) -> Result<()> {
    #[cfg(native_linux)]
    {
        rustix::io::dup3(from, to, rustix::io::DupFlags::CLOEXEC)
    }
    #[cfg(not(native_linux))]
    {
        rustix::io::dup2(from, to)?;
        close_on_exec(to)
    }
}
