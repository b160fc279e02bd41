//! Bytes of files: sent to sockets, read from memory only, and given back to the disk.

use rustix::fd::AsFd;
use rustix::io::Result;
use std::fs::File;

/// Sends a part of a file to a socket that does not block; adds the number of sent bytes to `offset`, and returns it. 0: the file
/// ends at `offset`. Linux: sendfile(2). Elsewhere: a read, and a send.
///
/// # Errors
/// As sendfile(2).
pub fn send(socket: impl AsFd, file: &File, offset: &mut u64, length: usize) -> Result<usize> {
    system::send(socket, file, offset, length)
}

/// Numbers of the device and of the file on it.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Reads bytes that the kernel has in memory; may read too few. Only Linux can tell (RWF_NOWAIT).
///
/// # Errors
/// AGAIN if there are none, or the system cannot tell.
pub fn read_in_memory(file: &File, space: &mut [u8]) -> Result<usize> {
    system::read_in_memory(file, space)
}

/// Gives the space of a part of a file back to the disk. Linux only.
///
/// # Errors
/// If the file system or the system cannot do that.
pub fn punch_hole(file: &File, offset: u64, length: u64) -> Result<()> {
    system::punch_hole(file, offset, length)
}

#[cfg(native_linux)]
mod system {
    use super::*;
    use rustix::fs::{fallocate, sendfile, FallocateFlags};
    use rustix::io::{preadv2, ReadWriteFlags};
    use std::io::IoSliceMut;

    pub(super) fn send(socket: impl AsFd, file: &File, offset: &mut u64, length: usize) -> Result<usize> {
        sendfile(socket, file, Some(offset), length)
    }

    pub(super) fn read_in_memory(file: &File, space: &mut [u8]) -> Result<usize> {
        preadv2(file, &mut [IoSliceMut::new(space)], 0, ReadWriteFlags::NOWAIT)
    }

    pub(super) fn punch_hole(file: &File, offset: u64, length: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(file, flags, offset, length)
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::*;
    use crate::sockets::SEND;
    use rustix::io::{pread, retry_on_intr, Errno};

    /// Most bytes of one send.
    const PART: usize = 128 * 1024;

    pub(super) fn send(socket: impl AsFd, file: &File, offset: &mut u64, length: usize) -> Result<usize> {
        let mut space = vec![0; length.min(PART)];
        let count = retry_on_intr(|| pread(file, &mut space, *offset))?;
        if count == 0 {
            return Ok(0);
        }
        let sent = rustix::net::send(socket, &space[..count], SEND)?;
        *offset += sent as u64;
        Ok(sent)
    }

    pub(super) fn read_in_memory(_file: &File, _space: &mut [u8]) -> Result<usize> {
        Err(Errno::AGAIN)
    }

    pub(super) fn punch_hole(_file: &File, _offset: u64, _length: u64) -> Result<()> {
        Err(Errno::OPNOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::pair;
    use rustix::io::Errno;
    use rustix::net::SocketType;
    use std::io::Write;

    #[test]
    fn a_part_of_a_file_is_sent_as_far_as_the_socket_takes_it() {
        let (socket, peer) = pair(SocketType::STREAM, false).expect("sockets");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![7; 1 << 20]).expect("room on the disk");
        let mut offset = (1 << 20) - 3;
        assert_eq!((send(&socket, &file, &mut offset, 100), offset), (Ok(3), 1 << 20));
        assert_eq!(send(&socket, &file, &mut offset, 100), Ok(0));
        assert_eq!(rustix::io::read(&peer, &mut [0; 10]), Ok(3));
        offset = 0;
        let error = loop {
            match send(&socket, &file, &mut offset, 1 << 20) {
                Ok(count) => assert!(count > 0 && offset < 1 << 20),
                Err(error) => break error,
            }
        };
        assert_eq!(error, Errno::AGAIN);
    }
}
