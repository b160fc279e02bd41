//! The state of a server and its processes, for users and programs.

use super::restart_counts::{kind_name, RestartCounts};
use crate::machine::{RecycleReason, RestartKind};
use crate::settings::RubySettings;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};

/// A snapshot of the server.
#[derive(Clone, Debug)]
pub struct Status {
    /// The process of the supervisor.
    pub pid: u32,
    /// Its state.
    pub state: ServerState,
    /// The current generation; 0 before there is one.
    pub generation: u32,
    /// The time of the start.
    pub started_at: SystemTime,
    /// The configured number of workers; 0 for a sole process.
    pub workers: usize,
    /// The running restart, or the last one.
    pub restart: Option<Restart>,
    /// The numbers of restarts.
    pub restarts: RestartCounts,
    /// The pause, while requests wait.
    pub pause: Option<Paused>,
    /// The workers replaced since the start, by reason.
    pub recycled: Vec<(RecycleReason, u64)>,
    /// The automatic reforks.
    pub refork: ReforkEffect,
    /// All workers, or the sole process, by slot, including ending ones.
    pub children: Vec<Child>,
    /// The addresses for clients: "http://127.0.0.1:9292".
    pub addresses: Vec<String>,
    /// The option max_threads.
    pub max_threads: usize,
    /// The version of Fairlead.
    pub version: String,
    /// The Ruby that runs the application.
    pub ruby: RubySettings,
    /// The certificates from an authority, if there are any.
    pub acme: Option<Box<RawValue>>,
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// Not all workers have served yet.
    Starting,
    /// It serves.
    Ready,
    /// It serves, while a restart is under way.
    Restarting,
    /// It ends.
    Draining,
}

/// The automatic reforks of the loaded code, and the effect of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReforkEffect {
    /// Their number.
    pub reforks: u32,
    /// Bytes of memory of all processes before and after the last one, with as many requests served.
    pub memory: Option<[u64; 2]>,
}

/// A pause of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    /// The longest wait of a request.
    pub timeout: Duration,
    /// The time until it ends by itself.
    pub left: Duration,
}

/// A restart.
#[derive(Clone, Debug)]
pub struct Restart {
    /// Its kind.
    pub kind: RestartKind,
    /// Its state.
    pub state: RestartState,
    /// The reason of a failure.
    pub error: Option<String>,
    /// The time of the start, or of the end.
    pub at: SystemTime,
}

/// The state of a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RestartState {
    /// It is under way.
    Running,
    /// All workers have the new code.
    Done,
    /// All workers have the old code.
    Failed,
}

/// A worker, or the sole process.
#[derive(Clone, Debug)]
pub struct Child {
    /// Its number among the workers.
    pub index: usize,
    /// Its slot of the scoreboard.
    pub slot: usize,
    /// Its process; `None` while it is being forked.
    pub pid: Option<i32>,
    /// Its generation.
    pub generation: u32,
    /// It serves.
    pub booted: bool,
    /// It was asked to end.
    pub ending: bool,
    /// The time of its start.
    pub started_at: SystemTime,
    /// Seconds since its last heartbeat; `None` before the first.
    pub heartbeat_age: Option<f64>,
}

impl Restart {
    /// The name of its kind, for programs.
    pub(super) fn kind_name(&self) -> &'static str {
        kind_name(self.kind)
    }
}

impl Child {
    /// Returns true if it takes requests.
    pub fn serves(&self) -> bool {
        self.booted && !self.ending
    }

    /// The name of its state.
    pub(super) fn state_name(&self) -> &'static str {
        match (self.booted, self.ending) {
            (_, true) => "ending",
            (true, false) => "serving",
            (false, false) => "booting",
        }
    }
}

impl Status {
    /// Returns true for workers, false for a sole process.
    pub(super) fn has_workers(&self) -> bool {
        self.workers > 0
    }

    /// The sole process. During a restart there are two: this is the newest serving one, or else the newest one.
    pub(super) fn sole(&self) -> Option<&Child> {
        self.children
            .iter()
            .max_by_key(|child| (child.serves(), child.generation))
    }
}
