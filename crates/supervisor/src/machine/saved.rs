//! The state of a machine in a form for other versions of this program: its processes, and the running restart.
//!
//! The format is frozen: fields are only added, and each new one has a default. Times are left out, because all
//! deadlines of the processes start again.

use super::back_off::{Attempts, Hold};
use super::end::Outcome;
use super::processes::Processes;
use super::recycling::Recycling;
use super::restart_state::{Restart, RestartState};
use super::restarts::Restarts;
use super::spawner::{Origin, Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::step::Step;
use super::worker::{Worker, WorkerState};
use super::workforce::Workforce;
use super::{Current, Generation, Machine, Moment, ProcessId, RestartKind, Seat, Server, SpawnKind, EXIT_GRACE};
use crate::settings::Limits;
use serde::{Deserialize, Serialize};

/// The state for another version.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// True once all workers have served, and this was announced.
    announced: bool,
    wanted: usize,
    /// The serving generation, and its spawner.
    generation: Generation,
    spawner: Option<ProcessId>,
    spawners: Vec<SavedSpawner>,
    workers: Vec<SavedWorker>,
    restart: SavedRestart,
    pending: Option<RestartKind>,
    last_process: ProcessId,
    last_generation: Generation,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct SavedRestart {
    kind: RestartKind,
    generation: Generation,
    /// The spawner that has loaded the new code.
    spawner: ProcessId,
    changes: u64,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct SavedSpawner {
    id: ProcessId,
    generation: Generation,
    /// True for a sole process; then its name as a worker.
    sole: bool,
    worker: Option<ProcessId>,
    phase: Phase,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct SavedWorker {
    id: ProcessId,
    index: usize,
    slot: usize,
    generation: Generation,
    spawner: ProcessId,
    sole: bool,
    booted: bool,
    phase: Phase,
    /// True if it ends, and has `long_drain` for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    retires: bool,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// A spawner that loads the application.
    Loading,
    /// A spawner that has loaded it.
    Ready,
    /// A worker that has no process yet.
    Forking,
    /// A worker that prepares to serve.
    Booting,
    /// A worker that serves.
    Serving,
    /// A spawner or a worker that was asked to end.
    Ending,
    /// A spawner or a worker that was killed.
    Killed,
}

/// The changes that the program in between reports when it returns everything.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Returned {
    /// The configured number of workers; nothing if it is unchanged.
    #[serde(default)]
    pub wanted: Option<usize>,
    /// True if all workers have served meanwhile.
    #[serde(default)]
    pub announced: bool,
    /// The restart that was requested meanwhile.
    #[serde(default)]
    pub pending: Option<RestartKind>,
    /// Processes that were asked to end.
    #[serde(default)]
    pub ending: Vec<ProcessId>,
}

impl Machine {
    /// Describes the machine for another version; `None` if it does not wait for another version.
    pub fn save(&self) -> Option<Saved> {
        let (restarts, workforce) = (&self.restarts, &self.workforce);
        let restart = restarts.restart.as_ref()?;
        let RestartState::Reexecuting { spawner, .. } = restart.state else {
            return None;
        };
        Some(Saved {
            announced: self.server == Server::Serving,
            wanted: workforce.wanted,
            generation: workforce.current.generation,
            spawner: match workforce.current.seat {
                Seat::Taken(id) => Some(id),
                _ => None,
            },
            spawners: workforce.spawners().map(SavedSpawner::of).collect(),
            workers: workforce.workers().map(SavedWorker::of).collect(),
            restart: SavedRestart {
                kind: restart.kind,
                generation: restart.generation,
                spawner,
                changes: restarts.changes,
            },
            pending: restarts.pending,
            last_process: workforce.processes.last,
            last_generation: restarts.last_generation,
        })
    }

    /// A machine that continues the machine of another version. The spawner with the new code must be reported as ready
    /// next. `limits`: the limits of the serving generation.
    pub fn take_over(saved: &Saved, limits: Limits, now: Moment) -> Machine {
        let server = if saved.announced {
            Server::Serving
        } else {
            Server::Completing
        };
        Machine {
            server,
            outcome: Outcome::default(),
            restarts: saved.restarts(),
            workforce: saved.workforce(limits, now),
            without: None,
        }
    }

    /// Continues after another program took over. The next events must be
    /// [`Event::NotReexecuted`](super::Event::NotReexecuted), then the ends of the processes that no longer exist.
    pub fn resume(&mut self, now: Moment, returned: &Returned) {
        self.restarts.pending = self.restarts.pending.max(returned.pending);
        if self.server == Server::Completing && returned.announced {
            self.server.enter(Server::Serving);
        }
        self.workforce.resume(now, returned);
    }

    /// The changes for the program that gets everything back, and the reason.
    pub fn giving_back(&self) -> Option<(Returned, String)> {
        let RestartState::Returning { reason, .. } = self.restarts.state()? else {
            return None;
        };
        let workforce = &self.workforce;
        let workers = workforce.workers().filter(|one| !one.stays()).map(|one| one.id);
        let spawners = workforce.spawners().filter(|one| !one.stays()).map(|one| one.id);
        let returned = Returned {
            wanted: Some(workforce.wanted),
            announced: self.server == Server::Serving,
            pending: self.restarts.pending,
            ending: workers.chain(spawners).collect(),
        };
        Some((returned, reason.clone()))
    }
}

impl Workforce {
    /// Continues after another program.
    fn resume(&mut self, now: Moment, returned: &Returned) {
        self.step.reach(now);
        self.wanted = returned.wanted.unwrap_or(self.wanted);
        let (now, kill_at) = (self.now(), self.deadline_of_end());
        let (workers, spawners) = (&mut self.processes.workers, &mut self.processes.spawners);
        for id in &returned.ending {
            if let Some(worker) = workers.get_mut(id).filter(|worker| worker.stays()) {
                worker.state.enter(WorkerState::Ending { kill_at });
            }
            if let Some(spawner) = spawners.get_mut(id).filter(|spawner| spawner.stays()) {
                spawner.state.enter(SpawnerState::Ending {
                    kill_at: kill_at + EXIT_GRACE,
                });
            }
        }
        workers.values_mut().for_each(|worker| worker.show_life(now));
        spawners.values_mut().for_each(|spawner| spawner.show_life(now, true));
    }
}

impl Saved {
    fn restarts(&self) -> Restarts {
        let restart = &self.restart;
        Restarts {
            restart: Some(Restart {
                kind: restart.kind,
                generation: restart.generation,
                state: RestartState::Loading {
                    spawner: restart.spawner,
                },
                patient: false,
            }),
            changes: restart.changes,
            pending: self.pending,
            last_generation: self.last_generation,
        }
    }

    fn workforce(&self, limits: Limits, now: Moment) -> Workforce {
        let new = self.restart.spawner;
        let spawners = self.spawners.iter();
        let workers = self.workers.iter();
        Workforce {
            wanted: self.wanted,
            current: Current {
                generation: self.generation,
                seat: self.spawner.map_or(Seat::Superseded, Seat::Taken),
            },
            borrowed: Some(self.generation),
            processes: Processes {
                spawners: spawners.map(|one| (one.id, one.restored(new, &limits, now))).collect(),
                workers: workers.map(|one| (one.id, one.restored(&limits, now))).collect(),
                last: self.last_process,
            },
            spawner_attempts: Attempts::default(),
            hold: Hold::default(),
            recycling: Recycling::default(),
            step: Step::at(now),
            limits,
        }
    }
}

impl SavedSpawner {
    fn of(spawner: &Spawner) -> SavedSpawner {
        SavedSpawner {
            id: spawner.id,
            generation: spawner.generation,
            sole: spawner.sole(),
            worker: match spawner.part {
                Part::Serves(worker) => worker,
                Part::Forks => None,
            },
            phase: match spawner.state {
                SpawnerState::Starting { .. } | SpawnerState::Loading { .. } => Phase::Loading,
                SpawnerState::Ready { .. } => Phase::Ready,
                SpawnerState::Ending { .. } => Phase::Ending,
                SpawnerState::Killed { .. } => Phase::Killed,
            },
        }
    }

    fn restored(&self, new: ProcessId, limits: &Limits, now: Moment) -> Spawner {
        let loading = SpawnerState::Loading { since: now, slow: true };
        Spawner {
            id: self.id,
            generation: self.generation,
            origin: Origin::Started(SpawnKind::Replacement),
            part: if self.sole {
                Part::Serves(self.worker)
            } else {
                Part::Forks
            },
            state: match self.phase {
                _ if self.id == new => loading, // the next event reports it as ready
                Phase::Ready => SpawnerState::Ready {
                    alive: now,
                    progress: now,
                },
                Phase::Ending => SpawnerState::Ending {
                    kill_at: now + limits.shutdown_timeout + EXIT_GRACE,
                },
                Phase::Killed => SpawnerState::Killed {
                    again: now,
                    retried: false,
                },
                _ => loading,
            },
        }
    }
}

impl SavedWorker {
    fn of(worker: &Worker) -> SavedWorker {
        SavedWorker {
            id: worker.id,
            index: worker.index,
            slot: worker.slot,
            generation: worker.generation,
            spawner: worker.spawner,
            sole: worker.sole,
            booted: worker.booted,
            phase: match worker.state {
                WorkerState::Forking { .. } => Phase::Forking,
                WorkerState::Booting { .. } => Phase::Booting,
                WorkerState::Settling { .. } | WorkerState::Serving { .. } => Phase::Serving,
                WorkerState::Promoting { .. } | WorkerState::Retiring { .. } | WorkerState::Ending { .. } => {
                    Phase::Ending
                }
                WorkerState::Killed { .. } => Phase::Killed,
            },
            retires: worker.retires(),
        }
    }

    fn restored(&self, limits: &Limits, now: Moment) -> Worker {
        Worker {
            id: self.id,
            index: self.index,
            slot: self.slot,
            generation: self.generation,
            spawner: self.spawner,
            sole: self.sole,
            booted: self.booted,
            finished: false,
            state: match self.phase {
                Phase::Forking => WorkerState::Forking { since: now },
                Phase::Serving | Phase::Ready => WorkerState::Serving { since: now, alive: now },
                Phase::Ending if self.retires => WorkerState::Retiring {
                    kill_at: now + limits.long_drain.max(limits.shutdown_timeout) + EXIT_GRACE,
                    alive: now,
                },
                Phase::Ending => WorkerState::Ending {
                    kill_at: now + limits.shutdown_timeout + EXIT_GRACE,
                },
                Phase::Killed => WorkerState::Killed {
                    again: now,
                    retried: false,
                },
                Phase::Booting | Phase::Loading => WorkerState::Booting {
                    started: now,
                    since: now,
                },
            },
        }
    }
}
