//! Replaces single workers that have used up a limit: a new worker settles first, then the old one drains.
//!
//! One worker at a time, and never during a restart, which brings new workers anyway. The deadlines of a replacement
//! are the deadlines of its two processes, so only the pause after a failure has a deadline of its own.

use super::back_off::Attempts;
use super::state::{names, Lifecycle};
use super::workforce::Workforce;
use super::{Machine, Moment, Notice, ProcessId, RecycleReason, Server, SLOTS};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The replacement of single workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Recycling {
    pub(super) state: RecyclingState,
    /// Replacements that could not start.
    pub(super) attempts: Attempts,
    /// Replaced workers, by the number of the reason.
    pub(super) counts: [u64; RecycleReason::ALL.len()],
}

/// The state of the replacement.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) enum RecyclingState {
    /// No worker is being replaced.
    #[default]
    Idle,
    /// The new worker starts, while the old one serves. The processes have the deadlines.
    Starting {
        old: ProcessId,
        fresh: ProcessId,
        reason: RecycleReason,
        detail: String,
    },
    /// The new worker has failed. The next attempt may begin at that time.
    Waiting { until: Moment },
}

impl Lifecycle for RecyclingState {
    const TRANSITIONS: &'static [(&'static str, &'static str)] = &[
        ("Idle", "Starting"),
        ("Starting", "Waiting"),
        ("Waiting", "Idle"),
        ("Starting", "Idle"),
    ];
    names!(RecyclingState: Idle, Starting, Waiting);
}

impl Recycling {
    /// Returns true for a worker that replaces another one, or is being replaced.
    pub(super) fn concerns(&self, worker: ProcessId) -> bool {
        matches!(self.state, RecyclingState::Starting { old, fresh, .. } if old == worker || fresh == worker)
    }

    /// The pause is over.
    pub(super) fn expire(&mut self, now: Moment) {
        if matches!(self.state, RecyclingState::Waiting { until } if until <= now) {
            self.state.enter(RecyclingState::Idle);
        }
    }

    /// Gives up the replacement, and forgets failures.
    fn cancel(&mut self) {
        self.attempts = Attempts::default();
        if self.state != RecyclingState::Idle {
            self.state.enter(RecyclingState::Idle);
        }
    }
}

impl Machine {
    /// A worker has used up a limit. Ignored if it cannot be replaced now: the loop repeats the event. An automatic refork that waits
    /// gives way: it may wait for hours.
    pub(super) fn recycle(&mut self, id: ProcessId, reason: RecycleReason, detail: String) {
        if self.server != Server::Serving || !self.workforce.may_recycle(id, reason) {
            return;
        }
        let why = "a worker has to be replaced before";
        self.restarts.give_up_promotion(why, &mut self.workforce, self.server);
        if self.restarts.are_over() {
            self.workforce.begin_recycling(id, reason, detail);
        } else if self.restarts.is_patient() {
            self.workforce.make_room();
        }
    }
}

impl Workforce {
    fn may_recycle(&self, id: ProcessId, reason: RecycleReason) -> bool {
        let worker = self.processes.workers.get(&id);
        let settled = worker.is_some_and(|worker| worker.settled() && !worker.sole && worker.index < self.places());
        let draining = self.workers().filter(|worker| worker.drains()).count();
        let room = match reason {
            // Its drain lasts until it is killed: the next one need not wait, but old workers must not pile up.
            RecycleReason::Stuck => draining < self.places(),
            _ => draining == 0,
        };
        let starts = self
            .workers()
            .any(|worker| worker.attempt().is_some() && !worker.serves());
        settled && room && !starts && self.complete() && self.recycling.state == RecyclingState::Idle
    }

    fn begin_recycling(&mut self, old: ProcessId, reason: RecycleReason, detail: String) {
        let index = self.processes.workers[&old].index;
        let Some(spawner) = self.current_spawner().filter(|id| self.can_fork(*id)) else {
            return;
        };
        if !self.hold.allows() {
            return;
        }
        if self.workers().filter(|worker| worker.stays()).count() == SLOTS {
            return self.recycled(old, reason, detail); // there is no slot for another worker
        }
        if let Some(fresh) = self.start_worker(index, spawner) {
            let state = RecyclingState::Starting {
                old,
                fresh,
                reason,
                detail,
            };
            self.recycling.state.enter(state);
        }
    }

    /// Takes the next step. `alone`: false if a restart is under way.
    pub(super) fn tend_recycling(&mut self, alone: bool) {
        if !alone {
            return self.recycling.cancel(); // if it has started a worker, there is one too many
        }
        let RecyclingState::Starting {
            old,
            fresh,
            reason,
            ref detail,
        } = self.recycling.state
        else {
            return;
        };
        let stays = |id| self.processes.workers.get(&id).filter(|worker| worker.stays());
        let (Some(_), Some(new)) = (stays(old), stays(fresh)) else {
            return self.recycling.cancel(); // the other one has its index
        };
        // A stuck worker may do no work at all.
        if new.settled() || (reason == RecycleReason::Stuck && new.serves()) {
            let detail = detail.clone();
            self.recycling.cancel();
            self.recycled(old, reason, detail);
        }
    }

    /// The old worker ends.
    fn recycled(&mut self, old: ProcessId, reason: RecycleReason, detail: String) {
        let worker = self.processes.workers[&old].name();
        self.recycling.counts[reason as usize] += 1;
        self.step.log(Notice::WorkerRecycled { worker, reason, detail });
        match reason {
            RecycleReason::Stuck => self.drain_worker(old, self.deadline_of_end()), // its requests may never end
            _ => _ = self.retire_worker(old, false),
        }
    }

    /// A worker has not started. Returns true if the worker that it was to replace goes on.
    pub(super) fn recycling_failed(&mut self, id: ProcessId, reason: &str) -> bool {
        let RecyclingState::Starting { old, fresh, .. } = self.recycling.state else {
            return false;
        };
        let Some(old) = self.processes.workers.get(&old).filter(|worker| worker.stays()) else {
            return false;
        };
        if fresh != id {
            return false;
        }
        let (now, worker) = (self.now(), old.name());
        self.recycling.attempts.fail(now, now);
        let after = pause(&self.recycling.attempts);
        self.recycling
            .state
            .enter(RecyclingState::Waiting { until: now + after });
        let reason = reason.to_owned();
        self.step.log(Notice::WorkerNotRecycled { worker, reason, after });
        true
    }
}

/// 1, 2, 4 … seconds.
fn pause(attempts: &Attempts) -> Duration {
    let doublings = attempts.failures.saturating_sub(1).min(5);
    Duration::from_secs(1 << doublings).min(LONGEST_PAUSE)
}
