//! The course of a worker: from its fork to its end.

use super::restart::{Replacing, Restart, RestartState};
use super::spawner::{Origin, Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::worker::{Worker, WorkerState};
use super::{Action, End, Machine, Notice, ProcessId, Server, EXIT_GRACE};
use std::time::Duration;

/// A worker that ends within this time after it began to serve counts as a failed start, even if `settle_time` is
/// shorter.
const EARLY: Duration = Duration::from_secs(1);

impl Machine {
    pub(super) fn not_forked(&mut self, id: ProcessId, reason: String) {
        let Some(worker) = self.workers.remove(&id) else { return };
        if let Some(spawner) = self.spawners.get_mut(&worker.spawner).filter(|spawner| spawner.sole()) {
            spawner.part = Part::Serves(None); // it can be asked again
        }
        if let Some(started) = worker.attempt() {
            self.log(Notice::WorkerNotAdded { reason: reason.clone() });
            self.attempt_failed(
                worker.generation,
                started,
                format!("cannot add a worker: {reason}"),
                reason,
            );
        }
    }

    pub(super) fn forked(&mut self, id: ProcessId) {
        let now = self.now;
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        match worker.state {
            WorkerState::Forking { since } => worker.state.enter(WorkerState::Booting {
                started: since,
                since: now,
            }),
            WorkerState::Killed { .. } => self.push(Action::Kill(id)), // it had no process to kill
            _ => return,
        }
        let spawner = self.workers[&id].spawner;
        if let Some(spawner) = self.spawners.get_mut(&spawner) {
            spawner.show_life(now, true);
        }
    }

    pub(super) fn booted(&mut self, id: ProcessId) {
        let now = self.now;
        self.forked(id);
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let WorkerState::Booting { started, .. } = worker.state else {
            return;
        };
        worker.state.enter(WorkerState::Settling {
            started,
            since: now,
            alive: now,
        });
        worker.booted = true;
        let (name, sole, spawner) = (worker.name(), worker.sole, worker.spawner);
        if !sole {
            self.log(Notice::WorkerBooted {
                worker: name,
                after: now.saturating_sub(started),
            });
        }
        if self.server == Server::Starting {
            self.server.enter(Server::Completing);
            self.begin_pending();
        } else if sole && self.current.seat == super::Seat::Taken(spawner) {
            self.push(Action::TellBooted(spawner)); // it has replaced a lost one
        }
    }

    pub(super) fn boot_failed(&mut self, id: ProcessId, reason: String) {
        let Some(worker) = self.workers.get(&id) else { return };
        let Some(started) = worker.attempt() else { return };
        let (index, generation) = (worker.index, worker.generation);
        let forked = !matches!(worker.state, WorkerState::Forking { .. });
        if self.server.ends() {
            return;
        }
        self.log(Notice::WorkerFailedToBoot {
            index,
            reason: reason.clone(),
        });
        self.drain_worker(id, self.now + EXIT_GRACE);
        self.tell_lost(index);
        let told = format!("worker {index} cannot start: {reason}");
        if !forked {
            return self.attempt_failed(generation, started, told, reason); // the system has no room for it now
        }
        if self.server == Server::Starting {
            return self.give_up(None);
        }
        if self
            .restart
            .as_ref()
            .is_some_and(|restart| restart.generation == generation && restart.replacing().is_some())
        {
            return self.fail_restart(told);
        }
        if !self.sole_lost(id, &reason) {
            self.attempt_failed(generation, started, told, reason);
        }
    }

    pub(super) fn ended(&mut self, id: ProcessId, end: End) {
        match self.workers.remove(&id) {
            Some(worker) => self.worker_ended(worker, end),
            None => self.spawner_ended(id, end),
        }
    }

    fn worker_ended(&mut self, worker: Worker, end: End) {
        if self.server.ends() && self.workers.is_empty() {
            self.push(Action::CloseListeners);
        }
        if !worker.stays() || self.server.ends() {
            return;
        }
        if worker.sole {
            return self.sole_ended(&worker, end);
        }
        let (index, generation) = (worker.index, worker.generation);
        self.log(Notice::WorkerEnded {
            worker: worker.name(),
            end,
        });
        self.tell_lost(index);
        match worker.state {
            WorkerState::Promoting { .. } => self.fail_restart("the worker ended".to_owned()),
            WorkerState::Serving { since, .. } if self.now > since + EARLY => {
                self.settled_one_lost(generation, format!("worker {index} ended: {end}"));
            }
            WorkerState::Settling { started, .. } | WorkerState::Serving { since: started, .. } => {
                let reason = format!("worker {index} ended right after it began to serve: {end}");
                self.attempt_failed(generation, started, reason, end.to_string());
            }
            _ => {
                let started = worker.attempt().unwrap_or(self.now);
                let reason = format!("worker {index} ended while it started: {end}");
                self.attempt_failed(generation, started, reason, end.to_string());
            }
        }
    }

    /// The next event is the end of its spawner, which is the same process.
    fn sole_ended(&mut self, worker: &Worker, end: End) {
        let kill_at = self.now + EXIT_GRACE;
        if let Some(spawner) = self.spawners.get_mut(&worker.spawner).filter(|spawner| spawner.stays()) {
            spawner.state.enter(SpawnerState::Ending { kill_at });
        }
        self.spawner_lost(worker.spawner, format!("it ended: {end}"));
    }

    /// A worker has become a spawner. It keeps its name.
    pub(super) fn promoted(&mut self, id: ProcessId) {
        let now = self.now;
        let Some(worker) = self.workers.get(&id) else { return };
        if !matches!(worker.state, WorkerState::Promoting { .. }) {
            return self.push(Action::EndSpawner(id)); // too late
        }
        self.workers.remove(&id);
        let Some(Restart { generation, state, .. }) = self.restart.as_mut() else {
            return;
        };
        state.enter(RestartState::Replacing(Replacing::new(id, None)));
        let state = SpawnerState::Ready {
            alive: now,
            progress: now,
        };
        let spawner = Spawner {
            id,
            generation: *generation,
            origin: Origin::Promoted,
            part: Part::Forks,
            state,
        };
        self.spawners.insert(id, spawner);
    }

    /// Replaces a worker that still has the previous certificates: one after the other, so that others take over its
    /// work.
    pub(super) fn replace_behind(&mut self, id: ProcessId) {
        let restarts = self.restart.as_ref().is_some_and(|restart| !restart.is_over());
        let Some(worker) = self.workers.get(&id).filter(|worker| worker.settled() && !worker.sole) else {
            return;
        };
        let id = worker.id;
        if !restarts && !self.server.ends() && self.complete() && !self.workers.values().any(Worker::drains) {
            self.drain_worker(id, self.deadline_of_end());
        }
    }
}
