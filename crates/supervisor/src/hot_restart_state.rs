//! The hot restart state that one supervisor program sends to the next one, and gets back from it.
//!
//! ```text
//!  previous ──handover──▶ other        reads it, supervises, and keeps it
//!  previous ◀──returned── other        if it cannot read it, or the restart fails
//!   calling ──returned──▶ own          of the same version: reloaded code serves, and the calling program has to end
//! ```
//! All of it travels over a link on standard input, like the messages of the command for the first program
//! ([`start`](crate::start)): so nothing is inherited by descriptor number. The messages, and the fields of
//! [`HotRestartState`] except `own`, are frozen: they keep their meaning; new ones are only added, and have a default.

use crate::certificates::SavedOffer;
use crate::children::SavedChild;
use crate::link::{Link, Message, Received, PART};
use crate::listeners::Identity;
use crate::machine::saved::{Returned, Saved};
use crate::machine::ProcessId;
use crate::settings::{PausingSettings, Settings, SystemText};
use crate::signals;
use crate::versions::versions;
use fairlead_system::memory_file;
use fairlead_system::own_program;
use rustix::stdio::{dup2_stdin, stdin};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The format of [`HotRestartState`]. This program reads no other.
pub const FORMAT: u32 = 1;

/// Longest document, in bytes: its settings have an environment of 2 MiB at most.
const LONGEST: u64 = 32 * 1024 * 1024;

/// The name of the process, which an execution by descriptor would change.
const NAME: &str = "fairlead-superv";

/// The state of a supervisor as plain data. Descriptors are indexes into the list that is sent with it.
#[derive(Debug, Deserialize, Serialize)]
pub struct HotRestartState {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of Fairlead that has written the state.
    pub version: String,
    /// The processes and the restart; nothing if the same version continues.
    pub machine: Option<Saved>,
    /// The configuration in force, with all listeners.
    pub settings: Settings,
    /// The identities of the files of those listeners: for clients, of the control server, of the health endpoints, and the
    /// publish socket.
    pub socket_files: Vec<Option<Identity>>,
    /// The processes, with their links.
    pub children: Vec<SavedChild>,
    /// The certificates that the processes have.
    pub certificates: Vec<SavedOffer>,
    /// The report of the spawner with the new code.
    pub report: Option<Report>,
    /// The start of the server, in seconds since 1970.
    pub started_at: f64,
    /// The number of the last change of a restart, and its time.
    pub restart_changed_at: (u64, f64),
    /// The time of the last touch of the restart file.
    pub touched_at: Option<f64>,
    /// The schedule of the certificates from an authority. Entries that cannot be read start anew.
    #[serde(default)]
    pub acme: Option<Box<RawValue>>,
    /// The formats in which its workers send connections and clients to other workers (`SharedMemory::MOVES`). Nothing: they cannot
    /// send any to workers of another release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<[u32; 2]>,
    /// The pause, while requests wait.
    #[serde(default)]
    pub pause: Option<PausingSettings>,
    /// The last report to systemd.
    pub systemd: Option<crate::systemd::Told>,
    /// The pid file of a program that has called this library; see [`Caller`](crate::start::Caller).
    #[serde(default)]
    pub caller_pid_file: Option<SystemText>,
    /// Data that only the program that has written it can read.
    pub own: Box<RawValue>,
}

/// The report of a spawner of another version, sent with `ready`.
#[derive(Debug, Deserialize, Serialize)]
pub struct Report {
    /// Its settings.
    pub settings: usize,
    /// Its listeners.
    pub listeners: Vec<usize>,
    /// The memory that it has made for its workers.
    pub shared: Vec<usize>,
}

/// Descriptors to send with a hot restart state.
#[derive(Debug, Default)]
pub struct Luggage(Vec<OwnedFd>);

impl Luggage {
    /// Adds a copy of a descriptor; returns its index.
    ///
    /// # Errors
    /// If descriptors are short.
    pub fn add(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<usize> {
        self.0.push(descriptor.try_clone_to_owned()?);
        Ok(self.0.len() - 1)
    }
}

/// A hot restart state with its descriptors.
#[derive(Debug)]
pub struct Package {
    /// A file in memory.
    document: OwnedFd,
    descriptors: Vec<OwnedFd>,
}

impl Package {
    /// Writes a hot restart state.
    ///
    /// # Errors
    /// If memory or descriptors are short.
    pub fn write(hot_restart_state: &HotRestartState, luggage: Luggage) -> io::Result<Package> {
        let document = memory_file::constant("fairlead hot restart", &[&serde_json::to_vec(hot_restart_state)?])?;
        Ok(Package {
            document,
            descriptors: luggage.0,
        })
    }

    /// Reads the state.
    ///
    /// # Errors
    /// If it has another format, or is damaged: a sentence.
    pub fn read(&self) -> Result<HotRestartState, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let failed = |error: io::Error| format!("the state of the supervisor cannot be read: {error}");
        let unusable = |error: serde_json::Error| format!("the state of the supervisor cannot be used: {error}");
        let (mut file, mut text) = (File::from(self.document.try_clone().map_err(failed)?), Vec::new());
        file.rewind().map_err(failed)?;
        file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
        let Format { format } = serde_json::from_slice(&text).map_err(unusable)?;
        let own = versions().format;
        if format != own {
            return Err(format!(
                "the state of the supervisor has format {format}, and this program reads {own}"
            ));
        }
        serde_json::from_slice(&text).map_err(unusable)
    }

    /// Returns a copy of a descriptor.
    ///
    /// # Errors
    /// If the index is unknown, or descriptors are short: a sentence.
    pub fn descriptor(&self, index: usize) -> Result<OwnedFd, String> {
        let descriptor = self.descriptors.get(index);
        let descriptor = descriptor.ok_or("a descriptor is missing from the state of the supervisor")?;
        descriptor.try_clone().map_err(|error| error.to_string())
    }

    /// Returns copies of descriptors.
    ///
    /// # Errors
    /// Like [`Package::descriptor`].
    pub fn descriptors(&self, indexes: &[usize]) -> Result<Vec<OwnedFd>, String> {
        indexes.iter().map(|index| self.descriptor(*index)).collect()
    }

    fn send(&self, link: &Link, kind: &str, fields: &[&[u8]], program: Option<BorrowedFd<'_>>) -> bool {
        let first: Vec<BorrowedFd<'_>> = [self.document.as_fd()].into_iter().chain(program).collect();
        link.send(kind, fields, &first)
            && self.descriptors.chunks(PART).all(|part| {
                let part: Vec<BorrowedFd<'_>> = part.iter().map(AsFd::as_fd).collect();
                link.send("descriptors", &[], &part)
            })
            && link.send("handover_end", &[], &[])
    }

    /// Replaces this program by the program that has written this state, or a program of the same version. `program`:
    /// its descriptor.
    ///
    /// # Errors
    /// If that fails: a sentence.
    pub fn return_to(&self, program: BorrowedFd<'_>, reason: &str, news: &News) -> Result<Infallible, String> {
        let news = serde_json::to_vec(news).map_err(|error| error.to_string())?;
        let send = |link: &Link| self.send(link, "returned", &[reason.as_bytes(), &news], None);
        execute(send, &title(None), |arguments, environment| {
            own_program::execute(program, arguments, environment)
        })
    }

    /// Reads the messages after the first one.
    fn receive(document: OwnedFd, link: &Link) -> Result<Package, String> {
        let mut descriptors = Vec::new();
        loop {
            match link.receive() {
                Received::Message(message) if message.kind == "descriptors" => descriptors.extend(message.descriptors),
                Received::Message(message) if message.kind == "handover_end" => {
                    return Ok(Package { document, descriptors });
                }
                _ => return Err("the state of the supervisor is incomplete".into()),
            }
        }
    }
}

/// The state from another version.
#[derive(Debug)]
pub struct Arrival {
    /// The state.
    pub package: Package,
    /// The program that has sent it, which gets it back after a failure.
    former: OwnedFd,
}

/// The state that comes back from another version.
#[derive(Debug)]
pub struct Comeback {
    /// The state as it was sent.
    pub package: Package,
    /// The reason for its return.
    pub reason: String,
    /// The changes since then.
    pub news: News,
}

/// Changes since the state was sent.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct News {
    /// Changes for the machine.
    #[serde(flatten)]
    pub returned: Returned,
    /// The processes that still run; nothing if all do.
    #[serde(default)]
    pub present: Option<Vec<ProcessId>>,
    /// True if requests do not wait any longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// True if certificates must be reloaded as soon as there is a spawner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reload_waits: bool,
}

impl Arrival {
    /// Reads the messages after `first`.
    ///
    /// # Errors
    /// A sentence, if a message is missing.
    pub fn receive(first: Message, link: &Link) -> Result<Arrival, String> {
        let [document, former] =
            <[OwnedFd; 2]>::try_from(first.descriptors).map_err(|_| "the state of the supervisor is missing")?;
        Ok(Arrival {
            package: Package::receive(document, link)?,
            former,
        })
    }

    /// Replaces this program by the previous one.
    ///
    /// # Errors
    /// If that fails: a sentence.
    pub fn give_back(&self, reason: &str, news: &News) -> Result<Infallible, String> {
        self.package.return_to(self.former.as_fd(), reason, news)
    }
}

impl Comeback {
    /// Reads the messages after `first`.
    ///
    /// # Errors
    /// A sentence, if a message is missing.
    pub fn receive(first: Message, link: &Link) -> Result<Comeback, String> {
        let reason = first.text(0);
        let news = first.fields.get(1).and_then(|news| serde_json::from_slice(news).ok());
        let document = first.descriptors.into_iter().next();
        own_program::set_name(NAME);
        Ok(Comeback {
            package: Package::receive(document.ok_or("the state of the supervisor is missing")?, link)?,
            reason,
            news: news.unwrap_or_default(),
        })
    }
}

/// The program of another version.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// Its absolute path.
    pub path: PathBuf,
}

impl Program {
    /// Replaces this program by the program of the other version. `from`: the version of this program.
    ///
    /// # Errors
    /// If that fails: a sentence.
    pub fn take_over(&self, package: &Package, from: &str) -> Result<Infallible, String> {
        let own = own_program::open().map_err(|error| format!("the program of the supervisor: {error}"))?;
        let path = text(self.path.clone().into_os_string());
        let send = |link: &Link| package.send(link, "handover", &[], Some(own.as_fd()));
        execute(send, &title(Some((from, &self.version))), |arguments, environment| {
            nix::unistd::execve(&path, arguments, environment)
        })
        .map_err(|reason| format!("{}: {reason}", self.path.display()))
    }
}

/// Sends everything on a new standard input and executes a program. Restores all on failure.
fn execute(
    send: impl FnOnce(&Link) -> bool,
    title: &CString,
    execute: impl FnOnce(&[&CString], &[CString]) -> nix::Result<Infallible>,
) -> Result<Infallible, String> {
    let plain = |error: io::Error| crate::wording::reason(&error);
    let (far, near) = Link::pair().map_err(|error| plain(error.into()))?;
    let input = stdin().try_clone_to_owned().map_err(plain)?;
    let environment: Vec<CString> = std::env::vars_os()
        .map(|(name, value)| {
            let mut variable = name;
            variable.push("=");
            variable.push(value);
            text(variable)
        })
        .collect();
    if !far.send("stdin", &[], &[input.as_fd()]) || !send(&far) {
        return Err("its standard input accepts no message".into());
    }
    dup2_stdin(&near).map_err(|error| plain(error.into()))?;
    let Err(error) = signals::blocked_for(|| execute(&[title], &environment));
    let _ = dup2_stdin(&input);
    Err(plain(error.into()))
}

/// The title of the process, which may contain a version to change.
fn title(change: Option<(&str, &str)>) -> CString {
    let title = fairlead_system::own_program::title().into_vec();
    match (change, std::str::from_utf8(&title)) {
        (Some((from, to)), Ok(words)) => text(
            words
                .replacen(&format!("fairlead {from} "), &format!("fairlead {to} "), 1)
                .into(),
        ),
        _ => text(OsString::from_vec(title)),
    }
}

/// Texts from the system contain no NUL.
fn text(text: OsString) -> CString {
    CString::new(text.into_vec()).unwrap_or_default()
}
