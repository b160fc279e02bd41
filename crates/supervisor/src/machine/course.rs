//! The course of a worker: from its fork to its end.

use super::losses::Attempt;
use super::spawner::{Part, SpawnerState};
use super::state::Lifecycle;
use super::worker::{Worker, WorkerState};
use super::{Action, End, Machine, Notice, ProcessId, Seat, Server};
use std::time::Duration;

/// A worker that ends within this time after it began to serve counts as a failed start, even if `settle_time` is
/// shorter.
const EARLY: Duration = Duration::from_secs(1);

impl Machine {
    pub(super) fn not_forked(&mut self, id: ProcessId, reason: String) {
        let Some(worker) = self.workforce.processes.workers.remove(&id) else {
            return;
        };
        if let Some(spawner) = self
            .workforce
            .processes
            .spawners
            .get_mut(&worker.spawner)
            .filter(|spawner| spawner.sole())
        {
            spawner.part = Part::Serves(None); // it can be asked again
        }
        if worker.attempt().is_some() {
            self.workforce
                .step
                .log(Notice::WorkerNotAdded { reason: reason.clone() });
            let told = format!("cannot add a worker: {reason}");
            self.attempt_failed(Attempt::of(&worker, self.workforce.now()), told, reason);
        }
    }

    pub(super) fn worker_alive(&mut self, id: ProcessId) {
        let now = self.workforce.now();
        if let Some(worker) = self.workforce.processes.workers.get_mut(&id) {
            worker.show_life(now);
        }
    }

    pub(super) fn forked(&mut self, id: ProcessId) {
        let now = self.workforce.now();
        let Some(worker) = self.workforce.processes.workers.get_mut(&id) else {
            return;
        };
        match worker.state {
            WorkerState::Forking { since } => worker.state.enter(WorkerState::Booting {
                started: since,
                since: now,
            }),
            WorkerState::Killed { .. } => self.workforce.step.push(Action::Kill(id)), // it had no process to kill
            _ => return,
        }
        let spawner = self.workforce.processes.workers[&id].spawner;
        if let Some(spawner) = self.workforce.processes.spawners.get_mut(&spawner) {
            spawner.show_life(now, true);
        }
    }

    pub(super) fn booted(&mut self, id: ProcessId) {
        let now = self.workforce.now();
        self.forked(id);
        let Some(worker) = self.workforce.processes.workers.get_mut(&id) else {
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
            self.workforce.step.log(Notice::WorkerBooted {
                worker: name,
                after: now.saturating_sub(started),
            });
        }
        if self.server == Server::Starting {
            self.server.enter(Server::Completing);
            self.restarts.begin_pending(&mut self.workforce, self.server);
        } else if sole && self.workforce.current.seat == Seat::Taken(spawner) {
            self.workforce.step.push(Action::TellBooted(spawner)); // it has replaced a lost one
        }
    }

    pub(super) fn boot_failed(&mut self, id: ProcessId, reason: String) {
        let Some(worker) = self.workforce.processes.workers.get(&id) else {
            return;
        };
        if matches!(worker.state, WorkerState::Promoting { .. }) {
            self.workforce.drain_worker(id, self.workforce.deadline_of_exit());
            return self.fail_restart(reason);
        }
        if worker.attempt().is_none() {
            return;
        }
        let (index, generation, attempt) = (
            worker.index,
            worker.generation,
            Attempt::of(worker, self.workforce.now()),
        );
        let forked = !matches!(worker.state, WorkerState::Forking { .. });
        if self.server.ends() {
            return;
        }
        self.workforce.step.log(Notice::WorkerFailedToBoot {
            index,
            reason: reason.clone(),
        });
        self.workforce.drain_worker(id, self.workforce.deadline_of_exit());
        self.workforce.tell_lost(index);
        let told = format!("worker {index} cannot start: {reason}");
        if !forked {
            return self.attempt_failed(attempt, told, reason); // the system has no room for it now
        }
        if self.server == Server::Starting {
            return self.give_up(None);
        }
        if self.restarts.replacing().is_some_and(|(new, _)| new == generation) {
            return self.fail_restart(told);
        }
        if !self.sole_lost(id, &reason) {
            self.attempt_failed(attempt, told, reason);
        }
    }

    pub(super) fn ended(&mut self, id: ProcessId, end: End) {
        match self.workforce.processes.workers.remove(&id) {
            Some(worker) => self.worker_ended(worker, end),
            None => self.spawner_ended(id, end),
        }
    }

    fn worker_ended(&mut self, worker: Worker, end: End) {
        if self.server.ends() && self.workforce.processes.workers.is_empty() {
            self.workforce.step.push(Action::CloseListeners);
        }
        if !worker.stays() || self.server.ends() {
            return;
        }
        if worker.sole {
            return self.sole_ended(&worker, end);
        }
        let (index, generation) = (worker.index, worker.generation);
        self.workforce.step.log(Notice::WorkerEnded {
            worker: worker.name(),
            end,
        });
        self.workforce.tell_lost(index);
        match worker.state {
            WorkerState::Promoting { .. } => self.fail_restart("the worker ended".to_owned()),
            WorkerState::Serving { since, .. } if self.workforce.now() > since + EARLY => {
                self.settled_one_lost(generation, format!("worker {index} ended: {end}"));
            }
            WorkerState::Settling { .. } | WorkerState::Serving { .. } => {
                let reason = format!("worker {index} ended right after it began to serve: {end}");
                self.attempt_failed(Attempt::of(&worker, self.workforce.now()), reason, end.to_string());
            }
            _ => {
                let reason = format!("worker {index} ended while it started: {end}");
                self.attempt_failed(Attempt::of(&worker, self.workforce.now()), reason, end.to_string());
            }
        }
    }

    /// The next event is the end of its spawner, which is the same process.
    fn sole_ended(&mut self, worker: &Worker, end: End) {
        let kill_at = self.workforce.deadline_of_exit();
        if let Some(spawner) = self
            .workforce
            .processes
            .spawners
            .get_mut(&worker.spawner)
            .filter(|spawner| spawner.stays())
        {
            spawner.state.enter(SpawnerState::Ending { kill_at });
        }
        self.spawner_lost(worker.spawner, format!("it ended: {end}"));
    }

    /// A worker has finished its requests. It no longer needs the time that it had for them.
    pub(super) fn finished(&mut self, id: ProcessId) {
        let latest = self.workforce.deadline_of_end();
        let Some(worker) = self.workforce.processes.workers.get_mut(&id) else {
            return;
        };
        worker.finished = true;
        if let WorkerState::Retiring { kill_at, alive } = worker.state {
            let kill_at = kill_at.min(latest);
            worker.state.enter(WorkerState::Retiring { kill_at, alive });
        }
    }

    /// A worker has become a spawner. It keeps its name.
    pub(super) fn promoted(&mut self, id: ProcessId) {
        let Some(worker) = self.workforce.processes.workers.get(&id) else {
            return;
        };
        if !matches!(worker.state, WorkerState::Promoting { .. }) {
            return self.workforce.step.push(Action::EndSpawner(id)); // too late
        }
        self.workforce.processes.workers.remove(&id);
        self.restarts.promoted(id, &mut self.workforce);
    }

    /// Replaces a worker that still has the previous certificates: one after the other, so that others take over its
    /// work.
    pub(super) fn replace_behind(&mut self, id: ProcessId) {
        let restarts = !self.restarts.are_over();
        let Some(worker) = self
            .workforce
            .processes
            .workers
            .get(&id)
            .filter(|worker| worker.settled() && !worker.sole)
        else {
            return;
        };
        let id = worker.id;
        if !restarts
            && !self.server.ends()
            && self.workforce.complete()
            && !self.workforce.processes.workers.values().any(Worker::drains)
        {
            self.workforce.retire_worker(id, false);
        }
    }
}
