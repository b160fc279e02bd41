//! Files of which the kernel has enough in memory, so that a thread that must not wait for a disk may ask about them.
//!
//! Only Linux can tell. Elsewhere nothing is known to be in memory, so other threads do all lookups.

pub use system::{look, memory, mount};

/// The requests to the kernel that are allowed to a thread that must not wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// None.
    Nothing,
    /// Names and status. Opening a file may take any time.
    Names,
    /// Also opening files, and reading data in memory.
    Files,
}

/// The status of a file.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Number of its device.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Seconds and nanoseconds of its last modification.
    pub modified: (i64, u64),
    /// Seconds and nanoseconds of the last change of its status.
    pub changed: (i64, u64),
    /// Its type and its permissions.
    pub mode: u32,
}

#[cfg(native_linux)]
mod system {
    use super::{Memory, Status};
    use rustix::fs::{fstatfs, major, makedev, statx, AtFlags, Statx, StatxFlags};
    use rustix::io::{Errno, Result};
    use std::os::fd::{AsFd, BorrowedFd};

    /// `f_type` of statfs(2) of local file systems.
    const LOCAL: [u64; 12] = [
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683e, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0xf2f5_2010, // f2fs
        0x2fc1_2fc1, // zfs
        0xca45_1a4e, // bcachefs
        0x7371_7368, // squashfs
        0xe0f5_e1e2, // erofs
        0x9660,      // ISO 9660
        0x4d44,      // FAT
    ];

    const OVERLAYFS: u64 = 0x794c_7630;

    /// Without the blocks: overlayfs may access a lower layer to count them.
    const STATUS: StatxFlags = StatxFlags::TYPE
        .union(StatxFlags::MODE)
        .union(StatxFlags::INO)
        .union(StatxFlags::SIZE)
        .union(StatxFlags::MTIME)
        .union(StatxFlags::CTIME);

    /// Requests an id of the mount that no later mount gets (STATX_MNT_ID_UNIQUE, Linux 6.8).
    const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);

    /// Marks the number of a device, which stands for a mount.
    const IS_DEVICE: u64 = 1 << 63;

    impl From<Statx> for Status {
        fn from(status: Statx) -> Status {
            Status {
                device: makedev(status.stx_dev_major, status.stx_dev_minor),
                inode: status.stx_ino,
                size: status.stx_size,
                modified: (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec.into()),
                changed: (status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec.into()),
                mode: status.stx_mode.into(),
            }
        }
    }

    /// The value for files of the same mount. This may take any time.
    pub fn memory(file: BorrowedFd<'_>) -> Memory {
        match fstatfs(file).map(|system| system.f_type as u64 & 0xffff_ffff) {
            Ok(OVERLAYFS) => Memory::Names,
            Ok(kind) if LOCAL.contains(&kind) => Memory::Files,
            _ => Memory::Nothing,
        }
    }

    /// Returns the status that the kernel has in memory. It is up to date on a local file system, and also on an overlayfs:
    /// files of the upper layer change only through it, and files of the other layers must not change.
    ///
    /// # Errors
    /// AGAIN if the kernel does not have it.
    pub fn look(file: impl AsFd) -> Result<Status> {
        status(file, STATUS).map(Status::from)
    }

    /// Asks the kernel, which must not ask a server.
    fn status(file: impl AsFd, wanted: StatxFlags) -> Result<Statx> {
        let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        match statx(file, c"", how, wanted) {
            Ok(status) if StatxFlags::from_bits_retain(status.stx_mask).contains(wanted & STATUS) => Ok(status),
            _ => Err(Errno::AGAIN),
        }
    }

    /// A number that no other mount gets later. An older kernel has one only for file systems on a block device: other file
    /// systems pass their device numbers on to later ones.
    pub fn mount(file: impl AsFd) -> Option<u64> {
        let status = status(file, UNIQUE_MOUNT).ok()?;
        if StatxFlags::from_bits_retain(status.stx_mask).contains(UNIQUE_MOUNT) {
            return Some(status.stx_mnt_id);
        }
        let device = Status::from(status).device;
        (major(device) != 0).then_some(device | IS_DEVICE)
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::{Memory, Status};
    use rustix::io::{Errno, Result};
    use std::os::fd::{AsFd, BorrowedFd};

    /// The value for files of the same mount.
    pub fn memory(_file: BorrowedFd<'_>) -> Memory {
        Memory::Nothing
    }

    /// Returns the status that the kernel has in memory.
    ///
    /// # Errors
    /// AGAIN, always: the system cannot tell.
    pub fn look(_file: impl AsFd) -> Result<Status> {
        Err(Errno::AGAIN)
    }

    /// A number that no other mount gets later.
    pub fn mount(_file: impl AsFd) -> Option<u64> {
        None
    }
}
