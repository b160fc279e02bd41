//! The lookups that the kernel can do from memory, by file system.
//!
//! A local file system uses memory or a disk of this machine. NFS and FUSE may need a server for each name, each status
//! and each file that is opened. The layers of an overlayfs may be on any of them, invisibly for a container: there
//! only names and status in the kernel's memory are used.

use super::document::Identity;
use fairlead_system::cached;
pub(super) use fairlead_system::cached::Memory;
use rustix::fs::{FileType, RawMode, Stat};
use rustix::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

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

/// Returns the status that the kernel has in memory.
pub(super) fn look(file: impl AsFd) -> io::Result<Seen> {
    let status = cached::look(file)?;
    Ok(Seen {
        identity: Identity::of_status(&status),
        kind: FileType::from_raw_mode(status.mode as RawMode),
    })
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

impl Mounts {
    /// Returns true if the mount of this file is known to be local.
    pub(super) fn is_local(&self, file: impl AsFd) -> bool {
        cached::mount(file).is_some_and(|id| self.is_seen(id | IS_LOCAL))
    }

    /// Remembers the mount of this file. This may take any time.
    pub(super) fn note(&self, file: impl AsFd) {
        let file = file.as_fd();
        let Some(id) = cached::mount(file) else { return };
        if self.is_seen(id) || self.is_seen(id | IS_LOCAL) {
            return;
        }
        let kind = if cached::memory(file) == Memory::Files {
            IS_LOCAL
        } else {
            0
        };
        let next = self.count.fetch_add(1, Relaxed) % self.seen.len();
        self.seen[next].store(id | kind, Relaxed);
    }

    fn is_seen(&self, mount: u64) -> bool {
        self.seen.iter().any(|seen| seen.load(Relaxed) == mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_mount_is_local_once_it_was_seen() {
        let (mounts, folder) = (Mounts::default(), tempfile::tempdir().expect("a folder"));
        let file = File::create(folder.path().join("file")).expect("a file");
        if cached::memory(file.as_fd()) != Memory::Files || cached::mount(&file).is_none() {
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
        let counted = 1 + usize::from(cached::mount(&proc).is_some());
        assert_eq!(mounts.count.load(Relaxed), counted, "each is asked for once");
    }
}
