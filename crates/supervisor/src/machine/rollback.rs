//! The failure of a restart.

use super::restart_state::{Replacing, Restart, RestartState};
use super::restarts::Restarts;
use super::state::Lifecycle;
use super::worker::Worker;
use super::workforce::Workforce;
use super::{Action, Generation, Notice, ProcessId, Seat, Server};
use crate::settings::Limits;

impl Restarts {
    /// All processes of the new generation end.
    pub(super) fn fail(&mut self, reason: String, workforce: &mut Workforce, server: Server) {
        let Some(restart) = self.restart.as_ref().filter(|restart| restart.runs()) else {
            return;
        };
        let (kind, generation) = (restart.kind, restart.generation);
        let current = workforce.current.generation;
        if workforce.borrowed.is_none() {
            // Otherwise the previous program logs it.
            workforce.step.log(Notice::RestartFailed {
                kind,
                generation: current,
                reason: reason.clone(),
            });
        }
        if let Some((former, wanted)) = self.revert(generation, workforce) {
            (workforce.limits, workforce.wanted) = (former, wanted);
        }
        end_generation(generation, workforce);
        if workforce.current.seat == Seat::Superseded {
            workforce.leave_seat();
        }
        let is_left = |worker: &Worker| worker.generation != current && worker.stays();
        let rest = workforce.workers().any(is_left);
        let state = if rest || workforce.borrowed.is_some() {
            RestartState::RollingBack { reason }
        } else {
            RestartState::Failed { reason }
        };
        if let Some(restart) = self.restart.as_mut() {
            restart.state.enter(state);
            self.changes += 1;
        }
        if !rest {
            self.begin_pending(workforce, server);
        }
    }

    /// Gives up an automatic refork that waits for the last requests of its worker.
    pub(super) fn give_up_promotion(&mut self, reason: &str, workforce: &mut Workforce, server: Server) {
        if let Some(worker) = self.restart.as_ref().and_then(Restart::patient_promotion) {
            workforce.retire_worker(worker, true);
            self.fail(reason.to_owned(), workforce, server);
        }
    }

    /// Gives up an adopted configuration. Returns the previous limits and number of workers.
    fn revert(&self, generation: Generation, workforce: &mut Workforce) -> Option<(Limits, usize)> {
        let former = match self.state()? {
            RestartState::Adopting { .. } => None,
            RestartState::Replacing(Replacing {
                former: Some(former), ..
            }) => Some(former.clone()),
            _ => return None,
        };
        workforce.step.push(Action::Revert(generation));
        former
    }
}

/// Ends the spawner of this generation, and its workers that do not serve yet.
fn end_generation(generation: Generation, workforce: &mut Workforce) {
    let kill_at = workforce.deadline_of_exit();
    let workers = workforce.workers().filter(|worker| worker.generation == generation);
    let early: Vec<ProcessId> = workers
        .filter(|worker| worker.stays() && !worker.serves())
        .map(|worker| worker.id)
        .collect();
    for id in early {
        workforce.drain_worker(id, kill_at);
    }
    let serves = |id| workforce.workers().any(|worker| worker.sole && worker.spawner == id);
    let spawners = workforce.spawners().filter(|spawner| spawner.generation == generation);
    let spawners: Vec<ProcessId> = spawners
        .filter(|spawner| spawner.stays() && !serves(spawner.id))
        .map(|spawner| spawner.id)
        .collect();
    for id in spawners {
        workforce.end_spawner(id, kill_at);
    }
}
