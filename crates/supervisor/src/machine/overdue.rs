//! The successors of all waiting states.

use super::losses::Attempt;
use super::notice::Seconds;
use super::spawner::SpawnerState;
use super::state::Lifecycle;
use super::timers::{Due, Timer};
use super::worker::WorkerState;
use super::{Action, Machine, Notice, ProcessId, REPLACEMENT_GRACE};

impl Machine {
    /// Handles all deadlines that have passed, the earliest first. Each handler makes a change that removes its
    /// deadline.
    pub(super) fn expire(&mut self) {
        while let Some(due) = self.due() {
            match due.timer {
                Timer::Load | Timer::Slow | Timer::SpawnerSilence | Timer::SpawnerEnd | Timer::SpawnerKill => {
                    self.spawner_due(due)
                }
                Timer::Adopt => self.fail_restart("the new configuration was not adopted in time".to_owned()),
                Timer::Reexecute => {
                    self.fail_restart("the program of the new version did not take over in time".to_owned())
                }
                Timer::Return => self.restarts.return_overdue(&mut self.workforce),
                Timer::SpawnerRetry => self.workforce.replace_lost_spawner(),
                Timer::WorkerRetry => self.workforce.hold.expire(self.workforce.now()),
                Timer::RecyclingRetry => self.workforce.recycling.expire(self.workforce.now()),
                _ => self.worker_due(due),
            }
        }
    }

    fn spawner_due(&mut self, due: Due) {
        let Some(spawner) = self.workforce.processes.spawners.get(&due.process) else {
            return;
        };
        let (id, generation) = (spawner.id, spawner.generation);
        match due.timer {
            Timer::Slow => self.spawner_slow(id),
            Timer::Load => {
                let after = self.workforce.limits.load_timeout;
                self.workforce.step.log(Notice::SpawnerOverdue { generation, after });
                self.workforce.kill_spawner(id);
                let seconds = Seconds(after);
                self.spawner_lost(
                    id,
                    format!("the application was not loaded within {seconds} s (load_timeout)"),
                );
            }
            Timer::SpawnerSilence => {
                let after = self.workforce.limits.worker_timeout;
                self.workforce.step.log(Notice::SpawnerHung {
                    generation,
                    spawner: id,
                    after,
                });
                self.workforce.kill_spawner(id);
                let seconds = Seconds(after);
                self.spawner_lost(id, format!("it showed no sign of life for {seconds} s"));
            }
            Timer::SpawnerEnd => {
                self.workforce.step.log(Notice::SpawnerKilled { generation });
                self.workforce.kill_spawner(id);
            }
            _ => self.spawner_unkillable(id),
        }
    }

    fn spawner_slow(&mut self, id: ProcessId) {
        let workforce = &mut self.workforce;
        let Some(spawner) = workforce.processes.spawners.get_mut(&id) else {
            return;
        };
        if let SpawnerState::Loading { since, .. } = spawner.state {
            spawner.state.enter(SpawnerState::Loading { since, slow: true });
            workforce.step.log(Notice::SpawnerSlow {
                generation: spawner.generation,
                spawner: id,
                after: workforce.limits.worker_boot_timeout,
            });
        }
    }

    /// A killed spawner has not ended: it is in an uninterruptible wait.
    fn spawner_unkillable(&mut self, id: ProcessId) {
        let workforce = &mut self.workforce;
        if self.server.ends() {
            workforce.processes.spawners.remove(&id);
            return workforce.step.log(Notice::Abandoned { process: id });
        }
        if workforce.processes.kill_spawner_again(id, &mut workforce.step) {
            workforce.step.log(Notice::Unkillable { process: id });
        }
    }

    fn worker_due(&mut self, due: Due) {
        let Some(worker) = self.workforce.processes.workers.get_mut(&due.process) else {
            return;
        };
        let (id, name) = (worker.id, worker.name());
        match due.timer {
            Timer::Fork => self.fork_overdue(id),
            Timer::Boot => self.boot_overdue(id),
            Timer::Settle => {
                if let WorkerState::Settling { since, alive, .. } = worker.state {
                    worker.state.enter(WorkerState::Serving { since, alive });
                    self.workforce.hold.settled();
                }
            }
            Timer::Silence => self.worker_silent(id),
            Timer::Promotion => {
                match self.restarts.is_patient() {
                    true => _ = self.workforce.retire_worker(id, true),
                    false => self.workforce.kill_worker(id),
                }
                self.fail_restart("the worker did not become a spawner in time".to_owned());
            }
            Timer::WorkerEnd => {
                self.workforce.step.log(Notice::WorkerKilled { worker: name });
                self.workforce.kill_worker(id);
            }
            _ => self.worker_unkillable(id),
        }
    }

    fn fork_overdue(&mut self, id: ProcessId) {
        let Some(worker) = self.workforce.processes.workers.get(&id) else {
            return;
        };
        let (name, attempt) = (worker.name(), Attempt::of(worker, self.workforce.now()));
        self.workforce.step.log(Notice::WorkerBootTimedOut {
            worker: name,
            after: self.workforce.limits.worker_boot_timeout,
        });
        self.workforce.kill_worker(id);
        self.attempt_overdue(name.index, attempt);
    }

    fn boot_overdue(&mut self, id: ProcessId) {
        let Some(worker) = self.workforce.processes.workers.get(&id) else {
            return;
        };
        let (name, attempt) = (worker.name(), Attempt::of(worker, self.workforce.now()));
        self.workforce.step.log(Notice::WorkerBootTimedOut {
            worker: name,
            after: self.workforce.limits.worker_boot_timeout,
        });
        self.workforce
            .drain_worker(id, self.workforce.now() + REPLACEMENT_GRACE);
        self.attempt_overdue(name.index, attempt);
    }

    fn attempt_overdue(&mut self, index: usize, attempt: Attempt) {
        let seconds = Seconds(self.workforce.limits.worker_boot_timeout);
        let reason = format!("worker {index} was not ready after {seconds} s");
        if !self.sole_lost(attempt.worker, &reason) {
            self.attempt_failed(attempt, reason.clone(), reason);
        }
    }

    fn worker_silent(&mut self, id: ProcessId) {
        let Some(worker) = self.workforce.processes.workers.get(&id) else {
            return;
        };
        let (starts, promotes, stays) = (worker.attempt().is_some(), worker.becomes_spawner(), worker.stays());
        let (name, attempt) = (worker.name(), Attempt::of(worker, self.workforce.now()));
        let after = self.workforce.limits.worker_timeout;
        self.workforce.step.log(Notice::WorkerHung {
            worker: name,
            after,
            is_replaced: stays,
        });
        self.workforce.step.push(Action::GiveUp(id)); // its Ruby threads may never notice
        self.workforce
            .drain_worker(id, self.workforce.now() + REPLACEMENT_GRACE);
        let reason = format!("it showed no sign of life for {} s", Seconds(after));
        if promotes {
            return self.fail_restart(reason);
        }
        if !stays || self.sole_lost(id, &reason) {
            return;
        }
        if starts {
            let reason = format!("worker {} hung right after it began to serve", name.index);
            self.attempt_failed(attempt, reason.clone(), reason);
        }
    }

    fn worker_unkillable(&mut self, id: ProcessId) {
        let workforce = &mut self.workforce;
        if self.server.ends() {
            workforce.processes.abandon_worker(id);
            return workforce.step.log(Notice::Abandoned { process: id });
        }
        if workforce.processes.kill_worker_again(id, &mut workforce.step) {
            workforce.step.log(Notice::Unkillable { process: id });
        }
    }
}
