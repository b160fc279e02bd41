//! The state of a worker.

use super::notice::WorkerName;
use super::state::{names, Lifecycle};
use super::{Generation, Moment, ProcessId};
use serde::{Deserialize, Serialize};

/// A worker, or the serving half of a sole process.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Worker {
    pub(super) id: ProcessId,
    /// Its number among the workers.
    pub(super) index: usize,
    /// Its slot in the scoreboard.
    pub(super) slot: usize,
    pub(super) generation: Generation,
    /// The process that forks it, or the sole process.
    pub(super) spawner: ProcessId,
    /// True for a sole process.
    pub(super) sole: bool,
    /// True if it has ever served.
    pub(super) booted: bool,
    /// True if it has finished its requests.
    #[serde(default)]
    pub(super) finished: bool,
    pub(super) state: WorkerState,
}

/// The state of a worker. Its process may end in each of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum WorkerState {
    /// The spawner was asked to fork it, and may have to fork others first.
    Forking { since: Moment },
    /// It has a process, and prepares to serve. `started`: the time when its spawner was asked.
    Booting { started: Moment, since: Moment },
    /// It serves, but has not settled yet.
    Settling {
        started: Moment,
        since: Moment,
        alive: Moment,
    },
    /// It serves. `since`: the time when it began.
    Serving { since: Moment, alive: Moment },
    /// It was asked to become a spawner.
    Promoting { until: Moment, alive: Moment },
    /// It is replaced, and goes on with long requests. Nobody waits for it.
    Retiring { kill_at: Moment, alive: Moment },
    /// It was asked to end.
    Ending { kill_at: Moment },
    /// It was killed, and is killed again if it does not end.
    Killed { again: Moment, retried: bool },
}

impl Lifecycle for WorkerState {
    const TRANSITIONS: &'static [(&'static str, &'static str)] = &[
        ("Forking", "Booting"),
        ("Booting", "Settling"),
        ("Settling", "Serving"),
        ("Settling", "Promoting"),
        ("Serving", "Promoting"),
        ("Forking", "Ending"),
        ("Booting", "Ending"),
        ("Settling", "Ending"),
        ("Serving", "Ending"),
        ("Settling", "Retiring"),
        ("Serving", "Retiring"),
        ("Retiring", "Ending"),
        ("Retiring", "Retiring"),
        ("Retiring", "Killed"),
        ("Promoting", "Ending"),
        ("Promoting", "Retiring"),
        ("Ending", "Ending"),
        ("Forking", "Killed"),
        ("Promoting", "Killed"),
        ("Ending", "Killed"),
        ("Killed", "Killed"),
    ];
    names!(WorkerState: Forking, Booting, Settling, Serving, Promoting, Retiring, Ending, Killed);
}

impl Worker {
    /// Returns true if it was not asked to end.
    pub(super) fn stays(&self) -> bool {
        !self.retires() && !self.drains() && !matches!(self.state, WorkerState::Killed { .. })
    }

    /// Returns true if it accepts requests, and was not asked to end.
    pub(super) fn serves(&self) -> bool {
        matches!(self.state, WorkerState::Settling { .. } | WorkerState::Serving { .. })
    }

    /// Returns true if it has settled.
    pub(super) fn settled(&self) -> bool {
        matches!(self.state, WorkerState::Serving { .. })
    }

    /// Returns true if it was asked to become a spawner.
    pub(super) fn becomes_spawner(&self) -> bool {
        matches!(self.state, WorkerState::Promoting { .. })
    }

    /// Returns true if it accepts connections, or will do so.
    pub(super) fn accepts(&self) -> bool {
        self.stays() && !self.becomes_spawner()
    }

    /// The start of the attempt, until it has settled.
    pub(super) fn attempt(&self) -> Option<Moment> {
        match self.state {
            WorkerState::Forking { since } => Some(since),
            WorkerState::Booting { started, .. } | WorkerState::Settling { started, .. } => Some(started),
            _ => None,
        }
    }

    /// Returns true if it goes on with long requests, and nobody waits for it.
    pub(super) fn retires(&self) -> bool {
        matches!(self.state, WorkerState::Retiring { .. })
    }

    /// Returns true if it finishes its requests, and others wait for that. A killed worker does not count.
    pub(super) fn drains(&self) -> bool {
        matches!(self.state, WorkerState::Ending { .. })
    }

    pub(super) fn name(&self) -> WorkerName {
        WorkerName {
            id: self.id,
            index: self.index,
        }
    }

    pub(super) fn show_life(&mut self, now: Moment) {
        match &mut self.state {
            WorkerState::Settling { alive, .. }
            | WorkerState::Serving { alive, .. }
            | WorkerState::Promoting { alive, .. }
            | WorkerState::Retiring { alive, .. } => *alive = now,
            _ => {}
        }
    }
}
