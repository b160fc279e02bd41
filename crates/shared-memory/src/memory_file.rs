//! Memory that processes share: a file without a name that each process maps.

use fairlead_engine::Scoreboard;
use fairlead_system::memory_file;
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{mmap, MapFlags, ProtFlags};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

/// Largest page: macOS rounds the length of shared memory up.
const PAGE: i64 = 16 * 1024;

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
    pub(crate) fn new(name: &str) -> std::io::Result<MemoryFile<T>> {
        let file = memory_file::mapped(name, size_of::<T>())?;
        Ok(MemoryFile::adopt(file)?)
    }

    /// Adopts the file of another process.
    ///
    /// # Errors
    /// EINVAL if it has another size.
    pub(crate) fn adopt(file: OwnedFd) -> rustix::io::Result<MemoryFile<T>> {
        let excess = fstat(&file)?.st_size - size_of::<T>() as i64;
        if !(0..PAGE).contains(&excess) {
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

/// A file in memory for any number of words.
pub(crate) struct WordsFile {
    file: OwnedFd,
    count: usize,
}

impl WordsFile {
    /// A new file, full of zeros, for so many bytes. The system provides a page when it is first used.
    ///
    /// # Errors
    /// If descriptors are short.
    pub(crate) fn new(name: &str, bytes: usize) -> std::io::Result<WordsFile> {
        let file = memory_file::mapped(name, bytes / size_of::<AtomicU64>() * size_of::<AtomicU64>())?;
        Ok(WordsFile::adopt(file)?)
    }

    /// Adopts the file of another process.
    ///
    /// # Errors
    /// If the descriptor is no file.
    pub(crate) fn adopt(file: OwnedFd) -> rustix::io::Result<WordsFile> {
        let bytes = usize::try_from(fstat(&file)?.st_size).map_err(|_| Errno::INVAL)?;
        let count = bytes / size_of::<AtomicU64>();
        Ok(WordsFile { file, count })
    }

    /// A copy of the descriptor.
    ///
    /// # Errors
    /// If descriptors are short.
    pub(crate) fn copy(&self) -> std::io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// Returns true if it has no words.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Maps the file, which must not be empty. It is never unmapped.
    ///
    /// # Errors
    /// If memory is short, or there are no words.
    pub(crate) fn map(&self) -> rustix::io::Result<&'static [AtomicU64]> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        let bytes = self.count * size_of::<AtomicU64>();
        // SAFETY: a new mapping of a file of at least that size, page-aligned. Words are valid with any value, and change
        // through atomics only. No code unmaps them, and no code shortens the file, which has no name.
        unsafe {
            let address = mmap(std::ptr::null_mut(), bytes, flags, MapFlags::SHARED, &self.file, 0)?;
            Ok(std::slice::from_raw_parts(address.cast::<AtomicU64>(), self.count))
        }
    }

    /// The file.
    pub(crate) fn into_file(self) -> OwnedFd {
        self.file
    }
}
