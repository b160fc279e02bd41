//! A folder that is served: looks at and opens files in it, and nothing outside.
//!
//! The kernel itself refuses to leave the folder (openat2(2), Linux 5.6). Without openat2, each step is made
//! separately, and no symbolic link is followed.

use crate::config::Symlinks;
use rustix::fs::{fstat, open, openat, openat2, statat, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{self, Errno};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How often to try again when the kernel asks for it, because folders are being renamed.
const ATTEMPTS: usize = 4;

/// Opening must not block on a device or a FIFO, nor acquire a controlling terminal.
pub(crate) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

const STEP: OFlags = OFlags::PATH
    .union(OFlags::CLOEXEC)
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW);

#[derive(Debug)]
pub(crate) struct Folder {
    root: OwnedFd,
    symlinks: Symlinks,
    /// Whether the kernel has openat2.
    has_openat2: bool,
}

impl Folder {
    /// Opens the folder at `path`, which may itself contain links.
    pub(crate) fn open(path: &Path, symlinks: Symlinks) -> io::Result<Folder> {
        let root = open(path, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        let has_openat2 = openat2(&root, ".", LOOK, Mode::empty(), ResolveFlags::BENEATH).is_ok();
        Ok(Folder {
            root,
            symlinks,
            has_openat2,
        })
    }

    /// The status of the file at `path`, which has passed [`fairlead_wire::check_path`]. The same rules apply as for
    /// [`Folder::file`], but nothing is opened, so that devices are not affected.
    pub(crate) fn look(&self, path: &[u8]) -> io::Result<Stat> {
        match self.symlinks {
            Symlinks::All => statat(&self.root, path, AtFlags::empty()),
            _ => match self.open_beneath(path, LOOK) {
                // Without a free descriptor a missing file can still be recognised; the app then responds.
                Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                    statat(&self.root, path, AtFlags::empty()).and(Err(error))
                }
                opened => fstat(opened?),
            },
        }
    }

    /// Opens the regular file at `path`, which has passed [`fairlead_wire::check_path`].
    ///
    /// # Errors
    /// As for open(2). Also NOENT for anything but a regular file, and XDEV or LOOP for links that are not followed.
    pub(crate) fn file(&self, path: &[u8]) -> io::Result<(File, Stat)> {
        let file = match self.symlinks {
            Symlinks::All => io::retry_on_intr(|| openat(&self.root, path, READ, Mode::empty()))?,
            _ => self.open_beneath(path, READ)?,
        };
        let stat = fstat(&file)?;
        if is_regular(&stat) {
            Ok((file.into(), stat))
        } else {
            Err(Errno::NOENT)
        }
    }

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        if !self.has_openat2 {
            return self.walk(path, flags);
        }
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if self.symlinks == Symlinks::None {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        for _ in 1..ATTEMPTS {
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        openat2(&self.root, path, flags, Mode::empty(), resolve)
    }

    fn walk(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        if segments.iter().any(|segment| matches!(*segment, b"" | b"." | b"..")) {
            return Err(Errno::XDEV);
        }
        let name = segments.pop().unwrap_or_default();
        let mut folder: Option<OwnedFd> = None;
        for segment in segments {
            let at = folder.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            folder = Some(openat(at, segment, STEP, Mode::empty())?);
        }
        let at = folder.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        openat(at, name, flags | OFlags::NOFOLLOW, Mode::empty())
    }
}

/// `None` for a file that is missing, may not be read, or is behind a link that is not followed. An error if it could
/// not be opened this time.
pub(crate) fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO | Errno::AGAIN | Errno::INTR) => result.map(Some),
        Err(_) => Ok(None),
    }
}

pub(crate) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

pub(crate) fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// Contains `file`, `in/file`, links to them that stay inside, links that lead outside, and a FIFO.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path().join("root");
        std::fs::create_dir_all(root.join("in")).expect("folders");
        std::fs::write(tree.path().join("secret"), "secret").expect("a file");
        std::fs::write(root.join("file"), "top").expect("a file");
        std::fs::write(root.join("in/file"), "deep").expect("a file");
        for (target, name) in [
            ("in/file", "inside"),
            ("in", "folder"),
            ("../secret", "outside"),
            ("..", "up"),
            ("/etc", "etc"),
            ("/proc/self/root", "magic"),
            ("missing", "dangling"),
        ] {
            symlink(target, root.join(name)).expect("a link");
        }
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            FileType::Fifo,
            Mode::from_raw_mode(0o644),
            0,
        )
        .expect("a FIFO");
        tree
    }

    fn read(folder: &Folder, path: &str) -> Option<String> {
        let mut text = String::new();
        folder.file(path.as_bytes()).ok()?.0.read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn table(symlinks: Symlinks, has_openat2: bool, expected: &[(&str, Option<&str>)]) {
        let tree = tree();
        let mut folder = Folder::open(&tree.path().join("root"), symlinks).expect("the folder");
        folder.has_openat2 &= has_openat2;
        for (path, text) in expected {
            assert_eq!(read(&folder, path).as_deref(), *text, "{path} with {symlinks:?}");
        }
    }

    const NEVER: [(&str, Option<&str>); 7] = [
        ("outside", None),
        ("up/secret", None),
        ("etc/hostname", None),
        ("magic/etc/hostname", None),
        ("dangling", None),
        ("fifo", None),
        ("in", None),
    ];

    #[test]
    fn links_that_stay_inside_are_followed() {
        table(Symlinks::Inside, true, &NEVER);
        table(
            Symlinks::Inside,
            true,
            &[
                ("file", Some("top")),
                ("in/file", Some("deep")),
                ("inside", Some("deep")),
                ("folder/file", Some("deep")),
            ],
        );
    }

    #[test]
    fn no_link_is_followed() {
        let expected = [
            ("file", Some("top")),
            ("in/file", Some("deep")),
            ("inside", None),
            ("folder/file", None),
        ];
        for (symlinks, has_openat2) in [
            (Symlinks::None, true),
            (Symlinks::None, false),
            (Symlinks::Inside, false),
        ] {
            table(symlinks, has_openat2, &NEVER);
            table(symlinks, has_openat2, &expected);
        }
    }

    #[test]
    fn every_link_is_followed_but_only_regular_files_are_opened() {
        let expected = [
            ("inside", Some("deep")),
            ("outside", Some("secret")),
            ("up/secret", Some("secret")),
            ("dangling", None),
            ("fifo", None),
            ("in", None),
        ];
        table(Symlinks::All, true, &expected);
    }

    #[test]
    fn without_openat2_a_path_leads_only_downwards() {
        for path in [
            "../secret",
            "in/../../secret",
            "in/../file",
            "/etc/hostname",
            "in//file",
            "./file",
            "",
        ] {
            table(Symlinks::Inside, false, &[(path, None)]);
        }
    }
}
