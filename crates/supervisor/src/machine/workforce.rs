//! The workers: missing ones, surplus ones, and ending ones.

use super::restart::RestartState;
use super::spawner::{Part, Spawner, SpawnerState};
use super::state::Lifecycle;
use super::worker::{Worker, WorkerState};
use super::{Action, Generation, Machine, Moment, Notice, ProcessId, Seat, Server, EXIT_GRACE, SLOTS};

/// Number of failed starts of workers after which a server ends that has never served.
const ATTEMPTS: u32 = 4;

impl Machine {
    /// Returns true if each index has a serving worker.
    pub(super) fn complete(&self) -> bool {
        (0..self.places()).all(|index| {
            self.workers
                .values()
                .any(|worker| worker.index == index && worker.serves())
        })
    }

    /// The spawner of missing workers. New code is used only after one of its workers has settled.
    fn source(&self) -> Option<ProcessId> {
        let id = match self
            .restart
            .as_ref()
            .and_then(|restart| Some((restart.generation, restart.replacing()?)))
        {
            Some((generation, replacing)) => {
                let proven = self
                    .workers
                    .values()
                    .any(|worker| worker.generation == generation && worker.settled());
                let alone = !self
                    .workers
                    .values()
                    .any(|worker| worker.generation != generation && worker.stays());
                (proven || alone).then_some(replacing.spawner)?
            }
            None => match self.current.seat {
                Seat::Taken(id) => id,
                _ => return None,
            },
        };
        self.spawners
            .get(&id)
            .filter(|spawner| self.can_fork(spawner))
            .map(|spawner| spawner.id)
    }

    pub(super) fn start_missing(&mut self) {
        self.hold
            .tend(|id| self.workers.get(&id).is_some_and(|worker| worker.attempt().is_some()));
        for index in 0..self.places() {
            let there = self
                .workers
                .values()
                .any(|worker| worker.index == index && worker.stays());
            if there || !self.hold.allows() {
                continue;
            }
            if let Some(spawner) = self.source() {
                self.start_worker(index, spawner);
            }
        }
    }

    /// Starts a worker. Returns false if there is no room for it.
    pub(super) fn start_worker(&mut self, index: usize, spawner: ProcessId) -> bool {
        let taken = |slot: &usize| self.workers.values().any(|worker| worker.slot == *slot);
        let Some(slot) = std::iter::once(index).chain(0..SLOTS).find(|slot| !taken(slot)) else {
            return false;
        };
        let id = self.next_process();
        let now = self.now;
        let Some(process) = self.spawners.get_mut(&spawner) else {
            return false;
        };
        let sole = process.sole();
        let state = if sole {
            process.part = Part::Serves(Some(id));
            WorkerState::Booting {
                started: now,
                since: now,
            }
        } else {
            WorkerState::Forking { since: now }
        };
        let generation = process.generation;
        self.workers.insert(
            id,
            Worker {
                id,
                index,
                slot,
                generation,
                spawner,
                sole,
                booted: false,
                state,
            },
        );
        self.hold.started(id);
        self.push(Action::Fork {
            spawner,
            worker: id,
            index,
            slot,
        });
        true
    }

    /// Ends workers above the wanted number, and extra workers of an index without a reason. A restart handles the old
    /// ones itself.
    pub(super) fn end_surplus(&mut self) {
        let incoming = match &self.restart {
            Some(restart) if restart.replacing().is_some() => Some(restart.generation),
            Some(restart) if matches!(restart.state, RestartState::RollingBack { .. }) => Some(self.current.generation),
            _ => None,
        };
        let surplus: Vec<ProcessId> = self
            .workers
            .values()
            .filter(|worker| worker.stays() && incoming.is_none_or(|generation| generation == worker.generation))
            .filter(|worker| worker.index >= self.places() || (incoming.is_none() && self.has_better(worker)))
            .map(|worker| worker.id)
            .collect();
        for id in surplus {
            self.drain_worker(id, self.deadline_of_end());
        }
    }

    /// Returns true if a preferable worker has the same index.
    fn has_better(&self, worker: &Worker) -> bool {
        let rank = |one: &Worker| {
            (
                one.settled(),
                one.serves(),
                one.generation == self.current.generation,
                one.id,
            )
        };
        let others = self
            .workers
            .values()
            .filter(|other| other.index == worker.index && other.stays());
        others.into_iter().any(|other| rank(other) > rank(worker))
    }

    // --- failures

    /// A worker has not started. `started`: the start of the attempt. The reasons: for a restart that fails, and for a
    /// server that gives up.
    pub(super) fn attempt_failed(&mut self, generation: Generation, started: Moment, reason: String, last: String) {
        if self.server.ends() {
            return;
        }
        let now = self.now;
        if let Some(restart) = self.restart.as_mut().filter(|restart| restart.generation == generation) {
            if let RestartState::Replacing(replacing) = &mut restart.state {
                if replacing.attempts.fail(now, started) && replacing.attempts.failures > 1 {
                    self.fail_restart(reason);
                }
                return;
            }
        }
        let Some(pause) = self.hold.fail(now, started) else {
            return;
        };
        let failures = self.hold.attempts.failures;
        if !pause.is_zero() && failures < ATTEMPTS {
            self.log(Notice::NextAttempt { after: pause });
        }
        if self.server == Server::Starting && failures >= ATTEMPTS {
            self.give_up(Some(format!(
                "no worker could start in {failures} attempts; the last failure: {last}"
            )));
        }
    }

    /// A new worker has ended after it had settled. If the workers of new code keep doing that, the code must not be
    /// adopted.
    pub(super) fn settled_one_lost(&mut self, generation: Generation, reason: String) {
        let places = self.places();
        let Some(restart) = self.restart.as_mut().filter(|restart| restart.generation == generation) else {
            return;
        };
        if let RestartState::Replacing(replacing) = &mut restart.state {
            replacing.losses += 1;
            if replacing.losses > places {
                self.fail_restart(reason);
            }
        }
    }

    /// Tells the current spawner that a worker was lost.
    pub(super) fn tell_lost(&mut self, index: usize) {
        if let Seat::Taken(id) = self.current.seat {
            if self.spawners.get(&id).is_some_and(Spawner::ready) {
                self.push(Action::TellLost(id, index));
            }
        }
    }

    // --- ends

    /// Asks a worker to finish open requests, and to end. It is killed at `kill_at`, or earlier if it was asked before.
    pub(super) fn drain_worker(&mut self, id: ProcessId, kill_at: Moment) {
        self.end_worker(id, kill_at, Action::Drain(id));
    }

    pub(super) fn end_worker(&mut self, id: ProcessId, kill_at: Moment, how: Action) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let kill_at = match worker.state {
            WorkerState::Killed { .. } => return,
            WorkerState::Ending { kill_at: before } => before.min(kill_at),
            _ => kill_at,
        };
        worker.state.enter(WorkerState::Ending { kill_at });
        if worker.sole {
            let spawner = worker.spawner;
            self.end_sole(spawner, kill_at);
        }
        self.push(how);
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

    pub(super) fn kill_worker(&mut self, id: ProcessId) {
        let again = self.now + EXIT_GRACE;
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
        self.push(Action::Kill(id));
    }
}
