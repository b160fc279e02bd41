//! The lookups that the kernel can do from memory, by file system.
//!
//! A local file system uses memory or a disk of this machine. NFS and FUSE may need a server for each name, each status
//! and each file that is opened. The layers of an overlayfs may be on any of them, invisibly for a container: there
//! only names and status in the kernel's memory are used.

use super::document::Identity;
use rustix::fs::{fstatfs, major, statx, AtFlags, FileType, Stat, Statx, StatxFlags};
use rustix::io::{self, Errno};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

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

/// The requests to the kernel that are allowed to a thread that must not wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Nothing,
    /// Names and status. Opening a file may take any time.
    Names,
    /// Also opening files, and reading data in memory.
    Files,
}

impl Memory {
    /// The value for files of the same mount. This may take any time.
    pub(super) fn of(file: BorrowedFd<'_>) -> Memory {
        match fstatfs(file).map(|system| system.f_type as u64 & 0xffff_ffff) {
            Ok(OVERLAYFS) => Memory::Names,
            Ok(kind) if LOCAL.contains(&kind) => Memory::Files,
            _ => Memory::Nothing,
        }
    }
}

/// The result of a lookup of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) identity: Identity,
    kind: FileType,
}

impl Seen {
    pub(super) fn of(stat: &Stat) -> Seen {
        Seen {
            identity: Identity::of(stat),
            kind: FileType::from_raw_mode(stat.st_mode),
        }
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }
}

/// Returns the status that the kernel has in memory. It is up to date on a local file system, and also on an overlayfs:
/// files of the upper layer change only through it, and files of the other layers must not change.
pub(super) fn look(file: impl AsFd) -> io::Result<Seen> {
    let status = status(file, STATUS)?;
    Ok(Seen {
        identity: Identity::of_status(&status),
        kind: FileType::from_raw_mode(status.stx_mode.into()),
    })
}

/// Asks the kernel, which must not ask a server.
fn status(file: impl AsFd, wanted: StatxFlags) -> io::Result<Statx> {
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    match statx(file, c"", how, wanted) {
        Ok(status) if StatxFlags::from_bits_retain(status.stx_mask).contains(wanted & STATUS) => Ok(status),
        _ => Err(Errno::AGAIN),
    }
}

/// Mounts, local or not. They are remembered because statfs(2), which tells the kind, may have to ask a server.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    /// The last few mounts. 0: none yet.
    seen: [AtomicU64; 16],
    count: AtomicUsize,
}

/// Marks the id of a local mount.
const IS_LOCAL: u64 = 1 << 62;

/// Marks the number of a device, which stands for a mount.
const IS_DEVICE: u64 = 1 << 63;

impl Mounts {
    /// Returns true if the mount of this file is known to be local.
    pub(super) fn is_local(&self, file: impl AsFd) -> bool {
        mount_id(file).is_some_and(|id| self.is_seen(id | IS_LOCAL))
    }

    /// Remembers the mount of this file. This may take any time.
    pub(super) fn note(&self, file: impl AsFd) {
        let file = file.as_fd();
        let Some(id) = mount_id(file) else { return };
        if self.is_seen(id) || self.is_seen(id | IS_LOCAL) {
            return;
        }
        let kind = if Memory::of(file) == Memory::Files { IS_LOCAL } else { 0 };
        let next = self.count.fetch_add(1, Relaxed) % self.seen.len();
        self.seen[next].store(id | kind, Relaxed);
    }

    fn is_seen(&self, mount: u64) -> bool {
        self.seen.iter().any(|seen| seen.load(Relaxed) == mount)
    }
}

/// A number that no other mount gets later. An older kernel has one only for file systems on a block device: other file
/// systems pass their device numbers on to later ones.
fn mount_id(file: impl AsFd) -> Option<u64> {
    let status = status(file, UNIQUE_MOUNT).ok()?;
    if StatxFlags::from_bits_retain(status.stx_mask).contains(UNIQUE_MOUNT) {
        return Some(status.stx_mnt_id);
    }
    let device = Identity::of_status(&status).device();
    (major(device) != 0).then_some(device | IS_DEVICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_mount_is_local_once_it_was_seen() {
        let (mounts, folder) = (Mounts::default(), tempfile::tempdir().expect("a folder"));
        let file = File::create(folder.path().join("file")).expect("a file");
        if Memory::of(file.as_fd()) != Memory::Files || mount_id(&file).is_none() {
            eprintln!("skipped: the temporary folder is not local, or an old kernel does not tell mounts apart");
            return;
        }
        assert!(!mounts.is_local(&file));
        let proc = File::open("/proc/self/status").expect("a file");
        for _ in 0..2 {
            mounts.note(&file);
            mounts.note(&proc);
        }
        assert!(mounts.is_local(&file) && !mounts.is_local(&proc));
        let counted = 1 + usize::from(mount_id(&proc).is_some());
        assert_eq!(mounts.count.load(Relaxed), counted, "each is asked for once");
    }
}
