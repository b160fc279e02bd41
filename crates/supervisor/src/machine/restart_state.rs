//! A restart.

use super::back_off::Attempts;
use super::state::{names, Lifecycle};
use super::{Generation, Moment, ProcessId, Refork, RestartKind};
use crate::settings::Limits;
use serde::{Deserialize, Serialize};

/// A restart: the running one, or the last one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Restart {
    pub(super) kind: RestartKind,
    /// The new generation.
    pub(super) generation: Generation,
    pub(super) state: RestartState,
    /// An automatic refork: no request and no client ends for it.
    #[serde(default)]
    pub(super) patient: bool,
}

/// The state of a restart. Except in `Adopting`, its deadlines are the deadlines of its processes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum RestartState {
    /// The spawner loads the new code.
    Loading { spawner: ProcessId },
    /// The new code has loaded, and has another version: the program of that version replaces this one.
    Reexecuting { spawner: ProcessId, until: Moment },
    /// For a refork: another worker starts, which serves in place of the worker. The processes have the deadlines.
    Preparing {
        worker: ProcessId,
        substitute: ProcessId,
        refork: Refork,
    },
    /// For a refork: the worker becomes a spawner.
    Promoting { worker: ProcessId },
    /// The loop prepares the resources of the new configuration.
    Adopting {
        spawner: ProcessId,
        limits: Limits,
        until: Moment,
    },
    /// Workers are replaced.
    Replacing(Replacing),
    /// It has failed, and the previous generation takes back its resources from the new one.
    RollingBack { reason: String },
    /// It has failed, and the program that has started the previous generation replaces this one again.
    Returning { reason: String, again: Moment },
    /// It has succeeded.
    Done,
    /// It has failed, and the previous state is restored.
    Failed { reason: String },
}

/// The replacement of workers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Replacing {
    pub(super) spawner: ProcessId,
    /// Failed starts of new workers.
    pub(super) attempts: Attempts,
    /// New workers that were lost after they had settled.
    pub(super) losses: usize,
    /// Limits and number of workers before the restart, if new ones were adopted.
    pub(super) former: Option<(Limits, usize)>,
}

impl Lifecycle for RestartState {
    const TRANSITIONS: &'static [(&'static str, &'static str)] = &[
        ("Loading", "Adopting"),
        ("Loading", "Replacing"),
        ("Loading", "Reexecuting"),
        ("Preparing", "Promoting"),
        ("Promoting", "Replacing"),
        ("Adopting", "Replacing"),
        ("Replacing", "Done"),
        ("Loading", "RollingBack"),
        ("Promoting", "RollingBack"),
        ("Adopting", "RollingBack"),
        ("Replacing", "RollingBack"),
        ("Loading", "Failed"),
        ("Preparing", "Failed"),
        ("Promoting", "Failed"),
        ("Adopting", "Failed"),
        ("Replacing", "Failed"),
        ("RollingBack", "Failed"),
        ("Reexecuting", "RollingBack"),
        ("Reexecuting", "Failed"),
        ("RollingBack", "Returning"),
        ("Returning", "Returning"),
        ("Returning", "Failed"),
    ];
    names!(RestartState: Loading, Reexecuting, Preparing, Promoting, Adopting, Replacing, RollingBack, Returning, Done, Failed);
}

impl Restart {
    /// Returns true if it may still succeed.
    pub(super) fn runs(&self) -> bool {
        !matches!(
            self.state,
            RestartState::RollingBack { .. }
                | RestartState::Returning { .. }
                | RestartState::Done
                | RestartState::Failed { .. }
        )
    }

    /// An automatic refork becomes one that was asked for.
    pub(super) fn end_patience(&mut self) {
        self.patient = false;
        if let RestartState::Preparing { refork, .. } = &mut self.state {
            *refork = Refork::Asked;
        }
    }

    /// Returns true if no step of it is left.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, RestartState::Done | RestartState::Failed { .. })
    }

    /// The worker that becomes a spawner once its last request and client have ended, if one does.
    pub(super) fn patient_promotion(&self) -> Option<ProcessId> {
        match self.state {
            RestartState::Promoting { worker } if self.patient => Some(worker),
            _ => None,
        }
    }

    /// The spawner of its new generation, if it runs.
    pub(super) fn target(&self) -> Option<ProcessId> {
        match &self.state {
            RestartState::Loading { spawner }
            | RestartState::Reexecuting { spawner, .. }
            | RestartState::Adopting { spawner, .. } => Some(*spawner),
            RestartState::Replacing(replacing) => Some(replacing.spawner),
            _ => None,
        }
    }

    pub(super) fn replacing(&self) -> Option<&Replacing> {
        match &self.state {
            RestartState::Replacing(replacing) => Some(replacing),
            _ => None,
        }
    }
}

impl Replacing {
    pub(super) fn new(spawner: ProcessId, former: Option<(Limits, usize)>) -> Replacing {
        Replacing {
            spawner,
            attempts: Attempts::default(),
            losses: 0,
            former,
        }
    }
}
