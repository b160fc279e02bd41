//! Changes from one configuration to the next, in steps that can be undone.
//!
//! ```text
//! reported ──prepare──▶ preparing ──prepared──▶ adopted ──commit──▶ current
//!     ▲                     └── failed ──┐         └──revert──▶ gone
//!     └── ready spawner                  ▼
//!                             gone: nothing has changed
//! ```
//!
//! A thread writes the files, because a disk can hang.

use crate::background::Background;
use crate::configuration::Configuration;
use crate::listeners::Listener;
use crate::machine::Generation;
use crate::pid_file::PidFile;
use crate::settings::{LogSettings, Settings, SystemText};
use crate::state_file::StateFile;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The configuration in force, and the configurations that may follow.
pub struct Adoption {
    current: Configuration,
    /// Configurations of the generations that have loaded the application.
    reported: BTreeMap<Generation, Configuration>,
    adopted: Option<(Generation, Prepared)>,
    /// Jobs that only remove files have no result.
    files: Background<Option<(Generation, Result<Prepared, String>)>>,
    /// The pid file of a program that has called this library and cannot remove the file any more.
    caller_pid_file: Option<SystemText>,
}

/// Files that are open or written for a configuration.
#[derive(Debug, Default)]
pub struct Prepared {
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
}

/// The files of a configuration, without its descriptors.
#[derive(Clone)]
struct Files {
    pid_file: Option<PidFile>,
    state_file: Option<StateFile>,
    control: Option<(String, Option<String>)>,
    log: LogSettings,
}

impl Adoption {
    /// Begins with the configuration of the start. Writes its files, which may block: the server does not serve yet.
    ///
    /// # Errors
    /// If a file cannot be written: a sentence. No file is left then.
    pub fn begin(current: Configuration) -> Result<Adoption, String> {
        Files::of(&current.settings).write()?;
        Adoption::resume(current)
    }

    /// Continues with the configuration of another supervisor program. Its files are written already.
    ///
    /// # Errors
    /// If descriptors are short: a sentence.
    pub fn resume(current: Configuration) -> Result<Adoption, String> {
        Ok(Adoption {
            current,
            reported: BTreeMap::new(),
            adopted: None,
            files: Background::new("fairlead files").map_err(|error| error.to_string())?,
            caller_pid_file: None,
        })
    }

    /// Also removes this file at the end.
    pub fn inherit(&mut self, caller_pid_file: Option<SystemText>) {
        self.caller_pid_file = caller_pid_file;
    }

    /// See [`Adoption::inherit`].
    pub fn caller_pid_file(&self) -> Option<&SystemText> {
        self.caller_pid_file.as_ref()
    }

    /// True if no file is being written.
    pub fn is_idle(&self) -> bool {
        self.files.is_idle()
    }

    /// The configuration in force.
    pub fn current(&self) -> &Configuration {
        &self.current
    }

    /// The configuration in force, to change it.
    pub fn current_mut(&mut self) -> &mut Configuration {
        &mut self.current
    }

    /// Returns true if the generation is a sole process.
    pub fn is_sole(&self, generation: Generation) -> bool {
        let configuration = self.reported.get(&generation).unwrap_or(&self.current);
        configuration.settings.limits.workers == 0
    }

    /// Stores the configuration that a spawner has reported.
    pub fn report(&mut self, generation: Generation, configuration: Configuration) {
        self.reported.insert(generation, configuration);
    }

    /// Drops the configurations of generations that have ended. The last one may be about to be adopted or reverted.
    pub fn keep(&mut self, lives: impl Fn(Generation) -> bool) {
        let last = self.reported.keys().next_back().copied();
        self.reported
            .retain(|generation, _| lives(*generation) || Some(*generation) == last);
    }

    /// Prepares the files of a generation; [`Adoption::prepared`] returns the result.
    ///
    /// # Errors
    /// If the generation is unknown, or there is no thread.
    pub fn prepare(&mut self, generation: Generation) -> Result<(), String> {
        let reported = self.reported.get(&generation).ok_or("its configuration is unknown")?;
        let (old, new) = (Files::of(&self.current.settings), Files::of(&reported.settings));
        self.files.abandon();
        self.files
            .run(move || Some((generation, new.prepare(&old))))
            .map_err(|error| error.to_string())
    }

    /// The generations with a finished preparation, and its result.
    pub fn prepared(&mut self) -> Vec<(Generation, Result<(), String>)> {
        let mut results = Vec::new();
        for (generation, result) in self.files.results().into_iter().flatten() {
            let result = result.map(|prepared| self.adopted = Some((generation, prepared)));
            results.push((generation, result));
        }
        results
    }

    /// The descriptor to poll.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.files.as_fd()
    }

    /// Makes the configuration of this generation the one in force, and gives up resources that only the previous one
    /// needs. Returns the open files of its logs; nothing if it was not adopted.
    pub fn commit(&mut self, generation: Generation) -> Option<(Option<OwnedFd>, Option<OwnedFd>)> {
        let (_, prepared) = self.adopted.take_if(|(adopted, _)| *adopted == generation)?;
        let configuration = self.reported.remove(&generation)?;
        let former = std::mem::replace(&mut self.current, configuration);
        former.remove_listeners_but(Some(&self.current));
        let (old, new) = (Files::of(&former.settings), Files::of(&self.current.settings));
        self.run(move || old.remove_but(&new));
        Some((prepared.output, prepared.errors))
    }

    /// Gives up resources that only the configuration of this generation needs.
    pub fn revert(&mut self, generation: Generation) {
        self.adopted.take_if(|(adopted, _)| *adopted == generation);
        let Some(configuration) = self.reported.remove(&generation) else {
            return;
        };
        configuration.remove_listeners_but(Some(&self.current));
        let (old, new) = (Files::of(&self.current.settings), Files::of(&configuration.settings));
        self.run(move || {
            new.remove_but(&old);
            let _ = old.write();
        });
    }

    /// The inodes of the listeners that end with the server: the last worker that has emptied one shuts it down.
    pub fn ending_listeners(&self) -> Vec<u64> {
        let all = self.reported.values().chain([&self.current]);
        let listeners = all.flat_map(|configuration| &configuration.listeners);
        listeners.filter_map(Listener::ending).collect()
    }

    /// The server ends, and no worker accepts any more.
    pub fn close_listeners(&mut self) {
        for configuration in self.reported.values_mut().chain([&mut self.current]) {
            let listeners = std::mem::take(&mut configuration.listeners);
            listeners.iter().for_each(Listener::remove);
        }
    }

    /// The server has ended: removes all files.
    pub fn end(&self) {
        for configuration in self.reported.values().chain([&self.current]) {
            configuration.remove_listeners_but(None);
            Files::of(&configuration.settings).remove();
        }
        if let Some(file) = &self.caller_pid_file {
            PidFile::new(file.path()).remove();
        }
    }

    /// Runs a job without a result on the thread for files, or on this thread if there is none.
    fn run(&mut self, job: impl FnOnce() + Send + 'static) {
        let _ = self.files.run(move || {
            job();
            None
        });
    }
}

impl Files {
    fn of(settings: &Settings) -> Files {
        let control = settings.control.as_ref();
        Files {
            pid_file: settings.pid_file.as_ref().map(|file| PidFile::new(file.path())),
            state_file: settings.state_file.clone().map(StateFile::new),
            control: control.map(|control| (control.url.clone(), control.token.clone())),
            log: settings.log.clone(),
        }
    }

    /// Writes the pid file and the state file.
    fn write(&self) -> Result<(), String> {
        if let Some(file) = &self.pid_file {
            file.write().map_err(|error| error.to_string())?;
        }
        let written = self.write_state();
        if let (Err(_), Some(file)) = (&written, &self.pid_file) {
            file.remove();
        }
        written
    }

    fn write_state(&self) -> Result<(), String> {
        let Some(file) = &self.state_file else { return Ok(()) };
        let control = self
            .control
            .as_ref()
            .map(|(url, token)| (url.as_str(), token.as_deref()));
        file.write(control).map_err(|error| error.to_string())
    }

    /// Opens and writes the files of this configuration; a failure restores the state of `old`.
    fn prepare(&self, old: &Files) -> Result<Prepared, String> {
        let prepared = Prepared {
            output: open_if_other(&self.log.stdout, &old.log.stdout)?,
            errors: open_if_other(&self.log.stderr, &old.log.stderr)?,
        };
        self.write().inspect_err(|_| {
            self.remove_but(old);
            let _ = old.write();
        })?;
        Ok(prepared)
    }

    fn remove(&self) {
        if let Some(file) = &self.pid_file {
            file.remove();
        }
        if let Some(file) = &self.state_file {
            file.remove();
        }
    }

    /// Removes the files that `other` does not have.
    fn remove_but(&self, other: &Files) {
        let paths = |files: &Files| {
            (
                files.pid_file.as_ref().map(|file| file.path().to_owned()),
                files.state_file.as_ref().map(|file| file.path().to_owned()),
            )
        };
        let (own, kept) = (paths(self), paths(other));
        if let (Some(file), true) = (&self.pid_file, own.0 != kept.0) {
            file.remove();
        }
        if let (Some(file), true) = (&self.state_file, own.1 != kept.1) {
            file.remove();
        }
    }
}

/// Opens a log to append to, if it differs from the previous one.
fn open_if_other(
    new: &Option<crate::settings::SystemText>,
    old: &Option<crate::settings::SystemText>,
) -> Result<Option<OwnedFd>, String> {
    let Some(path) = new.as_ref().filter(|_| new != old) else {
        return Ok(None);
    };
    let opened: io::Result<std::fs::File> = OpenOptions::new().append(true).create(true).open(path.path());
    let file = opened.map_err(|error| format!("{}: {error}", path.path().display()))?;
    Ok(Some(file.into()))
}
