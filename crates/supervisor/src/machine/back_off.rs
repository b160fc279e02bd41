//! Pauses after failures.

use super::{Moment, ProcessId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time without a failure after which earlier failures no longer count.
const MEMORY: Duration = Duration::from_secs(60);

/// The longest pause between two spawners.
const LONGEST: Duration = Duration::from_secs(30);

/// The pause between two workers on trial.
const TRIAL_PAUSE: Duration = Duration::from_secs(1);

/// Counts failed starts. Processes that were started together and fail together count once.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Attempts {
    pub(super) failures: u32,
    pub(super) last: Moment,
}

impl Attempts {
    /// Counts a failure that began at `started`. Returns false if another failure of the same group was counted.
    pub(super) fn fail(&mut self, now: Moment, started: Moment) -> bool {
        if self.failures > 0 && started < self.last {
            return false;
        }
        if started > self.last + MEMORY {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.last = now;
        true
    }

    /// The pause before the next spawner: none, then 1, 2, 4 … seconds.
    pub(super) fn pause(&self) -> Duration {
        match self.failures {
            0 | 1 => Duration::ZERO,
            failures => Duration::from_secs(1 << (failures - 2).min(5)).min(LONGEST),
        }
    }
}

/// Decides when missing workers are started. The first failure changes nothing. From the second on, a single worker is
/// tried once a second, and the others wait until it has settled.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Hold {
    pub(super) attempts: Attempts,
    pub(super) state: HoldState,
}

/// The workers that may be started.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum HoldState {
    /// All.
    #[default]
    Open,
    /// None, until then.
    Waiting { until: Moment },
    /// A single one.
    TrialDue,
    /// None while this worker is on trial.
    Trial { worker: ProcessId },
}

impl Hold {
    /// Counts a failed start. Returns the pause before the next one, if this is a new failure.
    pub(super) fn fail(&mut self, now: Moment, started: Moment) -> Option<Duration> {
        if !self.attempts.fail(now, started) {
            return None;
        }
        if self.attempts.failures < 2 {
            return Some(Duration::ZERO);
        }
        self.state = HoldState::Waiting {
            until: now + TRIAL_PAUSE,
        };
        Some(TRIAL_PAUSE)
    }

    /// A worker has settled.
    pub(super) fn settled(&mut self) {
        self.state = HoldState::Open;
    }

    /// The pause is over.
    pub(super) fn expire(&mut self, now: Moment) {
        if matches!(self.state, HoldState::Waiting { until } if until <= now) {
            self.state = HoldState::TrialDue;
        }
    }

    /// The worker on trial may have been asked to end, or have failed together with others. `tried`: true for a worker
    /// that still is on trial.
    pub(super) fn tend(&mut self, tried: impl Fn(ProcessId) -> bool) {
        if matches!(self.state, HoldState::Trial { worker } if !tried(worker)) {
            self.state = HoldState::TrialDue;
        }
    }

    /// Returns true if a worker may be started now.
    pub(super) fn allows(&self) -> bool {
        matches!(self.state, HoldState::Open | HoldState::TrialDue)
    }

    /// A worker was started.
    pub(super) fn started(&mut self, worker: ProcessId) {
        if self.state == HoldState::TrialDue {
            self.state = HoldState::Trial { worker };
        }
    }

    /// Other code is about to start: earlier failures are irrelevant for it.
    pub(super) fn forgive(&mut self) {
        *self = Hold::default();
    }
}
