//! The supervisor's interface for the control server.

use super::status::Status;
use fairlead_engine::Scoreboard;
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Provides the state of the server to a [`ControlServer`](super::ControlServer), and runs its commands. No method may
/// block.
pub trait Host {
    /// The state of the server and its processes.
    fn status(&self) -> Status;

    /// The counters of all workers; `None` if there are none.
    fn scoreboard(&self) -> Option<&Scoreboard>;

    /// The memory of the processes, a few seconds old; empty at first, because the call only begins to read it.
    fn memory(&mut self) -> Vec<ProcessMemory>;

    /// The memory of the control group of the server; `None` if the system does not count it.
    fn cgroup_memory(&self) -> Option<CgroupMemory>;

    /// Makes a request to the server. An error is the reason of a refusal, in one line.
    fn ask(&mut self, asked: Asked) -> Result<(), String>;

    /// Sends a question to the current spawner, or to the sole process. Returns the read end of a pipe for the answer:
    /// any JSON, and then the end of file. `None` if no process can be asked now.
    fn ask_ruby(&mut self, question: Question) -> Option<OwnedFd>;

    /// Asks each worker, or the sole process, for the backtraces of its threads. `only`: the process to ask; `None` for
    /// all.
    fn ask_workers(&mut self, only: Option<i32>) -> Vec<WorkerAnswer>;

    /// Logs a failure of the control server itself.
    fn failed(&mut self, reason: &str);
}

/// The memory of a control group: of a container or a service, with the files that the kernel keeps in memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CgroupMemory {
    /// The memory in use.
    pub memory_bytes: u64,
    /// The smallest limit of the group and the groups around it; `None` if there is none.
    pub memory_max_bytes: Option<u64>,
}

/// The memory of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The process.
    pub of: MemoryOf,
    /// Its proportional set size.
    pub bytes: u64,
}

/// A process of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOf {
    /// The supervisor.
    Supervisor,
    /// The spawner of a generation.
    Spawner {
        /// Its generation.
        generation: u32,
    },
    /// A worker, or the sole process.
    Worker {
        /// Its index.
        index: usize,
        /// Its slot.
        slot: usize,
    },
}

/// A request to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Finish open requests, and end.
    Stop,
    /// End at once.
    Halt,
    /// A hot restart.
    Restart,
    /// A phased restart.
    PhasedRestart,
    /// A refork.
    Refork,
    /// Reopen the log files.
    ReopenLogs,
    /// Reload the certificates.
    ReloadCertificates,
    /// Have new requests wait, each for this time at most; for the configured time, if there is none.
    Pause(Option<Duration>),
    /// End a pause.
    Resume,
    /// Add a worker.
    AddWorker,
    /// Remove a worker.
    RemoveWorker,
    /// Log the backtraces of all processes.
    Backtraces,
}

/// A question that only Ruby can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Collect garbage; any JSON means that it is done.
    Gc,
    /// The statistics of garbage collection.
    GcStats,
    /// The backtraces of the threads, in Puma's form.
    ThreadBacktraces,
}

impl Question {
    /// The name in the message `ask_ruby`.
    pub fn name(self) -> &'static str {
        match self {
            Question::Gc => "gc",
            Question::GcStats => "gc-stats",
            Question::ThreadBacktraces => "thread-backtraces",
        }
    }
}

/// A worker that was asked for its backtraces.
#[derive(Debug)]
pub struct WorkerAnswer {
    /// Its index; `None` for a sole process.
    pub worker: Option<usize>,
    /// Its process; `None` while it is being forked.
    pub pid: Option<i32>,
    /// The pipe with the answer; `None` if the worker could not be asked.
    pub pipe: Option<OwnedFd>,
}
