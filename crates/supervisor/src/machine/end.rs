//! The end of the server.

use super::spawner::SpawnerState;
use super::state::Lifecycle;
use super::worker::Worker;
use super::{Action, Machine, Moment, Notice, ProcessId, Seat, Server, StopReason, EXIT_GRACE};
use std::time::Duration;

impl Machine {
    /// Accepts for `delay`, finishes open requests, and ends.
    pub(super) fn stop(&mut self, reason: StopReason, delay: Duration) {
        self.log(Notice::Draining {
            reason,
            timeout: self.limits.shutdown_timeout,
            delay,
        });
        let loading =
            matches!(self.current.seat, Seat::Taken(id) if self.spawners.get(&id).is_some_and(|one| one.loads()));
        if self.server == Server::Starting && loading {
            self.status = 128 + reason.number();
        }
        self.ended_by = Some(reason);
        self.server.enter(Server::Draining);
        let kill_at = self.deadline_of_end() + delay;
        self.begin_end(kill_at, |id| Action::EndWorker(id, delay));
    }

    /// Aborts all requests, and ends.
    pub(super) fn halt(&mut self, reason: StopReason) {
        if self.server == Server::Stopping {
            return;
        }
        self.log(Notice::StoppingAtOnce { reason });
        self.ended_by = self.ended_by.or(Some(reason));
        self.stop_at_once();
    }

    /// The server ends because it has never served. `reason`: if it was not logged.
    pub(super) fn give_up(&mut self, reason: Option<String>) {
        self.status = 1;
        self.defeat = reason;
        self.stop_at_once();
    }

    fn stop_at_once(&mut self) {
        self.server.enter(Server::Stopping);
        self.begin_end(self.now + EXIT_GRACE, Action::StopWorker);
    }

    /// The accepting workers empty the listeners and shut them down. The end does not wait for loading spawners. The other
    /// spawners end after the workers, which may need them.
    fn begin_end(&mut self, kill_at: Moment, how: impl Fn(ProcessId) -> Action) {
        self.forget_restart();
        let is_emptied = self.server == Server::Draining && self.workers.values().any(Worker::accepts);
        let workers: Vec<ProcessId> = self.workers.values().map(|one| one.id).collect();
        for id in workers {
            self.end_worker(id, kill_at, how(id));
        }
        let soon = self.now + EXIT_GRACE;
        let spawners: Vec<(ProcessId, bool)> = self.spawners.values().map(|one| (one.id, one.loads())).collect();
        for (id, loads) in spawners {
            match self.spawners[&id].state {
                _ if loads => self.end_spawner(id, soon),
                SpawnerState::Ready { .. } => self.push(Action::CloseListenersOf(id)),
                SpawnerState::Ending { kill_at } if self.server == Server::Stopping => {
                    self.end_ending_spawner(id, kill_at.min(soon));
                }
                _ => {}
            }
        }
        if !is_emptied {
            self.push(Action::CloseListeners);
        }
    }

    fn end_ending_spawner(&mut self, id: ProcessId, kill_at: Moment) {
        if let Some(spawner) = self.spawners.get_mut(&id) {
            spawner.state.enter(SpawnerState::Ending { kill_at });
        }
    }

    pub(super) fn tend_end(&mut self) {
        if !self.workers.is_empty() {
            return;
        }
        let kill_at = match self.server {
            Server::Stopping => self.now + EXIT_GRACE,
            _ => self.deadline_of_end(),
        };
        let spawners: Vec<ProcessId> = self
            .spawners
            .values()
            .filter(|one| one.stays())
            .map(|one| one.id)
            .collect();
        for id in spawners {
            self.end_spawner(id, kill_at);
        }
        if self.spawners.is_empty() {
            self.server.enter(Server::Ended);
            self.push(Action::Finish {
                status: self.status,
                defeat: self.defeat.clone(),
            });
        }
    }
}
