//! Opens files beneath a folder, and only there. Linux (5.6): openat2(2). Elsewhere the caller walks along the path, one folder
//! after the other, and follows no link.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Result;

/// Looks at a file or a folder without opening it. A system without such a flag opens it for reading, which needs the permission.
#[cfg(native_linux)]
pub const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Looks at a folder: opens it for reading, which needs the permission.
#[cfg(not(native_linux))]
pub const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// True if [`LOOK`] opens nothing.
pub const LOOKS: bool = cfg!(native_linux);

/// Rules for a lookup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Never leaves the folder, not even by a link.
    pub beneath: bool,
    /// Follows no link.
    pub no_links: bool,
    /// Uses only data in the kernel's memory (Linux 5.12).
    pub in_memory: bool,
    /// Stays on the file system of the folder.
    pub same_file_system: bool,
}

/// Opens a file by these rules.
///
/// # Errors
/// As openat2(2); NOSYS where the system does not have it.
pub fn open(folder: impl AsFd, path: &[u8], flags: OFlags, rules: Rules) -> Result<OwnedFd> {
    system::open(folder, path, flags, rules)
}

#[cfg(native_linux)]
mod system {
    use super::*;
    use rustix::fs::{openat2, Mode, ResolveFlags};

    pub(super) fn open(folder: impl AsFd, path: &[u8], flags: OFlags, rules: Rules) -> Result<OwnedFd> {
        let mut resolve = ResolveFlags::empty();
        resolve.set(ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS, rules.beneath);
        resolve.set(ResolveFlags::NO_SYMLINKS, rules.no_links);
        resolve.set(ResolveFlags::CACHED, rules.in_memory);
        resolve.set(ResolveFlags::NO_XDEV, rules.same_file_system);
        openat2(folder, path, flags, Mode::empty(), resolve)
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::*;

    pub(super) fn open(_folder: impl AsFd, _path: &[u8], _flags: OFlags, _rules: Rules) -> Result<OwnedFd> {
        Err(rustix::io::Errno::NOSYS)
    }
}
