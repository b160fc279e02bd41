//! Files in memory, without a name, which processes share by their descriptors.
//!
//! Linux: memfd_create(2), with seals. Elsewhere: shared memory to be mapped, without its name after the opening (shm_open(3)). A file to be
//! read is a temporary file, which macOS requires; a constant one is open for reading only.

use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;

/// An empty file, closed on exec. `name`: shown in /proc on Linux.
///
/// # Errors
/// If descriptors or memory are short, or there is no folder for temporary files.
pub fn open(name: &str) -> Result<OwnedFd> {
    system::open(name)
}

/// A file of zeros to be mapped. Some systems round its length up to pages.
///
/// # Errors
/// If descriptors or memory are short.
pub fn mapped(name: &str, length: usize) -> Result<OwnedFd> {
    let file = system::shared(name)?;
    rustix::fs::ftruncate(&file, length as u64)?;
    Ok(file)
}

/// A file with these bytes, which no process that gets the descriptor can change.
///
/// # Errors
/// As [`open`].
pub fn constant(name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
    system::constant(name, parts)
}

/// True if [`secret`] is possible.
pub const KEEPS_SECRETS: bool = cfg!(native_linux);

/// A file with these bytes and a fixed length, for one reader: see [`take_secret`].
///
/// # Errors
/// As [`open`]; always on systems on which such a file may be on a disk.
pub fn secret(name: &str, bytes: &[u8]) -> Result<OwnedFd> {
    system::secret(name, bytes)
}

/// The bytes of a [`secret`] file, which is wiped.
///
/// # Errors
/// If the file cannot be read or written.
pub fn take_secret(file: OwnedFd) -> Result<Vec<u8>> {
    let file = File::from(file);
    let length = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    file.write_all_at(&vec![0; length], 0)?;
    Ok(bytes)
}

#[cfg(native_linux)]
mod system {
    use super::*;
    use rustix::fs::{fcntl_add_seals, memfd_create, MemfdFlags, SealFlags};
    use std::io::Write;

    pub(super) fn open(name: &str) -> Result<OwnedFd> {
        Ok(memfd_create(name, MemfdFlags::CLOEXEC)?)
    }

    pub(super) fn shared(name: &str) -> Result<OwnedFd> {
        open(name)
    }

    pub(super) fn constant(name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create(name, flags)?);
        parts.iter().try_for_each(|part| file.write_all(part))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok(file.into())
    }

    pub(super) fn secret(name: &str, bytes: &[u8]) -> Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create(name, flags)?);
        file.write_all(bytes)?;
        // The reader wipes it, so it stays writable.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(file.into())
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::*;
    use rustix::fs::Mode;
    use rustix::io::Errno;
    use rustix::shm;
    use std::io::{Error, Write};
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    pub(super) fn open(_name: &str) -> Result<OwnedFd> {
        Ok(tempfile::tempfile().map_err(in_folder)?.into())
    }

    /// macOS allows names of 31 bytes.
    pub(super) fn shared(_name: &str) -> Result<OwnedFd> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        loop {
            let name = format!("/fairlead-{}-{:x}", std::process::id(), LAST.fetch_add(1, Relaxed));
            match shm::open(&name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    shm::unlink(&name)?;
                    return Ok(file);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn constant(_name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
        let mut file = tempfile::NamedTempFile::new().map_err(in_folder)?;
        parts
            .iter()
            .try_for_each(|part| file.write_all(part))
            .map_err(in_folder)?;
        // In a folder where another user may rename files, the path may lead elsewhere by now.
        let (written, readable) = (file.as_file().metadata()?, File::open(file.path())?);
        let opened = readable.metadata()?;
        if (opened.dev(), opened.ino()) != (written.dev(), written.ino()) {
            return Err(Error::other(format!(
                "another user has replaced {}",
                file.path().display()
            )));
        }
        Ok(readable.into())
    }

    pub(super) fn secret(_name: &str, _bytes: &[u8]) -> Result<OwnedFd> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Names the folder.
    fn in_folder(error: Error) -> Error {
        let folder = std::env::temp_dir();
        let text = format!(
            "no file in {}; TMPDIR may name another folder: {error}",
            folder.display()
        );
        Error::new(error.kind(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[cfg(native_linux)]
    #[test]
    fn a_secret_is_read_once() {
        let file = secret("test", b"secret").expect("a file");
        let copy = File::from(file.try_clone().expect("a descriptor"));
        assert!(copy.set_len(3).is_err() && copy.set_len(9).is_err());
        assert_eq!(take_secret(file).expect("its bytes"), b"secret");
        let mut rest = [1; 6];
        copy.read_exact_at(&mut rest, 0).expect("zeros");
        assert_eq!(rest, [0; 6]);
    }

    #[test]
    fn a_constant_file_has_its_bytes_and_cannot_change() {
        let mut file = File::from(constant("test", &[b"one, ", b"two"]).expect("a file"));
        let mut text = String::new();
        file.rewind()
            .and_then(|()| file.read_to_string(&mut text))
            .expect("its text");
        assert_eq!(text, "one, two");
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
    }

    #[test]
    fn a_mapped_file_has_its_length_and_is_closed_on_exec() {
        let file = mapped("test", 100_000).expect("a file");
        let length = rustix::fs::fstat(&file).expect("its status").st_size;
        assert!((100_000..100_000 + (1 << 16)).contains(&length), "{length}");
        let flags = rustix::io::fcntl_getfd(&file).expect("its flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_file_grows() {
        let mut file = File::from(open("test").expect("a file"));
        file.write_all(b"text").expect("room");
        assert_eq!(file.metadata().expect("its status").len(), 4);
    }
}
