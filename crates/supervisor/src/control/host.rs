//! The supervisor, as the control server sees it.

use super::status::Status;
use fairlead_engine::Scoreboard;
use std::os::fd::OwnedFd;

/// Answers the questions of a [`ControlServer`](super::ControlServer), and takes its commands. Nothing here may block.
pub trait Host {
    /// The state of the server and its processes.
    fn status(&self) -> Status;

    /// The counters of all workers; `None` if there are none.
    fn scoreboard(&self) -> Option<&Scoreboard>;

    /// Asks the server for something. An error is the reason why it refuses, in one line.
    fn ask(&mut self, asked: Asked) -> Result<(), String>;

    /// Passes a question on to the current spawner, or to the sole process. Returns the end of a pipe for reading, from
    /// which the answer will come: any JSON, and then the end of file. `None` if nothing can be asked at the moment.
    fn ask_ruby(&mut self, question: Question) -> Option<OwnedFd>;

    /// Asks each worker, or the sole process, for the backtraces of its threads.
    fn ask_workers(&mut self) -> Vec<WorkerAnswer>;

    /// Logs a failure of the control server itself.
    fn failed(&mut self, reason: &str);
}

/// A request to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To finish what has arrived, and to end.
    Stop,
    /// To end at once.
    Halt,
    /// A hot restart.
    Restart,
    /// A phased restart.
    PhasedRestart,
    /// A refork.
    Refork,
    /// To reopen the log files.
    ReopenLogs,
    /// To read the certificates again.
    ReloadCertificates,
    /// One worker more.
    AddWorker,
    /// One worker less.
    RemoveWorker,
    /// To log the backtraces of all processes.
    Backtraces,
}

/// A question that only Ruby can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Collect garbage; any JSON says that it is done.
    Gc,
    /// The statistics of garbage collection.
    GcStats,
    /// The backtraces of the threads, in Puma's form.
    ThreadBacktraces,
}

impl Question {
    /// Its name in the message `ask_ruby`.
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
    /// Where the answer comes from; `None` if the worker could not be asked.
    pub pipe: Option<OwnedFd>,
}
