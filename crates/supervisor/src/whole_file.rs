//! Files that are written whole or not at all. In a folder where other users may write, such as /tmp, no user can
//! prepare a file or a link that would receive the text: the temporary file is always new, with a name that cannot be
//! guessed.

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The device and the inode of a file.
pub type Identity = (u64, u64);

/// Returns the identity of a file.
pub fn identity(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Replaces the file at `path`, and returns the identity of the new one. A device, such as /dev/null, is not replaced, and gets the text.
///
/// # Errors
/// Errors of the system. The previous file then still exists, and no other one.
pub fn write(path: &Path, text: &[u8], mode: u32) -> io::Result<Identity> {
    if is_device(path) {
        let mut device = OpenOptions::new().write(true).truncate(true).open(path)?;
        device.write_all(text)?;
        return Ok(identity(&device.metadata()?));
    }
    let temporary = Temporary(temporary_name(path)?);
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(mode);
    let mut file = options
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(&temporary.0)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text)?;
    fs::rename(&temporary.0, path)?;
    std::mem::forget(temporary);
    Ok(identity(&file.metadata()?))
}

/// Returns true for a device, and for a link to one.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_char_device() || kind.is_block_device()
    })
}

fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    let mut name = OsString::from(path);
    name.push(format!(".{:016x}~", u64::from_ne_bytes(random)));
    Ok(name.into())
}

/// A temporary file, removed when dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("a file").file_name()).collect()
    }

    #[test]
    fn it_takes_the_place_of_the_former_one_with_its_own_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it");
        for (text, mode) in [("before", 0o600), ("after", 0o666)] {
            write(&path, text.as_bytes(), mode).expect("a file");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
            let permissions = fs::metadata(&path).expect("a file").permissions();
            assert_eq!(permissions.mode() & 0o777, mode, "the umask does not matter");
        }
        assert_eq!(names(folder.path()), ["it"]);
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [victim, path] = ["victim", "it"].map(|name| folder.path().join(name));
        fs::write(&victim, "precious").expect("a file");
        std::os::unix::fs::symlink(&victim, &path).expect("a link");
        write(&path, b"text", 0o600).expect("a file");
        assert_eq!(fs::read_to_string(&victim).expect("a file"), "precious");
        assert!(!path.is_symlink());
    }

    #[test]
    fn nothing_is_left_when_it_cannot_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it");
        fs::create_dir(&path).expect("a folder");
        write(&path, b"text", 0o600).expect_err("a folder is there");
        assert_eq!(names(folder.path()), ["it"]);
    }

    #[test]
    fn a_device_stays_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it");
        std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
        write(&path, b"text", 0o600).expect("a device");
        assert_eq!((is_device(&path), names(folder.path())), (true, vec!["it".into()]));
    }

    #[test]
    fn the_names_of_temporary_files_differ() {
        let names = [(); 2].map(|()| temporary_name(Path::new("/tmp/it")).expect("random numbers"));
        assert_ne!(names[0], names[1]);
        assert!(names[0].to_string_lossy().ends_with('~'));
    }
}
