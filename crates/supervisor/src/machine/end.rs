//! The end of the server.

use super::spawner::SpawnerState;
use super::state::Lifecycle;
use super::worker::Worker;
use super::{Action, Machine, Moment, Notice, ProcessId, Seat, Server, StopReason};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The outcome of the server.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Outcome {
    pub(super) ended_by: Option<StopReason>,
    /// The exit status.
    status: i32,
    /// The reason why it has never served, if it was not logged.
    defeat: Option<String>,
}

impl Machine {
    /// Accepts for `delay`, finishes open requests, and ends.
    pub(super) fn stop(&mut self, reason: StopReason, delay: Duration) {
        let workforce = &mut self.workforce;
        workforce.step.log(Notice::Draining {
            reason,
            timeout: workforce.limits.shutdown_timeout,
            delay,
        });
        let spawners = &workforce.processes.spawners;
        let loading =
            matches!(workforce.current.seat, Seat::Taken(id) if spawners.get(&id).is_some_and(|one| one.loads()));
        if self.server == Server::Starting && loading {
            self.outcome.status = 128 + reason.number();
        }
        self.outcome.ended_by = Some(reason);
        self.server.enter(Server::Draining);
        let kill_at = self.workforce.deadline_of_end() + delay;
        self.begin_end(kill_at, |id| Action::EndWorker(id, delay));
    }

    /// Aborts all requests, and ends.
    pub(super) fn halt(&mut self, reason: StopReason) {
        if self.server == Server::Stopping {
            return;
        }
        self.workforce.step.log(Notice::StoppingAtOnce { reason });
        self.outcome.ended_by = self.outcome.ended_by.or(Some(reason));
        self.stop_at_once();
    }

    /// The server ends because it has never served. `reason`: if it was not logged.
    pub(super) fn give_up(&mut self, reason: Option<String>) {
        self.outcome.status = 1;
        self.outcome.defeat = reason;
        self.stop_at_once();
    }

    fn stop_at_once(&mut self) {
        self.server.enter(Server::Stopping);
        self.begin_end(self.workforce.deadline_of_exit(), Action::StopWorker);
    }

    /// The accepting workers empty the listeners and shut them down. The end does not wait for loading spawners. The other
    /// spawners end after the workers, which may need them.
    fn begin_end(&mut self, kill_at: Moment, how: impl Fn(ProcessId) -> Action) {
        self.restarts.forget();
        let workforce = &mut self.workforce;
        let is_emptied = self.server == Server::Draining && workforce.workers().any(Worker::accepts);
        let workers: Vec<ProcessId> = workforce.workers().map(|one| one.id).collect();
        for id in workers {
            workforce.end_worker(id, kill_at, how(id));
        }
        let soon = workforce.deadline_of_exit();
        let spawners: Vec<(ProcessId, bool)> = workforce.spawners().map(|one| (one.id, one.loads())).collect();
        for (id, loads) in spawners {
            match workforce.processes.spawners[&id].state {
                _ if loads => workforce.end_spawner(id, soon),
                SpawnerState::Ready { .. } => workforce.step.push(Action::CloseListenersOf(id)),
                SpawnerState::Ending { kill_at } if self.server == Server::Stopping => {
                    workforce.processes.hurry_spawner(id, kill_at.min(soon));
                }
                _ => {}
            }
        }
        if !is_emptied {
            workforce.step.push(Action::CloseListeners);
        }
    }

    /// Ends the spawners after the last worker, and the server after the last process.
    pub(super) fn tend_end(&mut self) {
        let workforce = &mut self.workforce;
        if !workforce.processes.workers.is_empty() {
            return;
        }
        let kill_at = match self.server {
            Server::Stopping => workforce.deadline_of_exit(),
            _ => workforce.deadline_of_end(),
        };
        let spawners = workforce.spawners().filter(|one| one.stays());
        let spawners: Vec<ProcessId> = spawners.map(|one| one.id).collect();
        for id in spawners {
            workforce.end_spawner(id, kill_at);
        }
        if workforce.processes.spawners.is_empty() {
            self.server.enter(Server::Ended);
            workforce.step.push(Action::Finish {
                status: self.outcome.status,
                defeat: self.outcome.defeat.clone(),
            });
        }
    }
}
