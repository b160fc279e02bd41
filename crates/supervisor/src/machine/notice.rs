//! The log lines of the machine.

use super::{End, Generation, ProcessId, RecycleReason, RestartKind, StopReason};
use std::fmt::{self, Display};
use std::time::Duration;

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Normal operation.
    Info,
    /// A problem; the server continues.
    Warn,
}

/// The loop's knowledge of processes, for the texts of lines. It still knows a process when a line about the process's
/// end is written.
pub trait Names {
    /// The process id, if it is known yet.
    fn pid(&self, process: ProcessId) -> Option<i32>;
    /// The threads of a process, as the kernel reports them; empty if it does not.
    fn threads(&self, process: ProcessId) -> String;
    /// True for the process of the supervisor itself, which is not killed.
    fn is_resident(&self, process: ProcessId) -> bool;
    /// Seconds without a request after which the server ends.
    fn idle_timeout(&self) -> f64;
}

/// A worker, for a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerName {
    /// Its name within the supervisor.
    pub id: ProcessId,
    /// Its number among the workers.
    pub index: usize,
}

/// A log line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the texts explain the fields
pub enum Notice {
    WorkerBooted {
        worker: WorkerName,
        after: Duration,
    },
    WorkerFailedToBoot {
        index: usize,
        reason: String,
    },
    WorkerEnded {
        worker: WorkerName,
        end: End,
    },
    WorkerBootTimedOut {
        worker: WorkerName,
        after: Duration,
    },
    WorkerHung {
        worker: WorkerName,
        after: Duration,
        /// False if it retires.
        is_replaced: bool,
    },
    WorkerKilled {
        worker: WorkerName,
    },
    WorkerNotAdded {
        reason: String,
    },
    WorkerRecycled {
        worker: WorkerName,
        reason: RecycleReason,
        /// The figures.
        detail: String,
    },
    WorkerNotRecycled {
        worker: WorkerName,
        reason: String,
        after: Duration,
    },
    WorkersWanted {
        count: usize,
    },
    WorkersAtLimit {
        count: usize,
        /// True during an automatic refork.
        reforks: bool,
    },
    LastWorkerKept,
    NextAttempt {
        after: Duration,
    },
    SpawnerLost {
        generation: Generation,
        reason: String,
        /// True if it belongs to the previous program, to which this one may return.
        is_borrowed: bool,
    },
    SpawnerHung {
        generation: Generation,
        spawner: ProcessId,
        after: Duration,
    },
    SpawnerKilled {
        generation: Generation,
    },
    SpawnerSlow {
        generation: Generation,
        spawner: ProcessId,
        after: Duration,
    },
    SpawnerOverdue {
        generation: Generation,
        after: Duration,
    },
    /// The process of a server without workers.
    SoleLost {
        process: ProcessId,
        reason: String,
    },
    /// A process has not ended after SIGKILL.
    Unkillable {
        process: ProcessId,
    },
    /// The server ends without waiting for a killed process.
    Abandoned {
        process: ProcessId,
    },
    RestartGivesWay {
        to: RestartKind,
        kind: RestartKind,
    },
    RestartBegun {
        kind: RestartKind,
        generation: Generation,
    },
    RestartDone {
        kind: RestartKind,
        generation: Generation,
        /// True for a server without workers.
        sole: bool,
    },
    RestartFailed {
        kind: RestartKind,
        generation: Generation,
        reason: String,
    },
    RestartRefused {
        reason: String,
    },
    /// The program of another version is about to supervise.
    OtherVersion {
        version: String,
    },
    ReforkBegun {
        worker: WorkerName,
    },
    ReforkHurried,
    ReforkRefused {
        reason: &'static str,
    },
    PhasedRestartNeedsWorkers,
    NeedsWorkers {
        request: &'static str,
    },
    Draining {
        reason: StopReason,
        timeout: Duration,
        delay: Duration,
    },
    StoppingAtOnce {
        reason: StopReason,
    },
    Idle,
}

impl Notice {
    /// The event's name in logs of JSON.
    pub fn event(&self) -> &'static str {
        match self {
            Notice::WorkerBooted { .. } => "worker_booted",
            Notice::WorkerFailedToBoot { .. } => "worker_failed_to_boot",
            Notice::WorkerEnded { .. } => "worker_ended",
            Notice::WorkerBootTimedOut { .. } => "worker_boot_timed_out",
            Notice::WorkerHung { .. } => "worker_hung",
            Notice::WorkerKilled { .. } => "worker_killed",
            Notice::WorkerNotAdded { .. } => "worker_not_added",
            Notice::WorkerRecycled { .. } => "worker_recycled",
            Notice::WorkerNotRecycled { .. } => "worker_not_recycled",
            Notice::WorkersWanted { .. } => "workers_wanted",
            Notice::WorkersAtLimit { .. } => "workers_at_limit",
            Notice::LastWorkerKept => "last_worker_kept",
            Notice::NextAttempt { .. } => "next_attempt",
            Notice::SpawnerLost { .. } => "spawner_lost",
            Notice::SpawnerHung { .. } => "spawner_hung",
            Notice::SpawnerKilled { .. } => "spawner_killed",
            Notice::SpawnerSlow { .. } => "spawner_slow",
            Notice::SpawnerOverdue { .. } => "spawner_overdue",
            Notice::SoleLost { .. } => "sole_lost",
            Notice::Unkillable { .. } => "process_unkillable",
            Notice::Abandoned { .. } => "process_abandoned",
            _ => self.event_of_server(),
        }
    }

    fn event_of_server(&self) -> &'static str {
        match self {
            Notice::RestartGivesWay { .. } => "restart_gives_way",
            Notice::RestartBegun { .. } => "restart_begun",
            Notice::RestartDone { .. } => "restart_done",
            Notice::RestartFailed { .. } => "restart_failed",
            Notice::RestartRefused { .. } => "restart_refused",
            Notice::OtherVersion { .. } => "other_version",
            Notice::ReforkBegun { .. } => "refork_begun",
            Notice::ReforkHurried => "refork_hurried",
            Notice::ReforkRefused { .. } => "refork_refused",
            Notice::PhasedRestartNeedsWorkers => "phased_restart_needs_workers",
            Notice::NeedsWorkers { .. } => "needs_workers",
            Notice::Draining { .. } => "draining",
            Notice::StoppingAtOnce { .. } => "stopping_at_once",
            _ => "idle",
        }
    }

    /// The severity of the line.
    pub fn level(&self) -> Level {
        match self {
            Notice::WorkerRecycled { reason, .. } if *reason == RecycleReason::Stuck => Level::Warn,
            Notice::WorkerBooted { .. }
            | Notice::WorkerRecycled { .. }
            | Notice::WorkersWanted { .. }
            | Notice::RestartGivesWay { .. }
            | Notice::RestartBegun { .. }
            | Notice::RestartDone { .. }
            | Notice::OtherVersion { .. }
            | Notice::ReforkBegun { .. }
            | Notice::ReforkHurried
            | Notice::PhasedRestartNeedsWorkers
            | Notice::Draining { .. }
            | Notice::StoppingAtOnce { .. }
            | Notice::Idle => Level::Info,
            _ => Level::Warn,
        }
    }

    /// The text of the line.
    pub fn text(&self, names: &dyn Names) -> String {
        match self {
            Notice::RestartGivesWay { .. }
            | Notice::RestartBegun { .. }
            | Notice::RestartDone { .. }
            | Notice::RestartFailed { .. }
            | Notice::RestartRefused { .. }
            | Notice::OtherVersion { .. }
            | Notice::ReforkBegun { .. }
            | Notice::ReforkHurried
            | Notice::ReforkRefused { .. }
            | Notice::PhasedRestartNeedsWorkers => self.restart_text(names),
            Notice::SpawnerLost { .. }
            | Notice::SpawnerHung { .. }
            | Notice::SpawnerKilled { .. }
            | Notice::SpawnerSlow { .. }
            | Notice::SpawnerOverdue { .. }
            | Notice::SoleLost { .. }
            | Notice::Unkillable { .. }
            | Notice::Abandoned { .. } => self.process_text(names),
            Notice::NeedsWorkers { .. } | Notice::Draining { .. } | Notice::StoppingAtOnce { .. } | Notice::Idle => {
                self.server_text(names)
            }
            _ => self.worker_text(names),
        }
    }

    fn worker_text(&self, names: &dyn Names) -> String {
        match self {
            Notice::WorkerBooted { worker, after } => {
                let seconds = format!("{:.1} s", after.as_secs_f64());
                match names.pid(worker.id) {
                    Some(pid) => format!("worker {} booted (pid {pid}, {seconds})", worker.index),
                    None => format!("worker {} booted ({seconds})", worker.index),
                }
            }
            Notice::WorkerFailedToBoot { index, reason } => format!("worker {index} cannot start: {reason}"),
            Notice::WorkerEnded { worker, end } => format!("{} ended unexpectedly: {end}", worker.text(names)),
            Notice::WorkerBootTimedOut { worker, after } => {
                format!(
                    "{} is not ready after {} s; replacing it",
                    worker.text(names),
                    Seconds(*after)
                )
            }
            Notice::WorkerHung {
                worker,
                after,
                is_replaced,
            } => {
                let threads = names.threads(worker.id);
                let threads = if threads.is_empty() {
                    threads
                } else {
                    format!(" (its threads: {threads})")
                };
                let (name, after) = (worker.text(names), Seconds(*after));
                let ending = if *is_replaced { "replacing" } else { "killing" };
                format!("{name} has shown no sign of life for {after} s; {ending} it{threads}")
            }
            Notice::WorkerKilled { worker } if names.is_resident(worker.id) => {
                "the application of this process did not end in time; closing its connections".to_owned()
            }
            Notice::WorkerKilled { worker } => format!("{} did not end in time; killing it", worker.text(names)),
            Notice::WorkerNotAdded { reason } => format!("cannot add a worker: {reason}"),
            Notice::WorkerRecycled { worker, detail, .. } => {
                format!("recycling {}: {detail}", worker.text(names))
            }
            Notice::WorkerNotRecycled { worker, reason, after } => format!(
                "{} goes on, its replacement did not start: {reason}; trying again in {} s",
                worker.text(names),
                Seconds(*after)
            ),
            Notice::WorkersWanted { count: 1 } => "changing to 1 worker".to_owned(),
            Notice::WorkersWanted { count } => format!("changing to {count} workers"),
            Notice::WorkersAtLimit { count, reforks } => {
                let when = if *reforks {
                    " during an automatic refork; try again later"
                } else {
                    ""
                };
                format!("cannot add a worker: {count} is the maximum{when}")
            }
            Notice::LastWorkerKept => "the last worker cannot be removed".to_owned(),
            Notice::NextAttempt { after } => {
                format!(
                    "workers end right after their start; starting the next one in {} s",
                    Seconds(*after)
                )
            }
            _ => String::new(),
        }
    }

    fn process_text(&self, names: &dyn Names) -> String {
        let pid = |process: &ProcessId| {
            names
                .pid(*process)
                .map_or_else(String::new, |pid| format!(" (pid {pid})"))
        };
        match self {
            Notice::SpawnerLost { generation, reason, is_borrowed } => {
                let next = if *is_borrowed { "another one starts if the restart fails" } else { "starting another one" };
                format!("the spawner of generation {generation} is lost, {next}: {reason}")
            }
            Notice::SpawnerHung { generation, spawner, after } => format!(
                "the spawner of generation {generation}{} has shown no sign of life for {} s; killing it",
                pid(spawner),
                Seconds(*after)
            ),
            Notice::SpawnerKilled { generation } => {
                format!("the spawner of generation {generation} did not end in time; killing it")
            }
            Notice::SpawnerSlow { generation, spawner, after } => format!(
                "the spawner of generation {generation}{} is not ready after {} s: it still loads the application or its \
                 configuration, or waits for a file; another restart replaces it",
                pid(spawner),
                Seconds(*after)
            ),
            Notice::SpawnerOverdue { generation, after } => {
                format!("the spawner of generation {generation} is not ready after {} s; killing it", Seconds(*after))
            }
            Notice::SoleLost { process, reason } => {
                format!("the process that serves{} is lost, starting another one: {reason}", pid(process))
            }
            Notice::Unkillable { process } => {
                format!("a process{} has not ended after SIGKILL; killing it again", pid(process))
            }
            Notice::Abandoned { process } => {
                format!("a process{} has not ended after SIGKILL; ending without it", pid(process))
            }
            _ => String::new(),
        }
    }

    fn restart_text(&self, names: &dyn Names) -> String {
        match self {
            Notice::RestartGivesWay { to, kind } => {
                format!("{to}: replaces the {kind}, which was still loading its code")
            }
            Notice::RestartBegun { kind, generation } => {
                format!("{kind}: loading the new code (generation {generation})")
            }
            Notice::RestartDone {
                kind,
                generation,
                sole: true,
            } => format!("{kind}: done, generation {generation} serves"),
            Notice::RestartDone { kind, generation, .. } => {
                format!("{kind}: done, all workers are of generation {generation}")
            }
            Notice::RestartFailed {
                kind,
                generation,
                reason,
            } => {
                format!("{kind}: failed, generation {generation} goes on serving: {reason}")
            }
            Notice::RestartRefused { reason } => format!("hot restart: failed, the old code goes on serving: {reason}"),
            Notice::OtherVersion { version } => {
                format!("the new code is loaded and has Fairlead {version}; its supervisor takes over")
            }
            Notice::ReforkBegun { worker } => {
                format!(
                    "refork: {} becomes the spawner; its copies replace the other workers",
                    worker.text(names)
                )
            }
            Notice::ReforkHurried => {
                "refork: the automatic refork no longer waits for long requests and clients, because a refork was asked for".to_owned()
            }
            Notice::ReforkRefused { reason } => format!("refork: refused: {reason}"),
            Notice::PhasedRestartNeedsWorkers => {
                "phased restart: there are no workers, so this is a hot restart".to_owned()
            }
            _ => String::new(),
        }
    }

    fn server_text(&self, names: &dyn Names) -> String {
        match self {
            Notice::NeedsWorkers { request } => format!("{request}: ignored: there are no workers"),
            Notice::Draining { reason, timeout, delay } => {
                let delay = if delay.is_zero() {
                    String::new()
                } else {
                    format!("accepting for {} s, then ", Seconds(*delay))
                };
                let reason = reason.of_stop();
                format!(
                    "{reason}: {delay}finishing open requests, for up to {} s",
                    Seconds(*timeout)
                )
            }
            Notice::StoppingAtOnce { reason } => format!("{}: stopping at once", reason.of_halt()),
            Notice::Idle => format!("no request for {} s: ending", names.idle_timeout()),
            _ => String::new(),
        }
    }
}

impl WorkerName {
    fn text(&self, names: &dyn Names) -> String {
        match names.pid(self.id) {
            Some(pid) => format!("worker {} (pid {pid})", self.index),
            None => format!("worker {}", self.index),
        }
    }
}

impl StopReason {
    pub(super) fn of_stop(self) -> &'static str {
        match self {
            StopReason::Signal(name) => name,
            StopReason::Command => "stop",
            StopReason::Idle => "idle",
        }
    }

    fn of_halt(self) -> &'static str {
        match self {
            StopReason::Command => "halt",
            other => other.of_stop(),
        }
    }
}

impl Display for RestartKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            RestartKind::Refork => "refork",
            RestartKind::Phased => "phased restart",
            RestartKind::Hot => "hot restart",
        })
    }
}

/// Seconds in the format of the configuration: 30, 0.5.
pub(super) struct Seconds(pub(super) Duration);

impl Display for Seconds {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.0.as_secs_f64())
    }
}
