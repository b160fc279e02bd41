//! Files in memory, without a name, which processes share by their descriptors.
//!
//! Linux: memfd_create(2), with seals. Elsewhere: a temporary file that is removed at once; a constant one is open for reading only.

use rustix::fd::OwnedFd;
use std::io::Result;

/// An empty file, closed on exec. `name`: shown in /proc on Linux.
///
/// # Errors
/// If descriptors or memory are short, or there is no folder for temporary files.
pub fn open(name: &str) -> Result<OwnedFd> {
    system::open(name)
}

/// A file of zeros, for processes that map it. The system provides memory for a page at its first use; a file on a disk has its room from
/// the beginning, since a process without it is killed (SIGBUS).
///
/// # Errors
/// As [`open`], or if there is no room for it.
pub fn zeros(name: &str, length: u64) -> Result<OwnedFd> {
    system::zeros(name, length)
}

/// A file with these bytes, which no process that gets the descriptor can change.
///
/// # Errors
/// As [`open`].
pub fn constant(name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
    system::constant(name, parts)
}

#[cfg(native_linux)]
mod system {
    use super::*;
    use rustix::fs::{fcntl_add_seals, memfd_create, MemfdFlags, SealFlags};
    use std::fs::File;
    use std::io::Write;

    pub(super) fn open(name: &str) -> Result<OwnedFd> {
        Ok(memfd_create(name, MemfdFlags::CLOEXEC)?)
    }

    pub(super) fn zeros(name: &str, length: u64) -> Result<OwnedFd> {
        let file = open(name)?;
        rustix::fs::ftruncate(&file, length)?;
        Ok(file)
    }

    pub(super) fn constant(name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create(name, flags)?);
        parts.iter().try_for_each(|part| file.write_all(part))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok(file.into())
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::*;
    use std::fs::File;
    use std::io::{copy, repeat, Error, Read, Write};

    pub(super) fn open(_name: &str) -> Result<OwnedFd> {
        Ok(tempfile::tempfile().map_err(in_folder)?.into())
    }

    pub(super) fn zeros(_name: &str, length: u64) -> Result<OwnedFd> {
        let mut file = tempfile::tempfile().map_err(in_folder)?;
        copy(&mut repeat(0).take(length), &mut file).map_err(in_folder)?;
        Ok(file.into())
    }

    pub(super) fn constant(_name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
        let mut file = tempfile::NamedTempFile::new().map_err(in_folder)?;
        parts
            .iter()
            .try_for_each(|part| file.write_all(part))
            .map_err(in_folder)?;
        Ok(File::open(file.path())?.into())
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
    use std::fs::File;
    use std::io::{Read, Seek, Write};

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
    fn a_file_of_zeros_has_its_length() {
        let mut file = File::from(zeros("test", 100_000).expect("a file"));
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .expect("its bytes");
        assert_eq!(bytes, [0; 100_000]);
    }

    #[test]
    #[cfg(not(native_linux))]
    fn room_for_a_file_of_zeros_is_reserved() {
        use std::os::unix::fs::MetadataExt;
        let file = File::from(zeros("test", 1 << 20).expect("a file"));
        assert!(file.metadata().expect("its status").blocks() * 512 >= 1 << 20);
    }

    #[test]
    fn a_file_grows() {
        let mut file = File::from(open("test").expect("a file"));
        file.write_all(b"text").expect("room");
        assert_eq!(file.metadata().expect("its status").len(), 4);
    }
}
