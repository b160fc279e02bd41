//! All that the machine can have done.

use super::{Generation, Notice, ProcessId, RestartKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One thing to do. Each is tried once; what becomes of it comes back as an event, if the machine has to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Start a spawner, by running the command of the server. Answer: `SpawnerStarted` or `SpawnerNotStarted`.
    StartSpawner {
        /// Its name.
        spawner: ProcessId,
        /// Its generation.
        generation: Generation,
        /// What it is for.
        kind: SpawnKind,
    },
    /// Replace this program by the one of the version that the spawner has, which then supervises all processes. Answer:
    /// `NotReexecuted`, or none, because another machine goes on.
    Reexecute(ProcessId),
    /// Replace this program by the former one, which has started the generation that serves. There is no answer, because another
    /// machine goes on; it is decided again if that does not happen.
    Return,
    /// Prepare what the configuration of the ready spawner asks for (pid file, state file, control server): everything that can
    /// fail. Nothing of the former configuration is given up. Answer: `Adopted`.
    Adopt(Generation),
    /// The restart has succeeded: give up what only the former configuration has (addresses, files).
    Commit(Generation),
    /// The restart has failed: give up what only this configuration has, and go back to that of before.
    Revert(Generation),
    /// Have the spawner fork a worker; or, if the generation is a sole process, have it serve: then `worker` is another name of the
    /// process of `spawner`, and its end is told of both: first of the worker. `NotForked` if it could not be sent.
    Fork {
        /// The spawner, or the sole process.
        spawner: ProcessId,
        /// The name of the worker.
        worker: ProcessId,
        /// Its number among the workers. One that replaces it has the same.
        index: usize,
        /// Its slot of the scoreboard. While it is being replaced, the two have different ones. The loop clears it first.
        slot: usize,
    },
    /// Ask a worker to finish what has arrived and to end, while others go on.
    Drain(ProcessId),
    /// Ask a worker to accept for so long, then to empty the listeners and shut them down, and to finish what has arrived: the whole
    /// server ends.
    EndWorker(ProcessId, Duration),
    /// Ask a worker to abort its requests and to end.
    StopWorker(ProcessId),
    /// Tell a worker that does not listen, through the scoreboard, that it is going to be killed.
    GiveUp(ProcessId),
    /// Ask a worker to stop serving and to become the spawner of that generation.
    Promote(ProcessId, Generation),
    /// Ask a spawner to end.
    EndSpawner(ProcessId),
    /// Ask a spawner to close its listeners: the server ends.
    CloseListenersOf(ProcessId),
    /// Tell the spawner of the current generation that all its workers serve: once for each generation.
    TellBooted(ProcessId),
    /// Tell a ready spawner that its generation is the current one from now on: it looks after certificates.
    TellCurrent(ProcessId),
    /// Tell a spawner that a restart is going to replace it.
    TellRestarting(ProcessId),
    /// Tell a spawner that a worker (its index) is lost, without having been asked to end.
    TellLost(ProcessId, usize),
    /// Kill a process. One that has no process id yet loses its link, so that it ends as soon as it is forked; then its end is told
    /// at once.
    Kill(ProcessId),
    /// Stop listening, in all processes: the server ends, and no worker is there that empties the listeners.
    CloseListeners,
    /// All workers serve for the first time.
    Announce,
    /// What was asked for is not done, and why. Only in the answer to `Asked`.
    Refuse(String),
    /// A line for the log.
    Log(Notice),
    /// Everything has ended: leave the loop.
    Finish {
        /// The exit status.
        status: i32,
        /// Why the server was defeated, if it has never served.
        defeat: Option<String>,
    },
}

/// What a spawner is started for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub enum SpawnKind {
    /// To bring in new code.
    Restart(RestartKind),
    /// To take the place of one that was lost: with the certificates of the processes that serve.
    Replacement,
}
