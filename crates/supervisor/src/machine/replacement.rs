//! The steps of a restart, once its code is loaded, up to its success.

use super::restart_state::{Replacing, RestartState};
use super::restarts::Restarts;
use super::state::Lifecycle;
use super::worker::Worker;
use super::workforce::Workforce;
use super::{Action, Current, Generation, Notice, ProcessId, RestartKind, Seat, Server, ADOPT_TIMEOUT};
use crate::settings::Limits;

impl Restarts {
    /// The new code is loaded.
    pub(super) fn target_ready(
        &mut self,
        spawner: ProcessId,
        limits: Limits,
        workforce: &mut Workforce,
        server: Server,
    ) {
        let reason = self.unsuitable(&limits, workforce.wanted);
        let Some(restart) = self.restart.as_mut() else { return };
        if restart.kind == RestartKind::Hot {
            let (generation, until) = (restart.generation, workforce.now() + ADOPT_TIMEOUT);
            restart.state.enter(RestartState::Adopting { spawner, limits, until });
            return workforce.step.push(Action::Adopt(generation));
        }
        match reason {
            Some(reason) => self.fail(reason, workforce, server),
            None => restart
                .state
                .enter(RestartState::Replacing(Replacing::new(spawner, None))),
        }
    }

    /// Takes the next step of a preparation.
    fn tend_preparation(&mut self, workforce: &mut Workforce, server: Server) {
        let Some([worker, substitute]) = self.preparing() else {
            return;
        };
        let stays = |id| workforce.processes.workers.get(&id).filter(|one| one.stays());
        match (stays(worker), stays(substitute)) {
            (None, _) => self.fail("the worker ended".to_owned(), workforce, server),
            (_, None) => self.fail("the worker in its place ended".to_owned(), workforce, server),
            (_, Some(other)) if !other.settled() => {}
            _ if self.pending.is_some() && self.is_patient() => {
                self.fail("another restart was asked for".to_owned(), workforce, server);
            }
            _ => {
                let Some(restart) = self.restart.as_mut() else { return };
                if let RestartState::Preparing { refork, .. } = restart.state {
                    restart
                        .state
                        .enter(workforce.promote(worker, restart.generation, refork));
                }
            }
        }
    }

    /// A worker has become the spawner of the new generation. It keeps its name.
    pub(super) fn promoted(&mut self, id: ProcessId, workforce: &mut Workforce) {
        let Some(restart) = self.restart.as_mut() else { return };
        restart.state.enter(RestartState::Replacing(Replacing::new(id, None)));
        let now = workforce.now();
        workforce.processes.add_promoted(id, restart.generation, now);
    }

    /// The loop has adopted the new configuration, or could not.
    pub(super) fn adopted(
        &mut self,
        generation: Generation,
        result: Result<(), String>,
        workforce: &mut Workforce,
        server: Server,
    ) {
        let Some(restart) = self.restart.as_mut().filter(|restart| restart.generation == generation) else {
            return;
        };
        let RestartState::Adopting { spawner, limits, .. } = &restart.state else {
            return;
        };
        if let Err(reason) = result {
            return self.fail(reason, workforce, server);
        }
        let (spawner, limits) = (*spawner, limits.clone());
        let wanted = std::mem::replace(&mut workforce.wanted, limits.workers);
        let former = std::mem::replace(&mut workforce.limits, limits);
        restart
            .state
            .enter(RestartState::Replacing(Replacing::new(spawner, Some((former, wanted)))));
        if let Some(current) = workforce.current_spawner() {
            workforce.step.push(Action::TellRestarting(current));
        }
    }

    /// Takes the next step of the replacement of workers.
    pub(super) fn advance(&mut self, workforce: &mut Workforce, server: Server) {
        let patient = self.is_patient() && self.pending.is_none();
        let Some(restart) = self.restart.as_ref() else { return };
        match &restart.state {
            RestartState::Replacing(replacing) => {
                let (generation, spawner) = (restart.generation, replacing.spawner);
                if replace(generation, Some(spawner), patient, workforce) || workforce.needs_no_return(generation) {
                    self.succeed(generation, spawner, workforce, server);
                }
            }
            RestartState::Preparing { .. } => self.tend_preparation(workforce, server),
            RestartState::RollingBack { reason } if workforce.borrowed.is_some() => {
                let reason = reason.clone();
                self.go_back(reason, workforce);
            }
            RestartState::RollingBack { reason } => {
                let reason = reason.clone();
                let spawner = match workforce.current.seat {
                    Seat::Taken(id) if workforce.hold.allows() => Some(id),
                    _ => None,
                };
                if replace(workforce.current.generation, spawner, patient, workforce) {
                    self.rolled_back(reason, workforce, server);
                }
            }
            _ => {}
        }
    }

    fn succeed(&mut self, generation: Generation, spawner: ProcessId, workforce: &mut Workforce, server: Server) {
        let Some(restart) = self.restart.as_mut() else { return };
        let adopted = restart.replacing().is_some_and(|replacing| replacing.former.is_some());
        let (kind, patient) = (restart.kind, restart.patient);
        restart.state.enter(RestartState::Done);
        self.changes += 1;
        workforce.current = Current {
            generation,
            seat: Seat::Taken(spawner),
        };
        workforce.borrowed = None;
        if adopted {
            workforce.step.push(Action::Commit(generation));
        }
        workforce.step.push(Action::TellCurrent(spawner));
        workforce.step.push(Action::TellBooted(spawner));
        let others = workforce.spawners().filter(|one| one.id != spawner && one.stays());
        let others: Vec<ProcessId> = others.map(|one| one.id).collect();
        for id in others {
            workforce.end_spawner(id, workforce.deadline_of_end());
        }
        if !patient {
            workforce.limit_retiring();
        }
        workforce.step.log(Notice::RestartDone {
            kind,
            generation,
            sole: workforce.wanted == 0,
        });
        self.begin_pending(workforce, server);
    }

    fn rolled_back(&mut self, reason: String, workforce: &mut Workforce, server: Server) {
        if let Some(restart) = self.restart.as_mut() {
            restart.state.enter(RestartState::Failed { reason });
        }
        self.begin_pending(workforce, server);
    }
}

/// Replaces the next worker of another generation. Returns true if none is left, except for retiring ones, and all
/// indexes serve. `patient`: no request and no client ends for it.
fn replace(generation: Generation, spawner: Option<ProcessId>, patient: bool, workforce: &mut Workforce) -> bool {
    let (fresh, old): (Vec<&Worker>, Vec<&Worker>) =
        workforce.workers().partition(|worker| worker.generation == generation);
    if fresh.iter().any(|worker| worker.attempt().is_some()) || old.iter().any(|worker| worker.drains()) {
        return false;
    }
    let replaced = |index: usize| fresh.iter().any(|worker| worker.index == index && worker.stays());
    let old: Vec<&Worker> = old.into_iter().filter(|worker| worker.stays()).collect();
    let serving = old.iter().filter(|worker| worker.serves()).count();
    let missing = (0..workforce.places()).find(|index| !replaced(*index));
    let goes = |worker: &&&Worker| match workforce.borrowed {
        _ if worker.sole => false,
        // If none of them served, the previous program would have no serving worker when it is back.
        Some(_) if worker.serves() => replaced(worker.index) && (missing.is_none() || serving > 1),
        Some(_) => true,
        None => replaced(worker.index),
    };
    if let Some(next) = old.iter().find(goes).map(|worker| worker.id) {
        return workforce.retire_worker(next, patient) && replace(generation, spawner, patient, workforce);
    }
    if let Some(index) = missing {
        let rest = old.iter().min_by_key(|worker| worker.index != index);
        workforce.replace_index(index, spawner, rest.map(|worker| worker.id), patient);
        return false;
    }
    let rest: Vec<ProcessId> = old.iter().map(|worker| worker.id).collect();
    let mut all_retire = true;
    for id in &rest {
        all_retire &= workforce.retire_worker(*id, patient);
    }
    all_retire && (rest.is_empty() || replace(generation, spawner, patient, workforce))
}
