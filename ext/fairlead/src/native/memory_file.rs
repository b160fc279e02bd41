//! Memory that processes share: a file without a name, mapped by each of them.

use rustix::fs::{fstat, ftruncate, memfd_create, MemfdFlags};
use rustix::io::Errno;
use rustix::mm::{mmap, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;

/// What processes may share.
///
/// # Safety
/// The type consists of atomics only, and so does not change its meaning while another process stores into it; zeros are
/// a valid value.
pub(super) unsafe trait Shareable: Sync + 'static {}

/// A file for a `T`, full of zeros.
pub(super) fn new<T: Shareable>(name: &str) -> rustix::io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    ftruncate(&file, size_of::<T>() as u64)?;
    Ok(file)
}

/// Maps a file of this or another process. It is never unmapped: its users live as long as the process.
pub(super) fn map<T: Shareable>(file: &OwnedFd) -> rustix::io::Result<&'static T> {
    if fstat(file)?.st_size != size_of::<T>() as i64 {
        return Err(Errno::INVAL);
    }
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping of a file of that size, page-aligned. Zeros, and whatever other processes of the same layout
    // have stored, are a valid `T` (see `Shareable`). Nobody unmaps it, and nobody has a name by which to shorten the
    // file.
    unsafe {
        let address = mmap(std::ptr::null_mut(), size_of::<T>(), flags, MapFlags::SHARED, file, 0)?;
        Ok(&*address.cast::<T>())
    }
}
