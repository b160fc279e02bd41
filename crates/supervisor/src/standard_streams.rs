//! The files that replace standard output and standard error.

use crate::log::Log;
use crate::settings::{LogSettings, SystemText};
use crate::wording::{reason, shown};
use rustix::fs::{flock, FlockOperation};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Reopens the logs of this process after rotation, and adopts the logs of another configuration. The descriptors 1 and
/// 2 stay the same, so all writers use the new files.
#[derive(Debug, Default)]
pub struct StandardStreams {
    /// Number of the last change. An earlier change that hung must not undo it.
    turn: Arc<Mutex<u64>>,
}

/// One log that can be reopened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// This process does not write to it, and only creates the file.
    Access,
    Output,
    Errors,
}

/// A reopening that has not run yet.
#[derive(Debug)]
pub struct Reopening {
    current: Arc<Mutex<u64>>,
    turn: u64,
    files: Vec<(Target, PathBuf)>,
}

/// The result of a [`Reopening`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reopened {
    names: Vec<&'static str>,
    /// Path and error of each file that could not be opened.
    failed: Vec<(PathBuf, String)>,
}

/// The previous files, which other files have replaced.
#[derive(Debug)]
pub struct Former {
    output: OwnedFd,
    errors: OwnedFd,
}

impl StandardStreams {
    /// Prepares to reopen the files of `log`; `None` if there are none. Run it on another thread, because a disk can
    /// hang.
    pub fn reopening(&self, log: &LogSettings) -> Option<Reopening> {
        let files = [
            (Target::Access, &log.access),
            (Target::Output, &log.stdout),
            (Target::Errors, &log.stderr),
        ];
        let path = |path: &SystemText| path.path().to_path_buf();
        let files: Vec<_> = files
            .into_iter()
            .filter_map(|(target, file)| Some((target, path(file.as_ref()?))))
            .collect();
        (!files.is_empty()).then(|| Reopening {
            current: Arc::clone(&self.turn),
            turn: self.next_turn(),
            files,
        })
    }

    /// Takes the descriptors of another configuration, opened by the code that has read it. `None`: the stream stays
    /// unchanged. Returns the previous descriptors. A reopening that still hangs has no effect any more.
    ///
    /// # Errors
    /// If there are too few descriptors. Nothing has changed then.
    pub fn adopt(&self, output: Option<OwnedFd>, errors: Option<OwnedFd>) -> io::Result<Former> {
        let former = Former {
            output: stdout().try_clone_to_owned()?,
            errors: stderr().try_clone_to_owned()?,
        };
        self.next_turn();
        if let Some(output) = output {
            dup2_stdout(output)?;
        }
        if let Some(errors) = errors {
            dup2_stderr(errors).inspect_err(|_| _ = dup2_stdout(&former.output))?;
        }
        Ok(former)
    }

    /// Restores the files from before [`StandardStreams::adopt`].
    ///
    /// # Errors
    /// Errors of dup2(2), which do not happen.
    pub fn restore(&self, former: &Former) -> io::Result<()> {
        self.next_turn();
        dup2_stdout(&former.output)?;
        dup2_stderr(&former.errors)?;
        Ok(())
    }

    fn next_turn(&self) -> u64 {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *turn += 1;
        *turn
    }
}

impl Reopening {
    /// Opens the files. If another change was begun meanwhile, nothing changes.
    pub fn run(&self) -> Reopened {
        let mut reopened = Reopened::default();
        for (target, path) in &self.files {
            match open(path).and_then(|file| self.replace(*target, &file)) {
                Ok(true) => reopened.names.push(target.name()),
                Ok(false) => {}
                Err(error) => reopened.failed.push((path.clone(), reason(&error))),
            }
        }
        reopened
    }

    /// The result if the opening takes too long: no file is open.
    pub fn late(&self) -> Reopened {
        let failed = self.files.iter().map(|(_, path)| path.clone());
        Reopened {
            names: Vec::new(),
            failed: failed.map(|path| (path, "the disk does not answer".into())).collect(),
        }
    }

    /// Replaces the stream. Returns false if it is too late.
    fn replace(&self, target: Target, file: &File) -> io::Result<bool> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if *current != self.turn {
            return Ok(false);
        }
        match target {
            Target::Access => {}
            Target::Output => dup2_stdout(file)?,
            Target::Errors => dup2_stderr(file)?,
        }
        Ok(true)
    }
}

impl Reopened {
    /// Logs the result.
    pub fn report(&self, log: &Log) {
        for (path, reason) in &self.failed {
            let path = shown(path.as_os_str().as_bytes());
            log.warn(
                "log_not_reopened",
                format!("cannot reopen {path}, so the old file is used: {reason}"),
            );
        }
        if !self.names.is_empty() {
            log.info("logs_reopened", format!("reopened {}", self.names.join(" and ")));
        }
    }
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Access => "the access log",
            Target::Output => "standard output",
            Target::Errors => "standard error",
        }
    }
}

/// Opens a file to append to, and takes a shared lock: a second start, by mistake, does not get the file alone, and
/// keeps its lines. A terminal, a pipe and some file systems have no locks.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let _ = flock(&file, FlockOperation::NonBlockingLockShared);
    Ok(file)
}
