//! The deadlines of all waiting states, and their successors.

use super::back_off::HoldState;
use super::processes::Processes;
use super::recycling::RecyclingState;
use super::restart_state::RestartState;
use super::spawner::{Part, Spawner, SpawnerState};
use super::worker::{Worker, WorkerState};
use super::{Machine, Moment, ProcessId, Seat};
use crate::settings::Limits;
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
    /// A worker may be recycled again after a failure.
    RecyclingRetry,
}

/// One deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    at: Moment,
    pub(super) timer: Timer,
    pub(super) process: ProcessId,
}

impl Machine {
    /// The moment at which an [`Event::Tick`](super::Event::Tick) is due, if no other event comes first; nothing if
    /// there is no deadline.
    pub fn deadline(&self) -> Option<Moment> {
        self.timers().into_iter().map(|due| due.at).min()
    }

    /// The earliest deadline, if it has passed.
    pub(super) fn due(&self) -> Option<Due> {
        let now = self.workforce.now();
        self.timers().into_iter().min().filter(|due| due.at <= now)
    }

    fn timers(&self) -> Vec<Due> {
        let workforce = &self.workforce;
        let settles = self.without != Some(Timer::Settle);
        let all = workforce.processes.timers(&workforce.limits, settles);
        let all = all.into_iter().chain(self.other_timers());
        all.filter(|due| Some(due.timer) != self.without).collect()
    }

    fn other_timers(&self) -> Vec<Due> {
        let mut timers = Vec::new();
        if self.server.ends() {
            return timers;
        }
        let of_restart = match self.restarts.state() {
            Some(RestartState::Adopting { until, .. }) => Some((*until, Timer::Adopt)),
            Some(RestartState::Reexecuting { until, .. }) => Some((*until, Timer::Reexecute)),
            Some(RestartState::Returning { again, .. }) => Some((*again, Timer::Return)),
            _ => None,
        };
        timers.extend(of_restart.map(|(at, timer)| Due { at, timer, process: 0 }));
        if let Seat::Vacant { until } = self.workforce.current.seat {
            timers.push(Due {
                at: until,
                timer: Timer::SpawnerRetry,
                process: 0,
            });
        }
        if let HoldState::Waiting { until } = self.workforce.hold.state {
            timers.push(Due {
                at: until,
                timer: Timer::WorkerRetry,
                process: 0,
            });
        }
        if let RecyclingState::Waiting { until } = self.workforce.recycling.state {
            timers.push(Due {
                at: until,
                timer: Timer::RecyclingRetry,
                process: 0,
            });
        }
        timers
    }
}

impl Processes {
    /// The deadlines of all processes. `settles`: false for a test without this deadline.
    fn timers(&self, limits: &Limits, settles: bool) -> Vec<Due> {
        let spawners = self.spawners.values();
        let spawners = spawners.flat_map(|spawner| self.timers_of_spawner(spawner, limits));
        let workers = self.workers.values();
        let workers = workers.map(|worker| self.timer_of_worker(worker, limits, settles));
        spawners.chain(workers).collect()
    }

    fn timers_of_spawner(&self, spawner: &Spawner, limits: &Limits) -> Vec<Due> {
        let due = |at, timer| Due {
            at,
            timer,
            process: spawner.id,
        };
        if matches!(spawner.part, Part::Serves(Some(worker)) if self.workers.contains_key(&worker)) {
            return Vec::new(); // the worker has one
        }
        match spawner.state {
            SpawnerState::Starting { since } => vec![due(since + limits.load_timeout, Timer::Load)],
            SpawnerState::Loading { since, slow } => {
                let mut timers = vec![due(since + limits.load_timeout, Timer::Load)];
                if !slow {
                    timers.push(due(since + limits.worker_boot_timeout, Timer::Slow));
                }
                timers
            }
            SpawnerState::Ready { alive, .. } => vec![due(alive + limits.worker_timeout, Timer::SpawnerSilence)],
            SpawnerState::Ending { kill_at } => vec![due(kill_at, Timer::SpawnerEnd)],
            SpawnerState::Killed { again, .. } => vec![due(again, Timer::SpawnerKill)],
        }
    }

    fn timer_of_worker(&self, worker: &Worker, limits: &Limits, settles: bool) -> Due {
        // A worker that has finished its requests runs hooks, and sends no heartbeat. A sole process does not say when it has.
        let silence_or = |until: Moment, timer, alive: Moment| match alive + limits.worker_timeout {
            silent if silent < until && !worker.finished && !worker.sole => (silent, Timer::Silence),
            _ => (until, timer),
        };
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
                if settled <= silent && settles {
                    (settled, Timer::Settle)
                } else {
                    (silent, Timer::Silence)
                }
            }
            WorkerState::Serving { alive, .. } => (alive + limits.worker_timeout, Timer::Silence),
            WorkerState::Promoting { until, alive } => silence_or(until, Timer::Promotion, alive),
            WorkerState::Retiring { kill_at, alive } => silence_or(kill_at, Timer::WorkerEnd, alive),
            WorkerState::Ending { kill_at } => (kill_at, Timer::WorkerEnd),
            WorkerState::Killed { again, .. } => (again, Timer::WorkerKill),
        };
        Due {
            at,
            timer,
            process: worker.id,
        }
    }
}
