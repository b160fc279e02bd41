//! Restarts: their beginning, their steps, their success and failure.

use super::action::SpawnKind;
use super::restart::{Replacing, Restart, RestartState};
use super::spawner::Spawner;
use super::state::Lifecycle;
use super::worker::{Worker, WorkerState};
use super::{Action, Current, Generation, Machine, Notice, ProcessId, RestartKind, Seat, Server, Warmth};
use super::{ADOPT_TIMEOUT, EXIT_GRACE};
use crate::settings::Limits;

impl Machine {
    pub(super) fn restart_asked(&mut self, kind: RestartKind) {
        let kind = match kind {
            RestartKind::Refork => return self.refork_asked(),
            RestartKind::Phased if self.wanted == 0 => {
                self.log(Notice::PhasedRestartNeedsWorkers);
                RestartKind::Hot
            }
            kind => kind,
        };
        let later = self.pending.max(Some(kind));
        match self.restart.as_ref().map(|restart| (restart.kind, &restart.state)) {
            _ if self.server == Server::Starting || self.borrowed.is_some() => self.pending = later,
            Some((loading, RestartState::Loading { spawner })) => {
                let spawner = *spawner;
                self.give_way(loading, kind, spawner);
                self.begin(kind.max(loading));
            }
            Some((_, RestartState::RollingBack { .. })) if !self.current_spawner_is_ready() => self.begin(kind),
            None | Some((_, RestartState::Done | RestartState::Failed { .. })) => self.begin(kind),
            _ => self.pending = later,
        }
    }

    fn current_spawner_is_ready(&self) -> bool {
        matches!(self.current.seat, Seat::Taken(id) if self.spawners.get(&id).is_some_and(Spawner::ready))
    }

    /// A restart that still loads its code may never finish.
    fn give_way(&mut self, loading: RestartKind, to: RestartKind, spawner: ProcessId) {
        if to == RestartKind::Hot {
            self.log(Notice::RestartGivesWay { to, kind: loading });
        }
        self.end_spawner(spawner, self.now + EXIT_GRACE);
    }

    /// Begins a restart. It also replaces a lost spawner, if the replacement of that spawner is not ready yet.
    fn begin(&mut self, kind: RestartKind) {
        if !self.current_spawner_is_ready() {
            if let Seat::Taken(id) = self.current.seat {
                self.end_spawner(id, self.now + EXIT_GRACE);
            }
            self.current.seat = Seat::Superseded;
        }
        self.hold.forgive();
        let generation = self.next_generation();
        let spawner = self.start_spawner(generation, SpawnKind::Restart(kind));
        self.set_restart(Restart {
            kind,
            generation,
            state: RestartState::Loading { spawner },
        });
        self.log(Notice::RestartBegun { kind, generation });
    }

    pub(super) fn begin_pending(&mut self) {
        if let Some(kind) = self.pending.take() {
            self.restart_asked(kind);
        }
    }

    fn set_restart(&mut self, restart: Restart) {
        self.restart = Some(restart);
        self.restart_changes += 1;
    }

    // --- reforks

    fn refork_asked(&mut self) {
        if self.wanted == 0 {
            return self.refuse_without_workers("refork");
        }
        let reason = if self.restart.as_ref().is_some_and(|restart| !restart.is_over()) {
            "a restart is under way"
        } else if self.server != Server::Serving {
            "the server is starting"
        } else if !self.begin_refork() {
            "no worker serves"
        } else {
            return;
        };
        self.log(Notice::ReforkRefused { reason });
        self.refuse(reason);
    }

    /// Makes the longest-serving worker a spawner. Returns false if none serves.
    pub(super) fn begin_refork(&mut self) -> bool {
        let until = self.deadline_of_end();
        let Some(worker) = self.workers.values_mut().find(|worker| worker.serves()) else {
            return false;
        };
        worker.state.enter(WorkerState::Promoting { until });
        let name = worker.name();
        let generation = self.next_generation();
        let state = RestartState::Promoting { worker: name.id };
        self.set_restart(Restart {
            kind: RestartKind::Refork,
            generation,
            state,
        });
        self.push(Action::Promote(name.id, generation));
        self.log(Notice::ReforkBegun { worker: name });
        true
    }

    // --- steps

    /// The new code is loaded.
    pub(super) fn target_ready(&mut self, spawner: ProcessId, limits: Limits) {
        let Some(restart) = self.restart.as_mut() else { return };
        if restart.kind == RestartKind::Hot {
            let (generation, until) = (restart.generation, self.now + ADOPT_TIMEOUT);
            restart.state.enter(RestartState::Adopting { spawner, limits, until });
            return self.push(Action::Adopt(generation));
        }
        if let Some(reason) = self.unsuitable(&limits) {
            return self.fail_restart(reason);
        }
        if let Some(restart) = self.restart.as_mut() {
            restart
                .state
                .enter(RestartState::Replacing(Replacing::new(spawner, None)));
        }
    }

    pub(super) fn adopted(&mut self, generation: Generation, result: Result<(), String>) {
        let Some(restart) = self.restart.as_mut().filter(|restart| restart.generation == generation) else {
            return;
        };
        let RestartState::Adopting { spawner, limits, .. } = &restart.state else {
            return;
        };
        if let Err(reason) = result {
            return self.fail_restart(reason);
        }
        let (spawner, limits) = (*spawner, limits.clone());
        let wanted = std::mem::replace(&mut self.wanted, limits.workers);
        let former = std::mem::replace(&mut self.limits, limits);
        restart
            .state
            .enter(RestartState::Replacing(Replacing::new(spawner, Some((former, wanted)))));
        if let Seat::Taken(id) = self.current.seat {
            if self.current_spawner_is_ready() {
                self.push(Action::TellRestarting(id));
            }
        }
    }

    /// Takes the next step of the replacement of workers.
    pub(super) fn advance(&mut self) {
        let Some(restart) = self.restart.as_ref() else { return };
        match &restart.state {
            RestartState::Replacing(replacing) => {
                let (generation, spawner) = (restart.generation, replacing.spawner);
                if self.replace(generation, Some(spawner)) || self.needs_no_return(generation) {
                    self.restart_done(generation, spawner);
                }
            }
            RestartState::RollingBack { reason } if self.borrowed.is_some() => {
                let reason = reason.clone();
                self.go_back(reason);
            }
            RestartState::RollingBack { reason } => {
                let reason = reason.clone();
                let spawner = match self.current.seat {
                    Seat::Taken(id) if self.hold.allows() => Some(id),
                    _ => None,
                };
                if self.replace(self.current.generation, spawner) {
                    self.rolled_back(reason);
                }
            }
            _ => {}
        }
    }

    /// Replaces the next worker of another generation. Returns true if none is left, and all indexes serve.
    fn replace(&mut self, generation: Generation, spawner: Option<ProcessId>) -> bool {
        let (fresh, old): (Vec<&Worker>, Vec<&Worker>) = self
            .workers
            .values()
            .partition(|worker| worker.generation == generation);
        if fresh.iter().any(|worker| worker.attempt().is_some()) || old.iter().any(|worker| worker.drains()) {
            return false;
        }
        let replaced = |index: usize| fresh.iter().any(|worker| worker.index == index && worker.stays());
        let old: Vec<&Worker> = old.into_iter().filter(|worker| worker.stays()).collect();
        let serving = old.iter().filter(|worker| worker.serves()).count();
        let complete = (0..self.places()).all(replaced);
        let goes = |worker: &&&Worker| match self.borrowed {
            _ if worker.sole => false,
            // If none of them served, the previous program would have no serving worker when it is back.
            Some(_) if worker.serves() => replaced(worker.index) && (complete || serving > 1),
            Some(_) => true,
            None => replaced(worker.index),
        };
        if let Some(next) = old.iter().find(goes).map(|worker| worker.id) {
            self.drain_worker(next, self.deadline_of_end());
            return false;
        }
        if let Some(index) = (0..self.places()).find(|index| !replaced(*index)) {
            let rest = old
                .iter()
                .min_by_key(|worker| worker.index != index)
                .map(|worker| worker.id);
            self.replace_index(index, spawner, rest);
            return false;
        }
        let rest: Vec<ProcessId> = old.iter().map(|worker| worker.id).collect();
        for id in &rest {
            self.drain_worker(*id, self.deadline_of_end());
        }
        rest.is_empty()
    }

    /// Starts a worker. If there is no room for another one, an old worker ends first.
    fn replace_index(&mut self, index: usize, spawner: Option<ProcessId>, old: Option<ProcessId>) {
        let Some(id) = spawner.filter(|id| self.spawners.get(id).is_some_and(|one| self.can_fork(one))) else {
            return;
        };
        if !self.start_worker(index, id) {
            if let Some(old) = old {
                self.drain_worker(old, self.deadline_of_end());
            }
        }
    }

    // --- ends

    fn restart_done(&mut self, generation: Generation, spawner: ProcessId) {
        let Some(restart) = self.restart.as_mut() else { return };
        let adopted = restart.replacing().is_some_and(|replacing| replacing.former.is_some());
        let kind = restart.kind;
        restart.state.enter(RestartState::Done);
        self.restart_changes += 1;
        let warmth = if kind == RestartKind::Refork {
            Warmth::Warm
        } else {
            Warmth::Cold
        };
        self.current = Current {
            generation,
            seat: Seat::Taken(spawner),
            warmth,
        };
        self.borrowed = None;
        if adopted {
            self.push(Action::Commit(generation));
        }
        self.push(Action::TellCurrent(spawner));
        self.push(Action::TellBooted(spawner));
        let others: Vec<ProcessId> = self
            .spawners
            .values()
            .filter(|one| one.id != spawner && one.stays())
            .map(|one| one.id)
            .collect();
        for id in others {
            self.end_spawner(id, self.deadline_of_end());
        }
        self.log(Notice::RestartDone {
            kind,
            generation,
            sole: self.wanted == 0,
        });
        self.begin_pending();
    }

    /// All processes of the new generation end.
    pub(super) fn fail_restart(&mut self, reason: String) {
        let Some(restart) = self.restart.as_ref().filter(|restart| restart.runs()) else {
            return;
        };
        let (kind, generation) = (restart.kind, restart.generation);
        let current = self.current.generation;
        if self.borrowed.is_none() {
            // Otherwise the previous program logs it.
            self.log(Notice::RestartFailed {
                kind,
                generation: current,
                reason: reason.clone(),
            });
        }
        if let Some((former, wanted)) = self.revert(generation) {
            (self.limits, self.wanted) = (former, wanted);
        }
        self.end_generation(generation);
        if self.current.seat == Seat::Superseded {
            self.leave_seat();
        }
        let rest = self
            .workers
            .values()
            .any(|worker| worker.generation != current && worker.stays());
        let state = if rest || self.borrowed.is_some() {
            RestartState::RollingBack { reason }
        } else {
            RestartState::Failed { reason }
        };
        if let Some(restart) = self.restart.as_mut() {
            restart.state.enter(state);
            self.restart_changes += 1;
        }
        if !rest {
            self.begin_pending();
        }
    }

    /// Gives up an adopted configuration. Returns the previous limits and number of workers.
    fn revert(&mut self, generation: Generation) -> Option<(Limits, usize)> {
        let former = match &self.restart.as_ref()?.state {
            RestartState::Adopting { .. } => None,
            RestartState::Replacing(Replacing {
                former: Some(former), ..
            }) => Some(former.clone()),
            _ => return None,
        };
        self.push(Action::Revert(generation));
        former
    }

    /// Ends the spawner of this generation, and its workers that do not serve yet.
    fn end_generation(&mut self, generation: Generation) {
        let kill_at = self.now + EXIT_GRACE;
        let early = self
            .workers
            .values()
            .filter(|worker| worker.generation == generation && worker.stays());
        let early: Vec<ProcessId> = early
            .filter(|worker| !worker.serves())
            .map(|worker| worker.id)
            .collect();
        for id in early {
            self.drain_worker(id, kill_at);
        }
        let serves = |id| self.workers.values().any(|worker| worker.sole && worker.spawner == id);
        let spawners = self
            .spawners
            .values()
            .filter(|spawner| spawner.generation == generation && spawner.stays());
        let spawners: Vec<ProcessId> = spawners.map(|spawner| spawner.id).filter(|id| !serves(*id)).collect();
        for id in spawners {
            self.end_spawner(id, kill_at);
        }
    }

    fn rolled_back(&mut self, reason: String) {
        if let Some(restart) = self.restart.as_mut() {
            restart.state.enter(RestartState::Failed { reason });
        }
        self.begin_pending();
    }

    /// The server ends: no restart continues.
    pub(super) fn forget_restart(&mut self) {
        self.pending = None;
        let Some(restart) = self.restart.as_mut().filter(|restart| !restart.is_over()) else {
            return;
        };
        let reason = match &restart.state {
            RestartState::RollingBack { reason } | RestartState::Returning { reason, .. } => reason.clone(),
            _ => "the server was asked to end".to_owned(),
        };
        restart.state.enter(RestartState::Failed { reason });
        self.restart_changes += 1;
    }
}
