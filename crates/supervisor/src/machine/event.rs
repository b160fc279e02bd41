//! All events of the machine.

use super::{Generation, ProcessId};
use crate::settings::Limits;
use nix::sys::signal::Signal;
use serde::{Deserialize, Deserializer, Serialize};
use std::str::FromStr;

/// One event. Unless stated otherwise, an event about a process that the machine no longer knows is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A request: by a signal, through the control server, or from a process of the server.
    Asked(Command),
    /// [`Action::StartSpawner`](super::Action::StartSpawner) has made a process. It loads the application.
    SpawnerStarted(ProcessId),
    /// [`Action::StartSpawner`](super::Action::StartSpawner) has failed: no process, descriptor or memory.
    SpawnerNotStarted(ProcessId, String),
    /// The spawner has loaded the application. Its configuration has these limits.
    SpawnerReady(ProcessId, Limits),
    /// The spawner has loaded the application, and has another version of Fairlead, which is incompatible with this
    /// one.
    OtherVersionReady(ProcessId, String),
    /// The program of another version has not replaced this one for this spawner, or has returned everything; with the
    /// reason.
    NotReexecuted(ProcessId, String),
    /// The spawner (or the sole process) is alive.
    SpawnerAlive(ProcessId),
    /// The spawner cannot load the application or its configuration. Its process is about to end.
    SpawnerFailed(ProcessId, String),
    /// The process has ended. Its status was taken.
    Ended(ProcessId, End),
    /// [`Action::Adopt`](super::Action::Adopt) has succeeded, or the reason why it has not.
    Adopted(Generation, Result<(), String>),
    /// [`Action::Fork`](super::Action::Fork) could not be sent.
    NotForked(ProcessId, String),
    /// The worker has a process of its own.
    Forked(ProcessId),
    /// The worker serves.
    Booted(ProcessId),
    /// The worker, or a sole process, cannot serve. Its process is about to end.
    BootFailed(ProcessId, String),
    /// The worker is alive.
    WorkerAlive(ProcessId),
    /// The worker has finished its requests. Only its hooks and the end of its process are left, or it becomes a spawner.
    Finished(ProcessId),
    /// The worker has stopped serving, and is now the spawner of the generation. It keeps its [`ProcessId`].
    Promoted(ProcessId),
    /// A worker still has the previous certificates: it must be replaced.
    Behind(ProcessId),
    /// A worker must be replaced, for this reason; the text has the figures for the log. The loop repeats it while it
    /// holds.
    Recycle(ProcessId, RecycleReason, String),
    /// No request has come for `idle_timeout`.
    Idle,
    /// An automatic refork is due, and this worker has served most. The loop sends it when nothing else is under way.
    Warm(ProcessId),
    /// Time has passed. The loop sends it when [`Machine::deadline`](super::Machine::deadline) has passed, after all
    /// other events of that turn, so that a heartbeat that has arrived is seen first; it may send it at any time.
    Tick,
}

/// Requests of users and programs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Finish open requests, and end. A second one, if `hurry`, ends at once.
    Stop {
        /// TERM, INT, HUP or the command: for the log and the exit status.
        reason: StopReason,
        /// True if it ends a stopping server at once (see `Insistence`; the loop decides).
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

/// The reason for the end of the server.
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
    /// The number of the signal; 0 if there was none.
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

/// The kind of a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum RestartKind {
    /// A worker that has served becomes the spawner, and copies of it replace the others.
    Refork,
    /// New code, with the same addresses, logs and number of workers (USR1).
    Phased,
    /// New code and a new configuration (USR2).
    Hot,
}

/// The cause of a refork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Refork {
    /// A command, or a signal.
    Asked,
    /// Workers have served `refork_after` requests. It fails if the worker has threads or connections that copies must not have.
    Automatic,
}

impl Refork {
    /// Its name for a worker.
    pub fn name(self) -> &'static str {
        match self {
            Refork::Asked => "asked",
            Refork::Automatic => "automatic",
        }
    }
}

/// The reason for which a single worker is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecycleReason {
    /// Requests have run for longer than `stuck_after`.
    Stuck,
    /// It uses more memory than `worker_max_memory`.
    Memory,
    /// It has served `worker_max_requests`.
    Requests,
    /// It has served for `worker_max_age`.
    Age,
}

impl RecycleReason {
    /// All reasons, the most urgent first.
    pub const ALL: [RecycleReason; 4] = [
        RecycleReason::Stuck,
        RecycleReason::Memory,
        RecycleReason::Requests,
        RecycleReason::Age,
    ];

    /// Its name in `/status`.
    pub fn name(self) -> &'static str {
        match self {
            RecycleReason::Stuck => "stuck",
            RecycleReason::Memory => "memory",
            RecycleReason::Requests => "requests",
            RecycleReason::Age => "age",
        }
    }
}

/// The end of a process.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub enum End {
    /// Its exit status.
    Exited(i32),
    /// The number of the signal that has killed it.
    Killed(i32),
    /// Other code has taken its status, or it was no child yet.
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
