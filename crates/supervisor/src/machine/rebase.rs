//! Makes machines equal for a model checker if they differ only in the time that has passed.

use super::back_off::{Attempts, HoldState};
use super::processes::Processes;
use super::recycling::RecyclingState;
use super::restart_state::RestartState;
use super::restarts::Restarts;
use super::spawner::SpawnerState;
use super::worker::WorkerState;
use super::{Machine, Moment, Seat};
use std::time::Duration;

/// No rule needs older moments.
const HORIZON: Duration = Duration::from_secs(61);

/// No rule needs an older start of a worker's service.
const HORIZON_OF_SERVING: Duration = Duration::from_millis(1001);

/// Moves moments from one time to another.
struct Shift {
    from: Moment,
    to: Moment,
}

impl Shift {
    fn moment(&self, moment: &mut Moment) {
        self.clamped(moment, HORIZON);
    }

    fn clamped(&self, moment: &mut Moment, horizon: Duration) {
        *moment = match moment.checked_sub(self.from) {
            Some(ahead) => self.to + ahead,
            None => self.to.saturating_sub((self.from - *moment).min(horizon)),
        };
    }

    fn attempts(&self, attempts: &mut Attempts) {
        match attempts.failures {
            0 => attempts.last = Moment::ZERO,
            _ => self.moment(&mut attempts.last),
        }
    }
}

impl Machine {
    /// The same machine at another time. Moments too old to matter are dropped, so all limits must be shorter than a
    /// minute.
    #[doc(hidden)]
    pub fn rebase(&mut self, to: Moment) {
        let workforce = &mut self.workforce;
        let from = std::mem::replace(&mut workforce.step.now, to);
        let shift = Shift { from, to };
        shift.attempts(&mut workforce.spawner_attempts);
        shift.attempts(&mut workforce.hold.attempts);
        if let HoldState::Waiting { until } = &mut workforce.hold.state {
            shift.moment(until);
        }
        if let Seat::Vacant { until } = &mut workforce.current.seat {
            shift.moment(until);
        }
        let recycling = &mut workforce.recycling;
        recycling.counts = Default::default();
        shift.attempts(&mut recycling.attempts);
        if let RecyclingState::Waiting { until } = &mut recycling.state {
            shift.moment(until);
        }
        workforce.processes.rebase(&shift);
        self.restarts.rebase(&shift);
    }
}

impl Restarts {
    fn rebase(&mut self, shift: &Shift) {
        self.changes = 0;
        match self.restart.as_mut().map(|restart| &mut restart.state) {
            Some(RestartState::Returning { again, .. }) => shift.moment(again),
            Some(RestartState::Adopting { until, .. } | RestartState::Reexecuting { until, .. }) => shift.moment(until),
            Some(RestartState::Replacing(replacing)) => shift.attempts(&mut replacing.attempts),
            _ => {}
        }
    }
}

impl Processes {
    fn rebase(&mut self, shift: &Shift) {
        let forking = self
            .workers
            .values()
            .any(|worker| matches!(worker.state, WorkerState::Forking { .. }));
        for spawner in self.spawners.values_mut() {
            match &mut spawner.state {
                SpawnerState::Starting { since } | SpawnerState::Loading { since, .. } => shift.moment(since),
                SpawnerState::Ready { alive, progress } => {
                    shift.moment(alive);
                    match forking {
                        true => shift.moment(progress),
                        false => *progress = *alive,
                    }
                }
                SpawnerState::Ending { kill_at } => shift.moment(kill_at),
                SpawnerState::Killed { again, .. } => shift.moment(again),
            }
        }
        for worker in self.workers.values_mut() {
            rebase_worker(&mut worker.state, shift);
        }
    }
}

fn rebase_worker(state: &mut WorkerState, shift: &Shift) {
    match state {
        WorkerState::Forking { since } => shift.moment(since),
        WorkerState::Booting { started, since } => {
            shift.moment(started);
            shift.moment(since);
        }
        WorkerState::Settling { started, since, alive } => {
            shift.moment(started);
            shift.moment(since);
            shift.moment(alive);
        }
        WorkerState::Serving { since, alive } => {
            shift.clamped(since, HORIZON_OF_SERVING);
            shift.moment(alive);
        }
        WorkerState::Promoting { until, alive } => {
            shift.moment(until);
            shift.moment(alive);
        }
        WorkerState::Retiring { kill_at, alive } => {
            shift.moment(kill_at);
            shift.moment(alive);
        }
        WorkerState::Ending { kill_at } => shift.moment(kill_at),
        WorkerState::Killed { again, .. } => shift.moment(again),
    }
}
