//! The consequences of a lost process: its replacement, the failure of the restart, or the end of the server.

use super::restarts::Failure;
use super::worker::{Worker, WorkerState};
use super::{Generation, Machine, Moment, Notice, ProcessId, Seat, Server};

/// Number of failed starts of workers after which a server ends that has never served.
const ATTEMPTS: u32 = 4;

/// The start of a worker.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) worker: ProcessId,
    pub(super) generation: Generation,
    pub(super) started: Moment,
}

impl Attempt {
    /// The start of this worker, which may have settled just now.
    pub(super) fn of(worker: &Worker, now: Moment) -> Attempt {
        let served = match worker.state {
            WorkerState::Serving { since, .. } => Some(since),
            _ => None,
        };
        Attempt {
            worker: worker.id,
            generation: worker.generation,
            started: worker.attempt().or(served).unwrap_or(now),
        }
    }
}

impl Machine {
    pub(super) fn fail_restart(&mut self, reason: String) {
        self.restarts.fail(reason, &mut self.workforce, self.server);
    }

    /// A spawner in use has failed. Its process may still run.
    pub(super) fn spawner_lost(&mut self, id: ProcessId, reason: String) {
        if self.server.ends() {
            return;
        }
        if self.restarts.has_target(id) {
            return self.fail_restart(reason);
        }
        let workforce = &mut self.workforce;
        if workforce.current.seat != Seat::Taken(id) {
            return;
        }
        if self.server == Server::Starting {
            return self.give_up(Some(reason));
        }
        let generation = workforce.current.generation;
        let sole_serves = self.restarts.wanted_before(workforce.wanted) == 0;
        let is_borrowed = workforce.borrowed.is_some();
        workforce.step.log(match sole_serves {
            true => Notice::SoleLost { process: id, reason },
            false => Notice::SpawnerLost {
                generation,
                reason,
                is_borrowed,
            },
        });
        workforce.leave_seat();
    }

    /// A worker has failed. Returns true if it is a sole process, which then has to be replaced as a whole.
    pub(super) fn sole_lost(&mut self, worker: ProcessId, reason: &str) -> bool {
        let worker = self.workforce.processes.workers.get(&worker);
        let Some(spawner) = worker.filter(|worker| worker.sole).map(|worker| worker.spawner) else {
            return false;
        };
        self.spawner_lost(spawner, reason.to_owned());
        true
    }

    /// A worker has not started. The reasons: for a restart that fails, and for a server that gives up.
    pub(super) fn attempt_failed(&mut self, attempt: Attempt, reason: String, last: String) {
        if self.server.ends() || self.workforce.recycling_failed(attempt.worker, &last) {
            return;
        }
        if self
            .restarts
            .preparing()
            .is_some_and(|[_, substitute]| substitute == attempt.worker)
        {
            return self.fail_restart(reason);
        }
        let (now, started) = (self.workforce.now(), attempt.started);
        match self.restarts.note_failure(attempt.generation, now, started) {
            Failure::Unrelated => {}
            Failure::Tolerated => return,
            Failure::Fatal => return self.fail_restart(reason),
        }
        let Some(pause) = self.workforce.hold.fail(now, started) else {
            return;
        };
        let failures = self.workforce.hold.attempts.failures;
        if !pause.is_zero() && failures < ATTEMPTS {
            self.workforce.step.log(Notice::NextAttempt { after: pause });
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
        if self.restarts.note_loss(generation, self.workforce.places()) {
            self.fail_restart(reason);
        }
    }
}
