//! The spawners: their starts, ends and losses.

use super::action::SpawnKind;
use super::restart::RestartState;
use super::spawner::{Origin, Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::{Action, End, Generation, Machine, Moment, Notice, ProcessId, Seat, Server, EXIT_GRACE};
use crate::settings::Limits;

impl Machine {
    pub(super) fn start_spawner(&mut self, generation: Generation, kind: SpawnKind) -> ProcessId {
        let id = self.next_process();
        let state = SpawnerState::Starting { since: self.now };
        let spawner = Spawner {
            id,
            generation,
            origin: Origin::Started(kind),
            part: Part::Forks,
            state,
        };
        self.spawners.insert(id, spawner);
        self.push(Action::StartSpawner {
            spawner: id,
            generation,
            kind,
        });
        id
    }

    /// A new generation begins with this number.
    pub(super) fn next_generation(&mut self) -> Generation {
        self.last_generation += 1;
        self.last_generation
    }

    // --- events

    pub(super) fn spawner_started(&mut self, id: ProcessId) {
        let Some(spawner) = self.spawners.get_mut(&id) else {
            return;
        };
        match spawner.state {
            SpawnerState::Starting { since } => spawner.state.enter(SpawnerState::Loading { since, slow: false }),
            SpawnerState::Ending { .. } => self.push(Action::EndSpawner(id)), // it was asked before it existed
            SpawnerState::Killed { .. } => self.push(Action::Kill(id)),
            _ => {}
        }
    }

    pub(super) fn spawner_not_started(&mut self, id: ProcessId, reason: String) {
        if self.spawners.remove(&id).is_some_and(|spawner| spawner.stays()) {
            self.spawner_lost(id, reason);
        }
    }

    pub(super) fn spawner_ready(&mut self, id: ProcessId, limits: Limits) {
        let now = self.now;
        let Some(spawner) = self.spawners.get_mut(&id).filter(|spawner| spawner.loads()) else {
            return;
        };
        spawner.has_loaded(now);
        if limits.workers == 0 {
            spawner.part = Part::Serves(None);
        }
        if self.restart.as_ref().and_then(|restart| restart.target()) == Some(id) {
            return self.target_ready(id, limits);
        }
        if let Some(reason) = self.unsuitable(&limits) {
            return self.spawner_failed(id, reason);
        }
        self.push(Action::TellCurrent(id));
    }

    /// The reason why such a process cannot join the serving generation; nothing if it can.
    pub(super) fn unsuitable(&self, limits: &Limits) -> Option<String> {
        let former = self
            .restart
            .as_ref()
            .and_then(|restart| restart.replacing()?.former.as_ref());
        let wanted = former.map_or(self.wanted, |(_, wanted)| *wanted);
        let count = wanted.max(limits.workers);
        let changes = (wanted == 0) != (limits.workers == 0);
        changes.then(|| format!("the number of workers changes between 0 and {count}; use a hot restart (USR2)"))
    }

    pub(super) fn spawner_alive(&mut self, id: ProcessId) {
        let now = self.now;
        if let Some(spawner) = self.spawners.get_mut(&id) {
            spawner.show_life(now, false);
        }
    }

    pub(super) fn spawner_failed(&mut self, id: ProcessId, reason: String) {
        if self.spawners.get(&id).is_some_and(Spawner::stays) {
            self.end_spawner(id, self.now + EXIT_GRACE);
            self.spawner_lost(id, reason);
        }
    }

    pub(super) fn spawner_ended(&mut self, id: ProcessId, end: End) {
        let Some(spawner) = self.spawners.remove(&id) else {
            return;
        };
        if let Part::Serves(Some(worker)) = spawner.part {
            self.workers.remove(&worker);
        }
        if spawner.stays() {
            self.spawner_lost(id, format!("its spawner ended: {end}"));
        }
    }

    // --- losses

    /// A spawner in use has failed. Its process may still run.
    pub(super) fn spawner_lost(&mut self, id: ProcessId, reason: String) {
        if self.server.ends() {
            return;
        }
        if self.restart.as_ref().and_then(|restart| restart.target()) == Some(id) {
            return self.fail_restart(reason);
        }
        if self.current.seat != Seat::Taken(id) {
            return;
        }
        if self.server == Server::Starting {
            return self.give_up(Some(reason));
        }
        let generation = self.current.generation;
        self.log(match self.sole_serves() {
            true => Notice::SoleLost { process: id, reason },
            false => Notice::SpawnerLost { generation, reason },
        });
        self.leave_seat();
    }

    /// A worker has failed. Returns true if it is a sole process, which then has to be replaced as a whole.
    pub(super) fn sole_lost(&mut self, worker: ProcessId, reason: &str) -> bool {
        let Some(spawner) = self
            .workers
            .get(&worker)
            .filter(|worker| worker.sole)
            .map(|worker| worker.spawner)
        else {
            return false;
        };
        self.spawner_lost(spawner, reason.to_owned());
        true
    }

    /// Returns true if the current generation is a sole process.
    pub(super) fn sole_serves(&self) -> bool {
        let former = self
            .restart
            .as_ref()
            .and_then(|restart| restart.replacing()?.former.as_ref());
        former.map_or(self.wanted, |(_, wanted)| *wanted) == 0
    }

    /// Has another spawner replace the current one: at once, or later if that has happened recently.
    pub(super) fn leave_seat(&mut self) {
        if self.is_borrowed(self.current.generation) {
            self.current.seat = Seat::Superseded;
            return;
        }
        self.spawner_attempts.fail(self.now, self.now);
        self.current.seat = Seat::Vacant {
            until: self.now + self.spawner_attempts.pause(),
        };
    }

    /// Handles a current spawner that was asked to end, such as a hanging sole process. A restart that replaces workers
    /// needs no other spawner.
    pub(super) fn vacate_seat(&mut self) {
        let Seat::Taken(id) = self.current.seat else { return };
        let replacing = matches!(&self.restart, Some(restart) if matches!(restart.state, RestartState::Replacing(_)));
        if !replacing && !self.spawners.get(&id).is_some_and(Spawner::stays) {
            self.leave_seat();
        }
    }

    pub(super) fn replace_lost_spawner(&mut self) {
        if matches!(self.current.seat, Seat::Vacant { until } if until <= self.now) {
            let id = self.start_spawner(self.current.generation, SpawnKind::Replacement);
            self.current.seat = Seat::Taken(id);
        }
    }

    // --- ends

    /// Asks a spawner to end. It is killed at `kill_at`, or earlier if it was asked before.
    pub(super) fn end_spawner(&mut self, id: ProcessId, kill_at: Moment) {
        let Some(spawner) = self.spawners.get_mut(&id) else {
            return;
        };
        match spawner.state {
            SpawnerState::Killed { .. } => return,
            SpawnerState::Ending { kill_at: before } => {
                spawner.state.enter(SpawnerState::Ending {
                    kill_at: before.min(kill_at),
                });
            }
            _ => spawner.state.enter(SpawnerState::Ending { kill_at }),
        }
        self.push(Action::EndSpawner(id));
    }

    pub(super) fn kill_spawner(&mut self, id: ProcessId) {
        let again = self.now + EXIT_GRACE;
        if let Some(spawner) = self.spawners.get_mut(&id) {
            spawner.state.enter(SpawnerState::Killed { again, retried: false });
            self.push(Action::Kill(id));
        }
    }
}
