//! A folder that is served: looks up and opens files in it, and none outside.
//!
//! The kernel itself refuses to leave the folder (openat2(2), Linux 5.6). Without it, as on other systems, each step is made
//! separately, and no symbolic link is followed.
//!
//! A disk may take seconds, and a file server may never reply. A thread that must not wait uses only data in the
//! kernel's memory ([`Reach::Memory`]).

use super::file_system::{self, Memory, Mounts, Seen};
use super::known_folders::KnownFolders;
use crate::config::Symlinks;
use fairlead_system::beneath::{self, Rules, LOOK};
use fairlead_system::cached;
use rustix::fs::{fstat, open, openat, statat, AtFlags, FileType, Mode, OFlags, Stat, CWD};
use rustix::io::{self, Errno};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Leaves the folder by no link, not even by one of /proc.
const BENEATH: Rules = Rules {
    beneath: true,
    no_links: false,
    in_memory: false,
    same_file_system: false,
};

/// Number of attempts when the kernel asks to try again, because folders are being renamed.
const ATTEMPTS: usize = 4;

/// Opening must not block on a device or a FIFO, nor acquire a controlling terminal.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

const STEP: OFlags = LOOK.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// The reach of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach<'a> {
    /// Only data in the kernel's memory. If that is not enough, the lookup fails with [`Errno::AGAIN`].
    Memory,
    /// Also the disk, which may take any time. True is stored as soon as the name is known to name a file.
    Disk(&'a AtomicBool),
}

impl Reach<'_> {
    pub(crate) fn is_memory(self) -> bool {
        matches!(self, Reach::Memory)
    }

    /// Notes that the name names a file.
    pub(crate) fn note_file(self) {
        if let Reach::Disk(is_file) = self {
            is_file.store(true, Relaxed);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Folder {
    root: OwnedFd,
    symlinks: Symlinks,
    /// The kernel has openat2.
    has_openat2: bool,
    /// `Nothing` without RESOLVE_CACHED (Linux 5.12).
    memory: Memory,
    /// Only without RESOLVE_CACHED: otherwise the kernel knows them.
    known: Option<KnownFolders>,
}

impl Folder {
    /// Opens the folder at `path`, which may itself contain links.
    pub(crate) fn open(path: &Path, symlinks: Symlinks) -> io::Result<Folder> {
        let root = open(path, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        let probe = |rules| beneath::open(&root, b".", LOOK, rules);
        let has_openat2 = probe(BENEATH).is_ok();
        let in_memory = Rules {
            in_memory: true,
            ..Rules::default()
        };
        let has_cached = has_openat2 && matches!(probe(in_memory), Ok(_) | Err(Errno::AGAIN));
        Ok(Folder {
            memory: match has_cached {
                true => cached::memory(root.as_fd()),
                false => Memory::Nothing,
            },
            known: (!has_cached).then(KnownFolders::default),
            root,
            symlinks,
            has_openat2,
        })
    }

    /// Looks up the file at `path`, which has passed [`fairlead_wire::check_path`]. The same rules apply as for
    /// [`Folder::file`], but nothing is opened, so devices are not affected.
    pub(crate) fn look(&self, path: &[u8], reach: Reach<'_>) -> io::Result<Seen> {
        if reach.is_memory() {
            return match self.memory {
                Memory::Nothing => Err(Errno::AGAIN),
                Memory::Names | Memory::Files => file_system::look(&self.open_in_memory(path, LOOK)?),
            };
        }
        let stat = match self.symlinks {
            Symlinks::All => statat(&self.root, path, AtFlags::empty()),
            _ => match self.status_beneath(path) {
                // Without a free descriptor a missing file can still be recognized; the app then responds.
                Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                    statat(&self.root, path, AtFlags::empty()).and(Err(error))
                }
                status => status,
            },
        };
        stat.map(|stat| Seen::of(&stat))
    }

    /// Opens the regular file at `path`, which has passed [`fairlead_wire::check_path`].
    ///
    /// # Errors
    /// As for open(2). Also NOENT for anything but a regular file, and XDEV or LOOP for links that are not followed.
    pub(crate) fn file(&self, path: &[u8], reach: Reach<'_>) -> io::Result<(File, Stat)> {
        let file = match self.symlinks {
            _ if reach.is_memory() => match self.memory {
                Memory::Nothing | Memory::Names => return Err(Errno::AGAIN),
                Memory::Files => self.open_in_memory(path, READ)?,
            },
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
        let rules = self.rules();
        for _ in 1..ATTEMPTS {
            match beneath::open(&self.root, path, flags, rules) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        beneath::open(&self.root, path, flags, rules)
    }

    fn rules(&self) -> Rules {
        match self.symlinks {
            Symlinks::All => Rules::default(),
            Symlinks::Inside => BENEATH,
            Symlinks::None => Rules {
                no_links: true,
                ..BENEATH
            },
        }
    }

    /// Opens a file from the kernel's memory. A file system that is mounted inside the folder may be a slow one.
    fn open_in_memory(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let rules = Rules {
            in_memory: true,
            same_file_system: true,
            ..self.rules()
        };
        let opened = beneath::open(&self.root, path, flags, rules);
        opened.map_err(|error| if is_answer(error) { error } else { Errno::AGAIN })
    }

    /// Returns true if the folder at this path is known to exist, on any file system.
    pub(crate) fn is_known(&self, folder: &[u8]) -> bool {
        if let Some(known) = &self.known {
            return known.contains(folder);
        }
        let rules = Rules {
            in_memory: true,
            ..self.rules()
        };
        beneath::open(&self.root, folder, LOOK | OFlags::DIRECTORY, rules).is_ok()
    }

    /// Looks up the folder of a file before the file itself, for which the disk may not answer. Does nothing if the kernel
    /// knows its folders.
    pub(crate) fn learn(&self, folder: &[u8], reach: Reach<'_>) {
        let Some(known) = &self.known else { return };
        if let Ok(seen) = unless_missing(self.look(folder, reach)) {
            known.note(folder, seen.is_some_and(|seen| seen.is_folder()));
        }
    }

    fn walk(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        self.walk_to(path, |folder, name| {
            openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())
        })
    }

    /// The status of a file, without reading from it.
    fn status_beneath(&self, path: &[u8]) -> io::Result<Stat> {
        if self.has_openat2 {
            return fstat(self.open_beneath(path, LOOK)?);
        }
        let stat = self.walk_to(path, |folder, name| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Err(Errno::LOOP),
            _ => Ok(stat),
        }
    }

    /// Follows a path to the folder of its last name, step by step, and no link.
    fn walk_to<T>(&self, path: &[u8], last: impl FnOnce(BorrowedFd<'_>, &[u8]) -> io::Result<T>) -> io::Result<T> {
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
        last(folder.as_ref().map_or(self.root.as_fd(), AsFd::as_fd), name)
    }
}

/// Returns true if the error is a definite result for the name. Other errors mean that the kernel does not know the
/// name, has no result now, or may not enter another file system.
fn is_answer(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP | Errno::NAMETOOLONG | Errno::NXIO
    )
}

/// Opens the regular file at `path` of this machine, which the app has made. Returns `None` if there is no such file
/// that can be opened.
///
/// # Errors
/// [`Errno::AGAIN`] if it is not in memory, and [`Errno::INTR`].
pub(super) fn open_path(path: &[u8], reach: Reach<'_>, mounts: &Mounts) -> io::Result<Option<(File, Stat)>> {
    let open = |flags| match reach {
        Reach::Memory => {
            let in_memory = Rules {
                in_memory: true,
                ..Rules::default()
            };
            beneath::open(CWD, path, flags, in_memory)
        }
        Reach::Disk(_) => openat(CWD, path, flags, Mode::empty()),
    };
    let open = |flags| match open(flags) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::INTR) => Err(Errno::INTR),
        Err(error) if reach.is_memory() && !is_answer(error) => Err(Errno::AGAIN),
        Err(_) => Ok(None),
    };
    // The path may name a FIFO or a device, which only the app can read correctly. Opening does not block, in case the
    // file is replaced by a FIFO or a device in between.
    if !beneath::LOOKS {
        return match reach {
            Reach::Memory => Err(Errno::AGAIN),
            Reach::Disk(_) if !statat(CWD, path, AtFlags::empty()).is_ok_and(|stat| is_regular(&stat)) => Ok(None),
            Reach::Disk(_) => Ok(open(READ)?.and_then(|file| {
                let stat = fstat(&file).ok().filter(is_regular)?;
                Some((file.into(), stat))
            })),
        };
    }
    let Some(seen) = open(LOOK)? else { return Ok(None) };
    if reach.is_memory() && !mounts.is_local(&seen) {
        return Err(Errno::AGAIN);
    }
    if !fstat(&seen).is_ok_and(|stat| is_regular(&stat)) {
        return Ok(None);
    }
    let Some(file) = open(READ)? else { return Ok(None) };
    if !reach.is_memory() {
        mounts.note(&file);
    }
    Ok(fstat(&file).ok().filter(is_regular).map(|stat| (file.into(), stat)))
}

/// Returns `None` for a file that is missing, may not be read, or is behind a link that is not followed. Returns an
/// error if the file could not be opened this time.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;
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
        folder
            .file(path.as_bytes(), DISK)
            .ok()?
            .0
            .read_to_string(&mut text)
            .ok()?;
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

    static IS_FILE: AtomicBool = AtomicBool::new(false);
    const DISK: Reach<'_> = Reach::Disk(&IS_FILE);

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
    fn what_memory_says_is_true_and_what_was_looked_up_is_there() {
        let tree = tree();
        for symlinks in [Symlinks::Inside, Symlinks::None, Symlinks::All] {
            let folder = Folder::open(&tree.path().join("root"), symlinks).expect("the folder");
            if folder.memory != Memory::Files {
                eprintln!("skipped: no RESOLVE_CACHED here, or the temporary folder is not local");
                return;
            }
            for path in ["file", "in/file", "inside", "folder/file", "missing", "in", "dangling"] {
                assert_same_in_memory(path, symlinks, |reach| folder.look(path.as_bytes(), reach));
                assert_same_in_memory(path, symlinks, |reach| {
                    folder.file(path.as_bytes(), reach).map(|(_, stat)| stat.st_ino)
                });
            }
            assert!(folder.is_known(b"in") && !folder.is_known(b"file") && !folder.is_known(b"missing"));
        }
    }

    /// The kernel may forget a name at any time, or answer EAGAIN while another process renames a file.
    fn assert_same_in_memory<T: PartialEq + Debug>(
        path: &str,
        symlinks: Symlinks,
        find: impl Fn(Reach) -> Result<T, Errno>,
    ) {
        let attempts = 100;
        let found = (0..attempts)
            .map(|_| (find(DISK), find(Reach::Memory)))
            .find(|(_, in_memory)| !matches!(in_memory, Err(Errno::AGAIN)));
        let (on_disk, in_memory) = found.expect("the name stays in memory once");
        assert_eq!(in_memory, on_disk, "{path} with {symlinks:?}");
    }

    #[test]
    fn nothing_is_in_memory_of_a_file_system_that_asks_others() {
        let tree = tree();
        let mut folder = Folder::open(&tree.path().join("root"), Symlinks::Inside).expect("the folder");
        let found = folder.look(b"file", DISK);
        if folder.memory == Memory::Files {
            folder.memory = Memory::Names;
            assert_eq!(folder.look(b"file", Reach::Memory), found);
            assert_eq!(folder.file(b"file", Reach::Memory).map(|_| ()), Err(Errno::AGAIN));
        }
        folder.memory = Memory::Nothing;
        assert_eq!(folder.look(b"file", Reach::Memory), Err(Errno::AGAIN));
        assert_eq!(folder.file(b"file", Reach::Memory).map(|_| ()), Err(Errno::AGAIN));
        assert_eq!(read(&folder, "file").as_deref(), Some("top"));
        let proc = Folder::open(Path::new("/proc/self"), Symlinks::Inside).expect("a folder");
        assert_eq!(proc.look(b"status", Reach::Memory), Err(Errno::AGAIN));
    }

    #[test]
    fn folders_are_remembered_if_the_kernel_does_not_tell_them() {
        let tree = tree();
        for symlinks in [Symlinks::Inside, Symlinks::None, Symlinks::All] {
            let mut folder = Folder::open(&tree.path().join("root"), symlinks).expect("the folder");
            folder.known = Some(KnownFolders::default());
            for path in [&b"in"[..], b"file", b"missing", b"in/missing", b"etc"] {
                assert!(!folder.is_known(path));
                folder.learn(path, DISK);
                let expected = path == b"in" || (path == b"etc" && matches!(symlinks, Symlinks::All));
                assert_eq!(folder.is_known(path), expected, "{path:?} with {symlinks:?}");
            }
            std::fs::rename(tree.path().join("root/in"), tree.path().join("root/moved")).expect("the folder");
            folder.learn(b"in", DISK);
            assert!(!folder.is_known(b"in"));
            std::fs::rename(tree.path().join("root/moved"), tree.path().join("root/in")).expect("the folder");
        }
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        if fairlead_system::IS_PORTABLE {
            return; // only openat2 checks the targets of links
        }
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
