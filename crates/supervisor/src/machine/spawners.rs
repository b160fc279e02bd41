//! The course of a spawner: from its start to its end.

use super::spawner::{Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::{Action, End, Machine, ProcessId};
use crate::settings::Limits;

impl Machine {
    pub(super) fn spawner_started(&mut self, id: ProcessId) {
        let workforce = &mut self.workforce;
        let Some(spawner) = workforce.processes.spawners.get_mut(&id) else {
            return;
        };
        match spawner.state {
            SpawnerState::Starting { since } => spawner.state.enter(SpawnerState::Loading { since, slow: false }),
            SpawnerState::Ending { .. } => workforce.step.push(Action::EndSpawner(id)), // it was asked before it existed
            SpawnerState::Killed { .. } => workforce.step.push(Action::Kill(id)),
            _ => {}
        }
    }

    pub(super) fn spawner_not_started(&mut self, id: ProcessId, reason: String) {
        let spawner = self.workforce.processes.spawners.remove(&id);
        if spawner.is_some_and(|spawner| spawner.stays()) {
            self.spawner_lost(id, reason);
        }
    }

    /// A spawner has loaded the application. Returns it, unless this is late.
    fn has_loaded(&mut self, id: ProcessId) -> Option<&mut Spawner> {
        let now = self.workforce.now();
        let spawner = self.workforce.processes.spawners.get_mut(&id);
        let spawner = spawner.filter(|spawner| spawner.loads())?;
        spawner.has_loaded(now);
        Some(spawner)
    }

    pub(super) fn spawner_ready(&mut self, id: ProcessId, limits: Limits) {
        let Some(spawner) = self.has_loaded(id) else { return };
        if limits.workers == 0 {
            spawner.part = Part::Serves(None);
        }
        let workforce = &mut self.workforce;
        if self.restarts.has_target(id) {
            return self.restarts.target_ready(id, limits, workforce, self.server);
        }
        if let Some(reason) = self.restarts.unsuitable(&limits, workforce.wanted) {
            return self.spawner_failed(id, reason);
        }
        workforce.step.push(Action::TellCurrent(id));
    }

    /// The spawner has loaded the application, and has another version.
    pub(super) fn spawner_of_other_version(&mut self, id: ProcessId, version: String) {
        if self.has_loaded(id).is_none() {
            return;
        }
        if self.restarts.has_target(id) {
            let workforce = &mut self.workforce;
            return self
                .restarts
                .target_of_other_version(id, version, workforce, self.server);
        }
        let reason = format!("it has Fairlead {version}, which is incompatible with the running version");
        self.spawner_failed(id, reason);
    }

    pub(super) fn spawner_alive(&mut self, id: ProcessId) {
        let now = self.workforce.now();
        if let Some(spawner) = self.workforce.processes.spawners.get_mut(&id) {
            spawner.show_life(now, false);
        }
    }

    pub(super) fn spawner_failed(&mut self, id: ProcessId, reason: String) {
        let workforce = &mut self.workforce;
        if workforce.processes.spawners.get(&id).is_some_and(Spawner::stays) {
            workforce.end_spawner(id, workforce.deadline_of_exit());
            self.spawner_lost(id, reason);
        }
    }

    pub(super) fn spawner_ended(&mut self, id: ProcessId, end: End) {
        let processes = &mut self.workforce.processes;
        let Some(spawner) = processes.spawners.remove(&id) else {
            return;
        };
        if let Part::Serves(Some(worker)) = spawner.part {
            processes.workers.remove(&worker);
        }
        if spawner.stays() {
            self.spawner_lost(id, format!("its spawner ended: {end}"));
        }
    }
}
