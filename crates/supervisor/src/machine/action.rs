//! All actions of the machine.

use super::{Generation, Notice, ProcessId, Refork, RestartKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One action. Each is tried once; if the machine needs the result, it comes back as an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Start a spawner, by running the command of the server. Result: `SpawnerStarted` or `SpawnerNotStarted`.
    StartSpawner {
        /// Its name.
        spawner: ProcessId,
        /// Its generation.
        generation: Generation,
        /// The purpose of the spawner.
        kind: SpawnKind,
    },
    /// Replace this program by the program of the spawner's version, which then supervises all processes. Result:
    /// `NotReexecuted`, or none, because another machine continues.
    Reexecute(ProcessId),
    /// Replace this program by the previous one, which has started the serving generation. There is no result, because
    /// another machine continues; if that does not happen, the machine decides again.
    Return,
    /// Prepare the resources of the ready spawner's configuration (pid file, state file, control server): everything
    /// that can fail. The previous configuration keeps all of its resources. Result: `Adopted`.
    Adopt(Generation),
    /// The restart has succeeded: give up the resources that only the previous configuration has (addresses, files).
    Commit(Generation),
    /// The restart has failed: give up the resources that only this configuration has, and return to the previous one.
    Revert(Generation),
    /// Have the spawner fork a worker. If the generation is a sole process, have it serve: then `worker` is another
    /// name of the process of `spawner`, and its end is reported for both names, first for the worker. `NotForked` if
    /// the message could not be sent.
    Fork {
        /// The spawner, or the sole process.
        spawner: ProcessId,
        /// The name of the worker.
        worker: ProcessId,
        /// Its number among the workers. A replacement has the same number.
        index: usize,
        /// Its slot of the scoreboard. The replacement has a different slot. The loop clears the slot first.
        slot: usize,
    },
    /// Ask a worker to finish open requests and to end, while other workers continue. It has this time for them, or
    /// `shutdown_timeout` from now on if that is longer. Zero also shortens the time that it was given before.
    Drain(ProcessId, Duration),
    /// The same, and clients that cannot migrate stay that long, too.
    DrainPatiently(ProcessId, Duration),
    /// Ask a worker to accept for this time, then to empty the listeners and shut them down, and to finish open
    /// requests: the whole server ends.
    EndWorker(ProcessId, Duration),
    /// Ask a worker to abort its requests and to end.
    StopWorker(ProcessId),
    /// Tell a worker that does not respond, through the scoreboard, that it is about to be killed.
    GiveUp(ProcessId),
    /// Ask a worker to stop serving and to become the spawner of this generation.
    Promote(ProcessId, Generation, Refork),
    /// Ask a spawner to end.
    EndSpawner(ProcessId),
    /// Ask a spawner to close its listeners: the server ends.
    CloseListenersOf(ProcessId),
    /// Tell the spawner of the current generation that all its workers serve: once for each generation.
    TellBooted(ProcessId),
    /// Tell a ready spawner that its generation is now the current one: it looks after certificates.
    TellCurrent(ProcessId),
    /// Tell a spawner that a restart is about to replace it.
    TellRestarting(ProcessId),
    /// Tell a spawner that a worker (its index) is lost, without a request to end.
    TellLost(ProcessId, usize),
    /// Kill a process. A process without an id yet loses its link, so that it ends as soon as it is forked; its end is
    /// then reported at once.
    Kill(ProcessId),
    /// Stop listening, in all processes: the server ends, and no worker is left that could empty the listeners.
    CloseListeners,
    /// All workers serve for the first time.
    Announce,
    /// Refuse a request, with the reason. Only as a result of `Asked`.
    Refuse(String),
    /// A log line.
    Log(Notice),
    /// Everything has ended: leave the loop.
    Finish {
        /// The exit status.
        status: i32,
        /// The reason why the server has failed, if it has never served.
        defeat: Option<String>,
    },
}

/// The purpose of a spawner.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub enum SpawnKind {
    /// To bring in new code.
    Restart(RestartKind),
    /// To replace a lost spawner: with the certificates of the serving processes.
    Replacement,
}
