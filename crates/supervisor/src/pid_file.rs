//! The file with the id of the supervisor.

use crate::wording::{reason, shown};
use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{test_kill_process, Pid};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, process};

/// More than a process id takes, in bytes.
const LONGEST: u64 = 64;

/// The pid file. It is read and written under a lock, so that only one of two servers that start at the same time gets
/// it. The file of a process that no longer runs is overwritten. Every method blocks while a disk hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PidFile {
    path: PathBuf,
}

/// The reason why a server may not have the file.
#[derive(Debug)]
pub struct PidFileError {
    message: String,
    pid: Option<i64>,
}

/// A failure before the path is added to its message.
enum Refusal {
    Text(&'static str),
    Running(i64),
    System(io::Error),
}

impl PidFile {
    /// Does nothing yet. `path`: absolute.
    pub fn new(path: &Path) -> PidFile {
        PidFile { path: path.into() }
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the id of this process. A file with this id stays unchanged: in a container, the first process always has
    /// the same id.
    ///
    /// # Errors
    /// If the file belongs to another running process, or is no pid file, or the system refuses access.
    pub fn write(&self) -> Result<(), PidFileError> {
        self.take().map_err(|refusal| refusal.at(&self.path))
    }

    /// Removes the file, if it has the id of this process.
    pub fn remove(&self) {
        let Ok(mut file) = self.locked(false) else {
            return;
        };
        if text(&mut file).is_ok_and(|text| text == process::id().to_string()) {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn take(&self) -> Result<(), Refusal> {
        let mut file = self.locked(true).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => Refusal::Text(
                "it is a symbolic link, which another user may have made; remove it, or choose another path",
            ),
            _ => Refusal::System(error),
        })?;
        match pid_in(&text(&mut file)?)? {
            Some(pid) if pid == i64::from(process::id()) => return Ok(()),
            Some(pid) if is_running(pid) => return Err(Refusal::Running(pid)),
            _ => {}
        }
        self.replace(&mut file).map_err(Refusal::System)
    }

    /// Leaves no empty file on a full disk.
    fn replace(&self, file: &mut File) -> io::Result<()> {
        let text = format!("{}\n", process::id());
        let written = file
            .rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64));
        if written.is_err() && file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
        written
    }

    /// Opens and locks the file. If another process removes it in between, tries again with the new file.
    fn locked(&self, create: bool) -> io::Result<File> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(create)
            .mode(0o644)
            .custom_flags(flags);
        loop {
            let file = options.open(&self.path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            if self.is(&file.metadata()?) {
                return Ok(file);
            }
        }
    }

    fn is(&self, opened: &fs::Metadata) -> bool {
        let there = fs::symlink_metadata(&self.path);
        there.is_ok_and(|there| (there.dev(), there.ino()) == (opened.dev(), opened.ino()))
    }
}

impl PidFileError {
    /// The process that has the file.
    pub fn pid(&self) -> Option<i64> {
        self.pid
    }
}

impl fmt::Display for PidFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for PidFileError {}

impl Refusal {
    fn at(self, path: &Path) -> PidFileError {
        let (text, pid) = match self {
            Refusal::Text(text) => (text.into(), None),
            Refusal::Running(pid) => (format!("process {pid} is running"), Some(pid)),
            Refusal::System(error) => (reason(&error), None),
        };
        let path = shown(path.as_os_str().as_bytes());
        PidFileError {
            message: format!("pid file {path}: {text}"),
            pid,
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::System(error)
    }
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(shown(&bytes).trim().to_owned())
}

/// The process id in the text of the file; `None` without text.
fn pid_in(text: &str) -> Result<Option<i64>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<i64>() {
        Ok(pid) if pid > 0 => Ok(Some(pid)),
        _ => Err(Refusal::Text("it does not contain a process id")),
    }
}

fn is_running(pid: i64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests;
