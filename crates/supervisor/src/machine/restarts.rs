//! Restarts: their requests and beginnings. [`replacement`](super::replacement) has their steps.

use super::action::SpawnKind;
use super::restart_state::{Replacing, Restart, RestartState};
use super::state::Lifecycle;
use super::worker::Worker;
use super::workforce::Workforce;
use super::{Generation, Moment, Notice, ProcessId, Refork, RestartKind, Seat, Server};
use crate::settings::Limits;
use serde::{Deserialize, Serialize};

/// The restarts of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Restarts {
    /// The running restart, or the last one.
    pub(super) restart: Option<Restart>,
    /// Counts the visible changes of the restart.
    pub(super) changes: u64,
    /// The next restart, which begins when the running one is over.
    pub(super) pending: Option<RestartKind>,
    pub(super) last_generation: Generation,
}

/// The consequence of a failed start of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The worker belongs to no restart.
    Unrelated,
    /// The restart goes on.
    Tolerated,
    /// The restart fails.
    Fatal,
}

impl Restarts {
    /// A server without a restart.
    pub(super) fn none(last_generation: Generation) -> Restarts {
        Restarts {
            restart: None,
            changes: 0,
            pending: None,
            last_generation,
        }
    }

    // --- views

    pub(super) fn state(&self) -> Option<&RestartState> {
        self.restart.as_ref().map(|restart| &restart.state)
    }

    /// Returns true if no step of a restart is left.
    pub(super) fn are_over(&self) -> bool {
        self.restart.as_ref().is_none_or(Restart::is_over)
    }

    /// Returns true for an automatic refork: no request and no client ends for it.
    pub(super) fn is_patient(&self) -> bool {
        self.restart.as_ref().is_some_and(|restart| restart.patient)
    }

    /// Returns true if the spawner brings in the new generation.
    pub(super) fn has_target(&self, spawner: ProcessId) -> bool {
        self.restart.as_ref().and_then(Restart::target) == Some(spawner)
    }

    /// The new generation and its spawner, while workers are replaced.
    pub(super) fn replacing(&self) -> Option<(Generation, &Replacing)> {
        let restart = self.restart.as_ref()?;
        Some((restart.generation, restart.replacing()?))
    }

    /// The generation that replaces the workers of the others.
    pub(super) fn incoming(&self, current: Generation) -> Option<Generation> {
        match &self.restart.as_ref()?.state {
            RestartState::Replacing(_) => self.restart.as_ref().map(|restart| restart.generation),
            RestartState::RollingBack { .. } => Some(current),
            _ => None,
        }
    }

    /// The spawner of missing workers. New code is used only after one of its workers has settled.
    pub(super) fn source(&self, workforce: &Workforce) -> Option<ProcessId> {
        let Some((generation, replacing)) = self.replacing() else {
            return match workforce.current.seat {
                Seat::Taken(id) => Some(id),
                _ => None,
            };
        };
        let is_new = |worker: &&Worker| worker.generation == generation;
        let proven = workforce.workers().filter(is_new).any(Worker::settled);
        let alone = !workforce.workers().any(|worker| !is_new(&worker) && worker.stays());
        (proven || alone).then_some(replacing.spawner)
    }

    /// The number of workers of the serving generation. `wanted`: the configured number.
    pub(super) fn wanted_before(&self, wanted: usize) -> usize {
        let former = self.replacing().and_then(|(_, replacing)| replacing.former.as_ref());
        former.map_or(wanted, |(_, wanted)| *wanted)
    }

    /// The reason why a process with these limits cannot join the serving generation; nothing if it can. `wanted`: the
    /// configured number of workers.
    pub(super) fn unsuitable(&self, limits: &Limits, wanted: usize) -> Option<String> {
        let wanted = self.wanted_before(wanted);
        let count = wanted.max(limits.workers);
        let changes = (wanted == 0) != (limits.workers == 0);
        changes.then(|| format!("the number of workers changes between 0 and {count}; use a hot restart (USR2)"))
    }

    // --- requests

    pub(super) fn ask(&mut self, kind: RestartKind, workforce: &mut Workforce, server: Server) {
        let kind = match kind {
            RestartKind::Refork => return self.ask_for_refork(workforce, server),
            RestartKind::Phased if workforce.wanted == 0 => {
                workforce.step.log(Notice::PhasedRestartNeedsWorkers);
                RestartKind::Hot
            }
            kind => kind,
        };
        let later = self.pending.max(Some(kind));
        match self.restart.as_ref().map(|restart| (restart.kind, &restart.state)) {
            _ if server == Server::Starting || workforce.borrowed.is_some() => self.pending = later,
            Some((loading, RestartState::Loading { spawner })) => {
                give_way(loading, kind, *spawner, workforce);
                self.begin(kind.max(loading), workforce);
            }
            Some((_, RestartState::RollingBack { .. })) if workforce.current_spawner().is_none() => {
                self.begin(kind, workforce)
            }
            None | Some((_, RestartState::Done | RestartState::Failed { .. })) => self.begin(kind, workforce),
            _ => self.pending = later,
        }
    }

    pub(super) fn begin_pending(&mut self, workforce: &mut Workforce, server: Server) {
        if let Some(kind) = self.pending.take() {
            self.ask(kind, workforce, server);
        }
    }

    /// Begins a restart. It also replaces a lost spawner, if the replacement of that spawner is not ready yet.
    fn begin(&mut self, kind: RestartKind, workforce: &mut Workforce) {
        if workforce.current_spawner().is_none() {
            if let Seat::Taken(id) = workforce.current.seat {
                workforce.end_spawner(id, workforce.deadline_of_exit());
            }
            workforce.current.seat = Seat::Superseded;
        }
        workforce.hold.forgive();
        let generation = self.next_generation();
        let spawner = workforce.start_spawner(generation, SpawnKind::Restart(kind));
        self.set(Restart {
            kind,
            generation,
            state: RestartState::Loading { spawner },
            patient: false,
        });
        workforce.step.log(Notice::RestartBegun { kind, generation });
    }

    /// A new generation begins with this number.
    fn next_generation(&mut self) -> Generation {
        self.last_generation += 1;
        self.last_generation
    }

    fn set(&mut self, restart: Restart) {
        self.restart = Some(restart);
        self.changes += 1;
    }

    /// The server ends: no restart continues.
    pub(super) fn forget(&mut self) {
        self.pending = None;
        let Some(restart) = self.restart.as_mut().filter(|restart| !restart.is_over()) else {
            return;
        };
        let reason = match &restart.state {
            RestartState::RollingBack { reason } | RestartState::Returning { reason, .. } => reason.clone(),
            _ => "the server was asked to end".to_owned(),
        };
        restart.state.enter(RestartState::Failed { reason });
        self.changes += 1;
    }

    // --- reforks

    fn ask_for_refork(&mut self, workforce: &mut Workforce, server: Server) {
        if workforce.wanted == 0 {
            return workforce.step.refuse_without_workers("refork");
        }
        if let Some(restart) = self
            .restart
            .as_mut()
            .filter(|restart| restart.runs() && restart.patient)
        {
            restart.end_patience();
            return workforce.step.log(Notice::ReforkHurried);
        }
        let reason = if !self.are_over() {
            "a restart is under way"
        } else if server != Server::Serving {
            "the server is starting"
        } else if !workforce.may_start() {
            "a process is starting"
        } else if !self.begin_refork(Refork::Asked, None, workforce) {
            "no worker serves"
        } else {
            return;
        };
        workforce.step.log(Notice::ReforkRefused { reason });
        workforce.step.refuse(reason);
    }

    /// Makes this worker a spawner, or the longest-serving one, once another one serves in its place. Returns false if none serves.
    pub(super) fn begin_refork(&mut self, refork: Refork, id: Option<ProcessId>, workforce: &mut Workforce) -> bool {
        let is_meant = |worker: &&Worker| worker.serves() && id.is_none_or(|id| id == worker.id);
        let Some(worker) = workforce.workers().find(is_meant) else {
            return false;
        };
        let name = worker.name();
        let generation = self.next_generation();
        workforce.step.log(Notice::ReforkBegun { worker: name });
        let state = match workforce.start_substitute(name.index) {
            Some(substitute) => RestartState::Preparing {
                worker: name.id,
                substitute,
                refork,
            },
            None => workforce.promote(name.id, generation, refork), // there is no slot
        };
        self.set(Restart {
            kind: RestartKind::Refork,
            generation,
            state,
            patient: refork == Refork::Automatic,
        });
        true
    }

    /// The worker that becomes the spawner, and its substitute.
    pub(super) fn preparing(&self) -> Option<[ProcessId; 2]> {
        match self.state() {
            Some(RestartState::Preparing { worker, substitute, .. }) => Some([*worker, *substitute]),
            _ => None,
        }
    }

    // --- lost workers of new code

    /// Counts a failed start of a worker. `started`: the start of the attempt.
    pub(super) fn note_failure(&mut self, generation: Generation, now: Moment, started: Moment) -> Failure {
        let restart = self.restart.as_mut().filter(|restart| restart.generation == generation);
        let Some(RestartState::Replacing(replacing)) = restart.map(|restart| &mut restart.state) else {
            return Failure::Unrelated;
        };
        if replacing.attempts.fail(now, started) && replacing.attempts.failures > 1 {
            Failure::Fatal
        } else {
            Failure::Tolerated
        }
    }

    /// Counts a worker that was lost after it had settled. Returns true if there are too many of them.
    pub(super) fn note_loss(&mut self, generation: Generation, places: usize) -> bool {
        let restart = self.restart.as_mut().filter(|restart| restart.generation == generation);
        let Some(RestartState::Replacing(replacing)) = restart.map(|restart| &mut restart.state) else {
            return false;
        };
        replacing.losses += 1;
        replacing.losses > places
    }
}

/// A restart that still loads its code may never finish.
fn give_way(loading: RestartKind, to: RestartKind, spawner: ProcessId, workforce: &mut Workforce) {
    if to == RestartKind::Hot {
        workforce.step.log(Notice::RestartGivesWay { to, kind: loading });
    }
    workforce.end_spawner(spawner, workforce.deadline_of_exit());
}
