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
    use std::io::Write;

    pub(super) fn open(_name: &str) -> Result<OwnedFd> {
        Ok(tempfile::tempfile()?.into())
    }

    pub(super) fn constant(_name: &str, parts: &[&[u8]]) -> Result<OwnedFd> {
        let mut file = tempfile::NamedTempFile::new()?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        Ok(File::open(file.path())?.into())
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
    fn a_file_grows() {
        let mut file = File::from(open("test").expect("a file"));
        file.write_all(b"text").expect("room");
        assert_eq!(file.metadata().expect("its status").len(), 4);
    }
}
