//! The state of a spawner.

use super::action::SpawnKind;
use super::state::{names, Lifecycle};
use super::{Generation, Moment, ProcessId};
use serde::{Deserialize, Serialize};

/// A process that loads the application.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Spawner {
    pub(super) id: ProcessId,
    pub(super) generation: Generation,
    pub(super) origin: Origin,
    pub(super) part: Part,
    pub(super) state: SpawnerState,
}

/// The origin of a spawner.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum Origin {
    /// The command forked it.
    First,
    /// The command was run again.
    Started(SpawnKind),
    /// It was a worker.
    Promoted,
}

/// Its use of the application.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum Part {
    /// It forks workers.
    Forks,
    /// It is a sole process, and serves as this worker, once it was told to.
    Serves(Option<ProcessId>),
}

/// The state of a spawner. Its process may end in each of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum SpawnerState {
    /// The loop was asked to start it.
    Starting { since: Moment },
    /// It loads the application. `slow`: true once its slowness was logged.
    Loading { since: Moment, slow: bool },
    /// It has loaded the application. `progress`: the time when it last forked a worker, or was idle.
    Ready { alive: Moment, progress: Moment },
    /// It was asked to end.
    Ending { kill_at: Moment },
    /// It was killed, and is killed again if it does not end.
    Killed { again: Moment, retried: bool },
}

impl Lifecycle for SpawnerState {
    const TRANSITIONS: &'static [(&'static str, &'static str)] = &[
        ("Starting", "Loading"),
        ("Loading", "Loading"),
        ("Loading", "Ready"),
        ("Starting", "Ending"),
        ("Loading", "Ending"),
        ("Ready", "Ending"),
        ("Ending", "Ending"),
        ("Starting", "Killed"),
        ("Loading", "Killed"),
        ("Ready", "Killed"),
        ("Ending", "Killed"),
        ("Killed", "Killed"),
    ];
    names!(SpawnerState: Starting, Loading, Ready, Ending, Killed);
}

impl Spawner {
    /// Returns true if it was not asked to end.
    pub(super) fn stays(&self) -> bool {
        !matches!(self.state, SpawnerState::Ending { .. } | SpawnerState::Killed { .. })
    }

    pub(super) fn killed(&self) -> bool {
        matches!(self.state, SpawnerState::Killed { .. })
    }

    /// Returns true if it has not loaded the application yet.
    pub(super) fn loads(&self) -> bool {
        matches!(self.state, SpawnerState::Starting { .. } | SpawnerState::Loading { .. })
    }

    /// It has loaded the application. Its start may not have been reported yet.
    pub(super) fn has_loaded(&mut self, now: Moment) {
        if let SpawnerState::Starting { since } = self.state {
            self.state.enter(SpawnerState::Loading { since, slow: false });
        }
        self.state.enter(SpawnerState::Ready {
            alive: now,
            progress: now,
        });
    }

    pub(super) fn ready(&self) -> bool {
        matches!(self.state, SpawnerState::Ready { .. })
    }

    /// Returns true if it can be asked for another worker.
    pub(super) fn can_fork(&self) -> bool {
        self.ready() && !matches!(self.part, Part::Serves(Some(_)))
    }

    pub(super) fn sole(&self) -> bool {
        matches!(self.part, Part::Serves(_))
    }

    pub(super) fn show_life(&mut self, now: Moment, forked: bool) {
        if let SpawnerState::Ready { alive, progress } = &mut self.state {
            *alive = now;
            if forked {
                *progress = now;
            }
        }
    }
}
