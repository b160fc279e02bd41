//! The deadlines of all waiting states, and their successors.

use super::back_off::HoldState;
use super::restart::RestartState;
use super::spawner::{Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::worker::{Worker, WorkerState};
use super::{Action, Machine, Moment, Notice, ProcessId, Seat, EXIT_GRACE, REPLACEMENT_GRACE};
use serde::{Deserialize, Serialize};

/// The cause of a deadline.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Timer {
    /// A spawner has not loaded the application in `load_timeout`.
    Load,
    /// A spawner loads for longer than `worker_boot_timeout`. This is logged.
    Slow,
    /// A ready spawner sends no heartbeat.
    SpawnerSilence,
    /// A spawner was asked to end, and has not ended.
    SpawnerEnd,
    /// A spawner was killed, and has not ended.
    SpawnerKill,
    /// A spawner has not forked a worker.
    Fork,
    /// A worker is not ready.
    Boot,
    /// A worker has served long enough to count.
    Settle,
    /// A worker sends no heartbeat.
    Silence,
    /// A worker has not become a spawner.
    Promotion,
    /// A worker was asked to end, and has not ended.
    WorkerEnd,
    /// A worker was killed, and has not ended.
    WorkerKill,
    /// The loop has not adopted a configuration.
    Adopt,
    /// The program of another version has not taken over.
    Reexecute,
    /// The previous program has not taken over again.
    Return,
    /// A lost spawner has to be replaced.
    SpawnerRetry,
    /// A worker has to be tried.
    WorkerRetry,
}

/// One deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Moment,
    timer: Timer,
    process: ProcessId,
}

impl Machine {
    /// The moment at which an [`Event::Tick`](super::Event::Tick) is due, if no other event comes first; nothing if
    /// there is no deadline.
    pub fn deadline(&self) -> Option<Moment> {
        self.timers().into_iter().map(|due| due.at).min()
    }

    /// Handles all deadlines that have passed, the earliest first. Each handler makes a change that removes its
    /// deadline.
    pub(super) fn expire(&mut self) {
        while let Some(due) = self.timers().into_iter().min().filter(|due| due.at <= self.now) {
            match due.timer {
                Timer::Load | Timer::Slow | Timer::SpawnerSilence | Timer::SpawnerEnd | Timer::SpawnerKill => {
                    self.spawner_due(due)
                }
                Timer::Adopt => self.fail_restart("the new configuration was not adopted in time".to_owned()),
                Timer::Reexecute => {
                    self.fail_restart("the program of the new version did not take over in time".to_owned())
                }
                Timer::Return => self.return_due(),
                Timer::SpawnerRetry => self.replace_lost_spawner(),
                Timer::WorkerRetry => self.hold.expire(self.now),
                _ => self.worker_due(due),
            }
        }
    }

    fn timers(&self) -> Vec<Due> {
        let spawners = self
            .spawners
            .values()
            .flat_map(|spawner| self.timers_of_spawner(spawner));
        let workers = self.workers.values().filter_map(|worker| self.timer_of_worker(worker));
        let all = spawners.chain(workers).chain(self.other_timers());
        all.filter(|due| Some(due.timer) != self.without).collect()
    }

    fn other_timers(&self) -> Vec<Due> {
        let mut timers = Vec::new();
        if self.server.ends() {
            return timers;
        }
        let of_restart = match self.restart.as_ref().map(|restart| &restart.state) {
            Some(RestartState::Adopting { until, .. }) => Some((*until, Timer::Adopt)),
            Some(RestartState::Reexecuting { until, .. }) => Some((*until, Timer::Reexecute)),
            Some(RestartState::Returning { again, .. }) => Some((*again, Timer::Return)),
            _ => None,
        };
        timers.extend(of_restart.map(|(at, timer)| Due { at, timer, process: 0 }));
        if let Seat::Vacant { until } = self.current.seat {
            timers.push(Due {
                at: until,
                timer: Timer::SpawnerRetry,
                process: 0,
            });
        }
        if let HoldState::Waiting { until } = self.hold.state {
            timers.push(Due {
                at: until,
                timer: Timer::WorkerRetry,
                process: 0,
            });
        }
        timers
    }

    fn return_due(&mut self) {
        if let Some(RestartState::Returning { reason, .. }) = self.restart.as_ref().map(|restart| &restart.state) {
            let reason = reason.clone();
            self.try_to_return(reason);
        }
    }

    fn timers_of_spawner(&self, spawner: &Spawner) -> Vec<Due> {
        let due = |at, timer| Due {
            at,
            timer,
            process: spawner.id,
        };
        if matches!(spawner.part, Part::Serves(Some(worker)) if self.workers.contains_key(&worker)) {
            return Vec::new(); // the worker has one
        }
        match spawner.state {
            SpawnerState::Starting { since } => vec![due(since + self.limits.load_timeout, Timer::Load)],
            SpawnerState::Loading { since, slow } => {
                let mut timers = vec![due(since + self.limits.load_timeout, Timer::Load)];
                if !slow {
                    timers.push(due(since + self.limits.worker_boot_timeout, Timer::Slow));
                }
                timers
            }
            SpawnerState::Ready { alive, .. } => vec![due(alive + self.limits.worker_timeout, Timer::SpawnerSilence)],
            SpawnerState::Ending { kill_at } => vec![due(kill_at, Timer::SpawnerEnd)],
            SpawnerState::Killed { again, .. } => vec![due(again, Timer::SpawnerKill)],
        }
    }

    fn timer_of_worker(&self, worker: &Worker) -> Option<Due> {
        let limits = &self.limits;
        let (at, timer) = match worker.state {
            WorkerState::Forking { since } => {
                let progress = match self.spawners.get(&worker.spawner).map(|spawner| &spawner.state) {
                    Some(SpawnerState::Ready { progress, .. }) => since.max(*progress),
                    _ => since,
                };
                (progress + limits.worker_boot_timeout, Timer::Fork)
            }
            WorkerState::Booting { since, .. } => (since + limits.worker_boot_timeout, Timer::Boot),
            WorkerState::Settling { since, alive, .. } => {
                let (settled, silent) = (since + limits.settle_time, alive + limits.worker_timeout);
                let settles = settled <= silent && self.without != Some(Timer::Settle);
                if settles {
                    (settled, Timer::Settle)
                } else {
                    (silent, Timer::Silence)
                }
            }
            WorkerState::Serving { alive, .. } => (alive + limits.worker_timeout, Timer::Silence),
            WorkerState::Promoting { until } => (until, Timer::Promotion),
            WorkerState::Ending { kill_at } => (kill_at, Timer::WorkerEnd),
            WorkerState::Killed { again, .. } => (again, Timer::WorkerKill),
        };
        Some(Due {
            at,
            timer,
            process: worker.id,
        })
    }

    fn spawner_due(&mut self, due: Due) {
        let Some(spawner) = self.spawners.get_mut(&due.process) else {
            return;
        };
        let (id, generation) = (spawner.id, spawner.generation);
        match due.timer {
            Timer::Slow => {
                if let SpawnerState::Loading { since, .. } = spawner.state {
                    spawner.state.enter(SpawnerState::Loading { since, slow: true });
                    let after = self.limits.worker_boot_timeout;
                    self.log(Notice::SpawnerSlow {
                        generation,
                        spawner: id,
                        after,
                    });
                }
            }
            Timer::Load => {
                let after = self.limits.load_timeout;
                self.log(Notice::SpawnerOverdue { generation, after });
                self.kill_spawner(id);
                let seconds = super::notice::Seconds(after);
                self.spawner_lost(
                    id,
                    format!("the application was not loaded within {seconds} s (load_timeout)"),
                );
            }
            Timer::SpawnerSilence => {
                let after = self.limits.worker_timeout;
                self.log(Notice::SpawnerHung {
                    generation,
                    spawner: id,
                    after,
                });
                self.kill_spawner(id);
                let seconds = super::notice::Seconds(after);
                self.spawner_lost(id, format!("it showed no sign of life for {seconds} s"));
            }
            Timer::SpawnerEnd => {
                self.log(Notice::SpawnerKilled { generation });
                self.kill_spawner(id);
            }
            _ => self.spawner_unkillable(id),
        }
    }

    /// A killed spawner has not ended: it is in an uninterruptible wait.
    fn spawner_unkillable(&mut self, id: ProcessId) {
        if self.server.ends() {
            self.spawners.remove(&id);
            return self.log(Notice::Abandoned { process: id });
        }
        let again = self.now + EXIT_GRACE;
        let Some(spawner) = self.spawners.get_mut(&id) else {
            return;
        };
        let first = matches!(spawner.state, SpawnerState::Killed { retried: false, .. });
        spawner.state.enter(SpawnerState::Killed { again, retried: true });
        self.push(Action::Kill(id));
        if first {
            self.log(Notice::Unkillable { process: id });
        }
    }

    fn worker_due(&mut self, due: Due) {
        let Some(worker) = self.workers.get_mut(&due.process) else {
            return;
        };
        let (id, name) = (worker.id, worker.name());
        match due.timer {
            Timer::Fork => self.fork_overdue(id),
            Timer::Boot => self.boot_overdue(id),
            Timer::Settle => {
                if let WorkerState::Settling { since, alive, .. } = worker.state {
                    worker.state.enter(WorkerState::Serving { since, alive });
                    self.hold.settled();
                }
            }
            Timer::Silence => self.worker_silent(id),
            Timer::Promotion => {
                self.kill_worker(id);
                self.fail_restart("the worker did not become a spawner in time".to_owned());
            }
            Timer::WorkerEnd => {
                self.log(Notice::WorkerKilled { worker: name });
                self.kill_worker(id);
            }
            _ => self.worker_unkillable(id),
        }
    }

    fn fork_overdue(&mut self, id: ProcessId) {
        let Some(worker) = self.workers.get(&id) else { return };
        let (name, attempt, generation) = (worker.name(), worker.attempt(), worker.generation);
        self.log(Notice::WorkerBootTimedOut {
            worker: name,
            after: self.limits.worker_boot_timeout,
        });
        self.kill_worker(id);
        self.attempt_overdue(id, name.index, attempt, generation);
    }

    fn boot_overdue(&mut self, id: ProcessId) {
        let Some(worker) = self.workers.get(&id) else { return };
        let (name, attempt, generation) = (worker.name(), worker.attempt(), worker.generation);
        self.log(Notice::WorkerBootTimedOut {
            worker: name,
            after: self.limits.worker_boot_timeout,
        });
        self.drain_worker(id, self.now + REPLACEMENT_GRACE);
        self.attempt_overdue(id, name.index, attempt, generation);
    }

    fn attempt_overdue(&mut self, id: ProcessId, index: usize, attempt: Option<Moment>, generation: super::Generation) {
        let seconds = super::notice::Seconds(self.limits.worker_boot_timeout);
        let reason = format!("worker {index} was not ready after {seconds} s");
        if !self.sole_lost(id, &reason) {
            self.attempt_failed(generation, attempt.unwrap_or(self.now), reason.clone(), reason);
        }
    }

    fn worker_silent(&mut self, id: ProcessId) {
        let Some(worker) = self.workers.get(&id) else { return };
        let (name, attempt, generation) = (worker.name(), worker.attempt(), worker.generation);
        let after = self.limits.worker_timeout;
        self.log(Notice::WorkerHung { worker: name, after });
        self.push(Action::GiveUp(id)); // its Ruby threads may never notice
        self.drain_worker(id, self.now + REPLACEMENT_GRACE);
        let reason = format!("it showed no sign of life for {} s", super::notice::Seconds(after));
        if self.sole_lost(id, &reason) {
            return;
        }
        if let Some(started) = attempt {
            let reason = format!("worker {} hung right after it began to serve", name.index);
            self.attempt_failed(generation, started, reason.clone(), reason);
        }
    }

    fn worker_unkillable(&mut self, id: ProcessId) {
        if self.server.ends() {
            if let Some(sole) = self.workers.remove(&id).filter(|worker| worker.sole) {
                self.spawners.remove(&sole.spawner);
            }
            return self.log(Notice::Abandoned { process: id });
        }
        let again = self.now + EXIT_GRACE;
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let first = matches!(worker.state, WorkerState::Killed { retried: false, .. });
        worker.state.enter(WorkerState::Killed { again, retried: true });
        self.push(Action::Kill(id));
        if first {
            self.log(Notice::Unkillable { process: id });
        }
    }
}
