//! Memory that processes share: a file without a name that each process maps.

use fairlead_engine::Scoreboard;
use rustix::fs::{fstat, ftruncate, memfd_create, MemfdFlags};
use rustix::io::Errno;
use rustix::mm::{mmap, MapFlags, ProtFlags};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;

/// A type that processes may share.
///
/// # Safety
/// The type consists of atomics only, so it stays valid while another process stores into it. Zeros are a valid value.
pub(crate) unsafe trait Shareable: Sync + 'static {}

// SAFETY: nothing but atomics.
unsafe impl Shareable for Scoreboard {}

/// A file in memory for a `T`.
pub(crate) struct MemoryFile<T: Shareable> {
    file: OwnedFd,
    holds: PhantomData<T>,
}

impl<T: Shareable> MemoryFile<T> {
    /// A new file, full of zeros. `name`: shown in /proc.
    ///
    /// # Errors
    /// If descriptors or memory are short.
    pub(crate) fn new(name: &str) -> rustix::io::Result<MemoryFile<T>> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
        ftruncate(&file, size_of::<T>() as u64)?;
        MemoryFile::adopt(file)
    }

    /// Adopts the file of another process.
    ///
    /// # Errors
    /// EINVAL if it has another size.
    pub(crate) fn adopt(file: OwnedFd) -> rustix::io::Result<MemoryFile<T>> {
        if fstat(&file)?.st_size != size_of::<T>() as i64 {
            return Err(Errno::INVAL);
        }
        Ok(MemoryFile {
            file,
            holds: PhantomData,
        })
    }

    /// Maps the file. It is never unmapped: its users live as long as the process.
    ///
    /// # Errors
    /// If memory is short.
    pub(crate) fn map(&self) -> rustix::io::Result<&'static T> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of a file of that size, page-aligned. Zeros, and all values that other processes with
        // the same layout have stored, are a valid `T` (see `Shareable`). No code unmaps it, and no code shortens the
        // file, which has no name.
        unsafe {
            let address = mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                flags,
                MapFlags::SHARED,
                &self.file,
                0,
            )?;
            Ok(&*address.cast::<T>())
        }
    }

    /// The file.
    pub(crate) fn into_file(self) -> OwnedFd {
        self.file
    }
}
