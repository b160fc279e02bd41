//! All that the machine learns.

use super::{Generation, ProcessId};
use crate::settings::Limits;
use nix::sys::signal::Signal;
use serde::{Deserialize, Deserializer, Serialize};
use std::str::FromStr;

/// One thing that has happened. Unless it says otherwise, an event about a process that the machine no longer knows is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Somebody asks for something: by a signal, through the control server, or from a process of the server.
    Asked(Command),
    /// [`Action::StartSpawner`](super::Action::StartSpawner) has made a process. It loads the application.
    SpawnerStarted(ProcessId),
    /// [`Action::StartSpawner`](super::Action::StartSpawner) has failed: no process, descriptor or memory.
    SpawnerNotStarted(ProcessId, String),
    /// The spawner has loaded the application. Its configuration asks for these limits.
    SpawnerReady(ProcessId, Limits),
    /// The spawner has loaded the application, and has that other version of Fairlead, which cannot share with this one.
    OtherVersionReady(ProcessId, String),
    /// The program of another version has not taken the place of this one, for the sake of that spawner, or has given everything back;
    /// and why.
    NotReexecuted(ProcessId, String),
    /// The spawner (or the sole process) is alive.
    SpawnerAlive(ProcessId),
    /// The spawner cannot load the application or its configuration. Its process is going to end.
    SpawnerFailed(ProcessId, String),
    /// The process has ended. Its status was taken.
    Ended(ProcessId, End),
    /// [`Action::Adopt`](super::Action::Adopt) has succeeded, or why it has not.
    Adopted(Generation, Result<(), String>),
    /// [`Action::Fork`](super::Action::Fork) could not even be sent.
    NotForked(ProcessId, String),
    /// The worker has a process of its own.
    Forked(ProcessId),
    /// The worker serves.
    Booted(ProcessId),
    /// The worker, or a sole process, cannot serve. Its process is going to end.
    BootFailed(ProcessId, String),
    /// The worker is alive.
    WorkerAlive(ProcessId),
    /// The worker has stopped serving, and is the spawner of the generation from now on. It keeps its [`ProcessId`].
    Promoted(ProcessId),
    /// A worker still has former certificates: it is to be replaced.
    Behind(ProcessId),
    /// No request has come for `idle_timeout`.
    Idle,
    /// A worker of the current generation has served `refork_after` requests.
    Warm,
    /// Time has passed. The loop sends it when [`Machine::deadline`](super::Machine::deadline) has passed, after all other events of that
    /// turn, so that a sign of life that has arrived is seen first; it may send it at any time.
    Tick,
}

/// What people and programs can ask for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Finish what has arrived, and end. A second one, if `hurry`, ends at once.
    Stop {
        /// TERM, INT, HUP or the command: for the log and the exit status.
        reason: StopReason,
        /// Whether it ends the server at once if that is ending already (see `Insistence`; the loop decides).
        hurry: bool,
    },
    /// End at once, and abort all requests.
    Halt(StopReason),
    /// Replace all processes by new ones.
    Restart(RestartKind),
    /// One worker more.
    AddWorker,
    /// One worker less.
    RemoveWorker,
}

/// Why the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub enum StopReason {
    /// A signal, by its name without SIG.
    Signal(&'static str),
    /// The control server, or a process of the server.
    Command,
    /// There was nothing to do.
    Idle,
}

impl StopReason {
    /// The number of the signal; 0 if it was none.
    pub(super) fn number(self) -> i32 {
        match self {
            StopReason::Signal(name) => Signal::from_str(&format!("SIG{name}")).map_or(0, |signal| signal as i32),
            StopReason::Command | StopReason::Idle => 0,
        }
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> String {
        reason.of_stop().to_owned()
    }
}

impl<'a> Deserialize<'a> for StopReason {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<StopReason, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.as_str() {
            "stop" => StopReason::Command,
            "idle" => StopReason::Idle,
            name => {
                let signal = Signal::from_str(&format!("SIG{name}")).map_err(serde::de::Error::custom)?;
                StopReason::Signal(&signal.as_str()["SIG".len()..])
            }
        })
    }
}

/// Which restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum RestartKind {
    /// A worker that has served becomes the spawner, and the others become copies of it.
    Refork,
    /// New code, with the addresses, the logs and the number of workers of before (USR1).
    Phased,
    /// New code and a new configuration (USR2).
    Hot,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub enum End {
    /// Its exit status.
    Exited(i32),
    /// The number of the signal that has killed it.
    Killed(i32),
    /// Some other code has taken its status, or it was no child yet.
    Unknown,
}

impl std::fmt::Display for End {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            End::Exited(status) => write!(to, "exit status {status}"),
            End::Killed(number) => match Signal::try_from(number) {
                Ok(signal) => write!(to, "killed by {signal}"),
                Err(_) => write!(to, "killed by signal {number}"),
            },
            End::Unknown => to.write_str("unknown status"),
        }
    }
}
