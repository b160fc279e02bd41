//! The processes: their starts and ends. Spawners and workers are together, because a sole process is both.

use super::spawner::{Origin, Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::step::Step;
use super::worker::{Worker, WorkerState};
use super::{Action, Generation, Moment, ProcessId, SpawnKind, EXIT_GRACE, SLOTS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// All processes that have not ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Processes {
    pub(super) spawners: BTreeMap<ProcessId, Spawner>,
    pub(super) workers: BTreeMap<ProcessId, Worker>,
    /// The last name that was used.
    pub(super) last: ProcessId,
}

impl Processes {
    /// A server with its first spawner.
    pub(super) fn new(first: Spawner) -> Processes {
        Processes {
            last: first.id,
            spawners: BTreeMap::from([(first.id, first)]),
            workers: BTreeMap::new(),
        }
    }

    fn next(&mut self) -> ProcessId {
        self.last += 1;
        self.last
    }

    /// Returns true if each index has a serving worker.
    pub(super) fn complete(&self, places: usize) -> bool {
        let serves = |index| self.workers.values().any(|one| one.index == index && one.serves());
        (0..places).all(serves)
    }

    /// Returns true if there is room for another worker.
    pub(super) fn has_slot(&self) -> bool {
        self.workers.len() < SLOTS
    }

    // --- starts

    pub(super) fn start_spawner(&mut self, generation: Generation, kind: SpawnKind, step: &mut Step) -> ProcessId {
        let id = self.next();
        let spawner = Spawner {
            id,
            generation,
            origin: Origin::Started(kind),
            part: Part::Forks,
            state: SpawnerState::Starting { since: step.now },
        };
        self.spawners.insert(id, spawner);
        step.push(Action::StartSpawner {
            spawner: id,
            generation,
            kind,
        });
        id
    }

    /// Starts a worker. Returns its name; nothing if there is no room for it.
    pub(super) fn start_worker(&mut self, index: usize, spawner: ProcessId, step: &mut Step) -> Option<ProcessId> {
        let taken = |slot: &usize| self.workers.values().any(|worker| worker.slot == *slot);
        let slot = std::iter::once(index).chain(0..SLOTS).find(|slot| !taken(slot))?;
        let id = self.next();
        let process = self.spawners.get_mut(&spawner)?;
        let (sole, since) = (process.sole(), step.now);
        let state = if sole {
            process.part = Part::Serves(Some(id));
            WorkerState::Booting { started: since, since }
        } else {
            WorkerState::Forking { since }
        };
        let worker = Worker {
            id,
            index,
            slot,
            generation: process.generation,
            spawner,
            sole,
            booted: false,
            finished: false,
            state,
        };
        self.workers.insert(id, worker);
        step.push(Action::Fork {
            spawner,
            worker: id,
            index,
            slot,
        });
        Some(id)
    }

    /// A worker has become the spawner of this generation. It keeps its name.
    pub(super) fn add_promoted(&mut self, id: ProcessId, generation: Generation, now: Moment) {
        let state = SpawnerState::Ready {
            alive: now,
            progress: now,
        };
        let spawner = Spawner {
            id,
            generation,
            origin: Origin::Promoted,
            part: Part::Forks,
            state,
        };
        self.spawners.insert(id, spawner);
    }

    // --- ends

    /// Asks a spawner to end. It is killed at `kill_at`, or earlier if it was asked before.
    pub(super) fn end_spawner(&mut self, id: ProcessId, kill_at: Moment, step: &mut Step) {
        let Some(spawner) = self.spawners.get_mut(&id) else {
            return;
        };
        let kill_at = match spawner.state {
            SpawnerState::Killed { .. } => return,
            SpawnerState::Ending { kill_at: before } => before.min(kill_at),
            _ => kill_at,
        };
        spawner.state.enter(SpawnerState::Ending { kill_at });
        step.push(Action::EndSpawner(id));
    }

    /// Changes the time at which an ending spawner is killed.
    pub(super) fn hurry_spawner(&mut self, id: ProcessId, kill_at: Moment) {
        if let Some(spawner) = self.spawners.get_mut(&id) {
            spawner.state.enter(SpawnerState::Ending { kill_at });
        }
    }

    pub(super) fn kill_spawner(&mut self, id: ProcessId, step: &mut Step) {
        let again = step.now + EXIT_GRACE;
        if let Some(spawner) = self.spawners.get_mut(&id) {
            spawner.state.enter(SpawnerState::Killed { again, retried: false });
            step.push(Action::Kill(id));
        }
    }

    /// Asks a worker to end by `how`. It is killed at `kill_at`, or earlier if it was asked before.
    pub(super) fn end_worker(&mut self, id: ProcessId, kill_at: Moment, how: Action, step: &mut Step) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let kill_at = match worker.state {
            WorkerState::Killed { .. } => return,
            WorkerState::Retiring { kill_at: before, .. } | WorkerState::Ending { kill_at: before } => {
                before.min(kill_at)
            }
            _ => kill_at,
        };
        worker.state.enter(WorkerState::Ending { kill_at });
        if worker.sole {
            let spawner = worker.spawner;
            self.end_sole(spawner, kill_at);
        }
        step.push(how);
    }

    /// Asks a worker that serves, becomes a spawner or retires to end by `how`, and gives its requests `long`. Nobody waits for it.
    pub(super) fn retire_worker(&mut self, id: ProcessId, long: Duration, how: Action, step: &mut Step) {
        let kill_at = step.now + long + EXIT_GRACE;
        let may_retire = |worker: &&mut Worker| worker.serves() || worker.becomes_spawner() || worker.retires();
        let Some(worker) = self.workers.get_mut(&id).filter(may_retire) else {
            return;
        };
        worker.state.enter(WorkerState::Retiring {
            kill_at,
            alive: step.now,
        });
        if worker.sole {
            let spawner = worker.spawner;
            self.end_sole(spawner, kill_at);
        }
        step.push(how);
    }

    /// The retiring worker that was asked first.
    pub(super) fn oldest_retiring(&self) -> Option<ProcessId> {
        let retiring = self.workers.values().filter_map(|worker| match worker.state {
            WorkerState::Retiring { kill_at, .. } => Some((kill_at, worker.id)),
            _ => None,
        });
        retiring.min().map(|(_, id)| id)
    }

    /// The spawner of a sole process ends with its worker, which gets the message.
    fn end_sole(&mut self, id: ProcessId, kill_at: Moment) {
        if let Some(spawner) = self.spawners.get_mut(&id) {
            if !matches!(spawner.state, SpawnerState::Killed { .. }) {
                spawner.state.enter(SpawnerState::Ending {
                    kill_at: kill_at + EXIT_GRACE,
                });
            }
        }
    }

    pub(super) fn kill_worker(&mut self, id: ProcessId, step: &mut Step) {
        let again = step.now + EXIT_GRACE;
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        worker.state.enter(WorkerState::Killed { again, retried: false });
        if let Some(sole) = Some(worker.spawner)
            .filter(|_| worker.sole)
            .and_then(|id| self.spawners.get_mut(&id))
        {
            sole.state.enter(SpawnerState::Killed { again, retried: false }); // the same process
        }
        step.push(Action::Kill(id));
    }

    /// Kills a process again. Returns true if this is the first time: it is in an uninterruptible wait.
    pub(super) fn kill_spawner_again(&mut self, id: ProcessId, step: &mut Step) -> bool {
        let again = step.now + EXIT_GRACE;
        let Some(spawner) = self.spawners.get_mut(&id) else {
            return false;
        };
        let first = matches!(spawner.state, SpawnerState::Killed { retried: false, .. });
        spawner.state.enter(SpawnerState::Killed { again, retried: true });
        step.push(Action::Kill(id));
        first
    }

    /// Does the same with a worker.
    pub(super) fn kill_worker_again(&mut self, id: ProcessId, step: &mut Step) -> bool {
        let again = step.now + EXIT_GRACE;
        let Some(worker) = self.workers.get_mut(&id) else {
            return false;
        };
        let first = matches!(worker.state, WorkerState::Killed { retried: false, .. });
        worker.state.enter(WorkerState::Killed { again, retried: true });
        step.push(Action::Kill(id));
        first
    }

    /// Forgets a worker; for a sole process, its spawner, too.
    pub(super) fn abandon_worker(&mut self, id: ProcessId) {
        if let Some(sole) = self.workers.remove(&id).filter(|worker| worker.sole) {
            self.spawners.remove(&sole.spawner);
        }
    }
}
