//! Views of the machine, for users, programs and systemd.

use super::restart_state::RestartState;
use super::worker::Worker;
use super::{Generation, Machine, ProcessId, RecycleReason, RestartKind, Server, StopReason};
use crate::settings::Limits;

/// The state of the server, with the names of `/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    /// Not all workers have served yet.
    Starting,
    /// Normal operation.
    Ready,
    /// A restart is under way.
    Restarting,
    /// It ends.
    Draining,
}

/// The state of a restart, with the names of `/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartStatus {
    /// It may still succeed.
    Running,
    /// It has succeeded.
    Done,
    /// It has failed. Workers may still be replaced by old ones again.
    Failed,
}

/// The running restart, or the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartView<'a> {
    /// Its kind.
    pub kind: RestartKind,
    /// Its state.
    pub state: RestartStatus,
    /// The reason of its failure.
    pub error: Option<&'a str>,
    /// True for an automatic refork: no request and no client ends for it.
    pub patient: bool,
    /// A counter that grows with each change, for the time of the last change.
    pub changes: u64,
}

/// A worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Its name.
    pub id: ProcessId,
    /// Its number among the workers.
    pub index: usize,
    /// Its slot in the scoreboard.
    pub slot: usize,
    /// Its generation.
    pub generation: Generation,
    /// True if it serves, or has served before it was asked to end.
    pub booted: bool,
    /// True if it serves and has settled.
    pub settled: bool,
    /// True if it was asked to end.
    pub ending: bool,
    /// True if it was asked to end, and goes on with long requests.
    pub retires: bool,
    /// True for a sole process.
    pub sole: bool,
    /// The process that has forked it, or that is the same process.
    pub spawner: ProcessId,
}

/// A spawner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnerView {
    /// Its name.
    pub id: ProcessId,
    /// Its generation.
    pub generation: Generation,
    /// True if it can fork workers.
    pub ready: bool,
    /// True if it was asked to end.
    pub ending: bool,
    /// True for a sole process.
    pub sole: bool,
}

impl Machine {
    /// The state of the server, with the names of `/status`.
    pub fn state(&self) -> ServerStatus {
        match self.server {
            Server::Starting | Server::Completing => ServerStatus::Starting,
            Server::Serving if self.restarts.restart.as_ref().is_some_and(|restart| restart.runs()) => {
                ServerStatus::Restarting
            }
            Server::Serving => ServerStatus::Ready,
            _ => ServerStatus::Draining,
        }
    }

    /// The state of the server.
    pub fn server(&self) -> Server {
        self.server
    }

    /// The current generation.
    pub fn generation(&self) -> Generation {
        self.workforce.current.generation
    }

    /// Configured number of workers; 0 for a sole process.
    pub fn wanted(&self) -> usize {
        self.workforce.wanted
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.workforce.limits
    }

    /// The reason for which it was asked to end.
    pub fn ended_by(&self) -> Option<StopReason> {
        self.outcome.ended_by
    }

    /// True if a restart runs, or its failure is not over.
    pub fn restarts(&self) -> bool {
        self.restarts.restart.as_ref().is_some_and(|restart| !restart.is_over())
    }

    /// The running restart, or the last one.
    pub fn restart(&self) -> Option<RestartView<'_>> {
        let restart = self.restarts.restart.as_ref()?;
        let (state, error) = match &restart.state {
            RestartState::Done => (RestartStatus::Done, None),
            // The previous program reports the failure.
            RestartState::RollingBack { .. } if self.workforce.borrowed.is_some() => (RestartStatus::Running, None),
            RestartState::Returning { .. } => (RestartStatus::Running, None),
            RestartState::RollingBack { reason } | RestartState::Failed { reason } => {
                (RestartStatus::Failed, Some(reason.as_str()))
            }
            _ => (RestartStatus::Running, None),
        };
        Some(RestartView {
            kind: restart.kind,
            state,
            error,
            patient: restart.patient,
            changes: self.restarts.changes,
        })
    }

    /// The restart that begins when the running one is over.
    pub fn pending(&self) -> Option<RestartKind> {
        self.restarts.pending
    }

    /// The number of workers that were replaced for each reason.
    pub fn recycled(&self) -> impl Iterator<Item = (RecycleReason, u64)> + '_ {
        let counts = self.workforce.recycling.counts;
        RecycleReason::ALL.into_iter().zip(counts)
    }

    /// Returns true if nothing is under way: all workers of the current generation serve and have settled, its spawner
    /// is ready, no restart runs or is requested, and no other process is left, except for killed ones that do not end.
    pub fn at_rest(&self) -> bool {
        let (generation, wanted) = (self.workforce.current.generation, self.workforce.places());
        let mut workers = self
            .workforce
            .workers()
            .filter(|worker| worker.stays() || worker.retires() || worker.drains());
        let settled = self
            .workforce
            .workers()
            .filter(|worker| worker.generation == generation && worker.settled())
            .count();
        self.server == Server::Serving
            && workers.all(|worker| worker.generation == generation && worker.settled())
            && settled == wanted
            && self.workforce.complete()
            && self.current_spawner().is_some()
            && self.workforce.spawners().filter(|spawner| !spawner.killed()).count() == 1
            && self.restarts.are_over()
            && self.restarts.pending.is_none()
            && self.workforce.borrowed.is_none()
    }

    /// All workers that have not ended.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView> + '_ {
        self.workforce.workers().map(Worker::view)
    }

    /// All spawners that have not ended.
    pub fn spawners(&self) -> impl Iterator<Item = SpawnerView> + '_ {
        self.workforce.spawners().map(|spawner| SpawnerView {
            id: spawner.id,
            generation: spawner.generation,
            ready: spawner.ready(),
            ending: !spawner.stays(),
            sole: spawner.sole(),
        })
    }

    /// The spawner of the current generation, or its sole process, if it is ready.
    pub fn current_spawner(&self) -> Option<ProcessId> {
        self.workforce.current_spawner()
    }

    /// The spawner with the new code, for which this machine waits for another program, or has taken over.
    pub fn newcomer(&self) -> Option<ProcessId> {
        self.restarts.newcomer()
    }

    /// Returns true if another version started the processes of this generation.
    pub fn borrows(&self, generation: Generation) -> bool {
        self.workforce.is_borrowed(generation)
    }

    /// Returns true if another version may have to continue.
    pub fn is_guest(&self) -> bool {
        self.workforce.borrowed.is_some()
    }
}

impl Worker {
    fn view(&self) -> WorkerView {
        WorkerView {
            id: self.id,
            index: self.index,
            slot: self.slot,
            generation: self.generation,
            booted: self.booted,
            settled: self.settled(),
            ending: !self.stays(),
            retires: self.retires(),
            sole: self.sole,
            spawner: self.spawner,
        }
    }
}
