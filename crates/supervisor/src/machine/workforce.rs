//! The workforce: the serving generation, and the processes that the configuration wants.
//!
//! With `long_drain`, the workers that are replaced retire, and the new ones go on at once:
//!
//! ```text
//!   slot  0: A0 serves ── Retiring, long_drain ───────────────▶ ends
//!         1:   A1 serves ──── Retiring, long_drain ───────────────▶ ends
//!         2: B0 starts ▶ settled: A0 retires
//!         3:               B1 starts ▶ settled: A1 retires, the restart is done
//! ```
//! As many workers may retire as the configuration wants to serve, and one more, which often ends at once. A slot is left
//! for a starting worker. Above that, the worker that retired first gets `shutdown_timeout` from then on.

use super::back_off::{Attempts, Hold};
use super::processes::Processes;
use super::recycling::Recycling;
use super::restart_state::RestartState;
use super::spawner::Spawner;
use super::state::Lifecycle;
use super::step::Step;
use super::worker::{Worker, WorkerState};
use super::{Action, Current, Generation, Moment, ProcessId, Refork, Seat, SpawnKind, EXIT_GRACE, SLOTS};
use crate::settings::Limits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The serving generation, and all processes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Workforce {
    pub(super) limits: Limits,
    /// Configured number of workers; 0 for a sole process.
    pub(super) wanted: usize,
    pub(super) current: Current,
    /// Another version started the processes up to this generation, and gets them back if the restart fails.
    pub(super) borrowed: Option<Generation>,
    pub(super) processes: Processes,
    pub(super) spawner_attempts: Attempts,
    pub(super) hold: Hold,
    pub(super) recycling: Recycling,
    pub(super) step: Step,
}

impl Workforce {
    pub(super) fn now(&self) -> Moment {
        self.step.now
    }

    /// Number of indexes: a sole process has one, too.
    pub(super) fn places(&self) -> usize {
        self.wanted.max(1)
    }

    /// The time to kill a process that is asked to end now.
    pub(super) fn deadline_of_end(&self) -> Moment {
        self.now() + self.limits.shutdown_timeout + EXIT_GRACE
    }

    /// The time to kill a process that has no requests to finish.
    pub(super) fn deadline_of_exit(&self) -> Moment {
        self.now() + EXIT_GRACE
    }

    /// Returns true if each index has a serving worker.
    pub(super) fn complete(&self) -> bool {
        self.processes.complete(self.places())
    }

    /// Returns true if another version started the processes of this generation.
    pub(super) fn is_borrowed(&self, generation: Generation) -> bool {
        self.borrowed.is_some_and(|last| generation <= last)
    }

    /// Returns true if this program can ask the spawner for another worker.
    pub(super) fn can_fork(&self, spawner: ProcessId) -> bool {
        let spawner = self.processes.spawners.get(&spawner);
        spawner.is_some_and(|one| one.can_fork() && !self.is_borrowed(one.generation))
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.processes.workers.values()
    }

    pub(super) fn spawners(&self) -> impl Iterator<Item = &Spawner> {
        self.processes.spawners.values()
    }

    // --- the current spawner

    /// The spawner of the current generation, or its sole process, if it is ready.
    pub(super) fn current_spawner(&self) -> Option<ProcessId> {
        let Seat::Taken(id) = self.current.seat else {
            return None;
        };
        let spawner = self.processes.spawners.get(&id).filter(|spawner| spawner.ready());
        spawner.map(|spawner| spawner.id)
    }

    /// Tells the current spawner that a worker was lost.
    pub(super) fn tell_lost(&mut self, index: usize) {
        if let Some(id) = self.current_spawner() {
            self.step.push(Action::TellLost(id, index));
        }
    }

    /// Has another spawner replace the current one: at once, or later if that has happened recently.
    pub(super) fn leave_seat(&mut self) {
        if self.is_borrowed(self.current.generation) {
            self.current.seat = Seat::Superseded;
            return;
        }
        self.spawner_attempts.fail(self.step.now, self.step.now);
        self.current.seat = Seat::Vacant {
            until: self.step.now + self.spawner_attempts.pause(),
        };
    }

    /// Handles a current spawner that was asked to end, such as a hanging sole process.
    pub(super) fn vacate_seat(&mut self) {
        let Seat::Taken(id) = self.current.seat else { return };
        if !self.processes.spawners.get(&id).is_some_and(Spawner::stays) {
            self.leave_seat();
        }
    }

    pub(super) fn replace_lost_spawner(&mut self) {
        if matches!(self.current.seat, Seat::Vacant { until } if until <= self.step.now) {
            let id = self.start_spawner(self.current.generation, SpawnKind::Replacement);
            self.current.seat = Seat::Taken(id);
        }
    }

    // --- the number of workers

    /// Starts missing workers. `source`: their spawner.
    pub(super) fn start_missing(&mut self, source: Option<ProcessId>) {
        let workers = &self.processes.workers;
        self.hold
            .tend(|id| workers.get(&id).is_some_and(|worker| worker.attempt().is_some()));
        for index in 0..self.places() {
            let there = self.workers().any(|worker| worker.index == index && worker.accepts());
            if there || !self.hold.allows() {
                continue;
            }
            if let Some(spawner) = source.filter(|id| self.can_fork(*id)) {
                self.start_worker(index, spawner);
            }
        }
    }

    /// Ends workers above the wanted number, and extra workers of an index without a reason. A restart handles the old
    /// ones itself. `incoming`: the generation that it brings in. `preparing`: two workers of one index that a refork needs.
    pub(super) fn end_surplus(&mut self, incoming: Option<Generation>, preparing: Option<[ProcessId; 2]>) {
        let is_needed = |worker: &Worker| preparing.is_some_and(|both| both.contains(&worker.id));
        let surplus: Vec<ProcessId> = self
            .workers()
            .filter(|worker| worker.accepts() && incoming.is_none_or(|generation| generation == worker.generation))
            .filter(|worker| worker.index >= self.places() || (!is_needed(worker) && self.is_extra(worker, incoming)))
            .map(|worker| worker.id)
            .collect();
        for id in surplus {
            self.retire_worker(id, false);
        }
    }

    /// Returns true if an index needs no second worker, and has a better one. `incoming`: see above.
    fn is_extra(&self, worker: &Worker, incoming: Option<Generation>) -> bool {
        incoming.is_none() && !self.recycling.concerns(worker.id) && self.has_better(worker)
    }

    /// Returns true if a preferable worker has the same index.
    fn has_better(&self, worker: &Worker) -> bool {
        let rank = |one: &Worker| {
            (
                one.settled(),
                one.serves(),
                one.generation == self.current.generation,
                one.id,
            )
        };
        let mut others = self
            .workers()
            .filter(|other| other.index == worker.index && other.stays());
        others.any(|other| rank(other) > rank(worker))
    }

    // --- starts and ends

    pub(super) fn start_spawner(&mut self, generation: Generation, kind: SpawnKind) -> ProcessId {
        self.processes.start_spawner(generation, kind, &mut self.step)
    }

    /// Starts a worker. Returns its name; nothing if there is no room for it.
    pub(super) fn start_worker(&mut self, index: usize, spawner: ProcessId) -> Option<ProcessId> {
        let Some(id) = self.processes.start_worker(index, spawner, &mut self.step) else {
            self.make_room();
            return None;
        };
        self.hold.started(id);
        Some(id)
    }

    /// Returns true if the current spawner can fork another worker now.
    pub(super) fn may_start(&self) -> bool {
        self.hold.allows() && self.current_spawner().is_some_and(|id| self.can_fork(id))
    }

    /// Starts a second worker for an index. Returns nothing if there is no spawner or no room for it.
    pub(super) fn start_substitute(&mut self, index: usize) -> Option<ProcessId> {
        let spawner = self.current_spawner()?;
        self.start_worker(index, spawner)
    }

    /// Starts a worker. If there is no room for another one, an old worker ends first. `patient`: it is started later, then.
    pub(super) fn replace_index(
        &mut self,
        index: usize,
        spawner: Option<ProcessId>,
        old: Option<ProcessId>,
        patient: bool,
    ) {
        let Some(spawner) = spawner.filter(|id| self.can_fork(*id)) else {
            return;
        };
        if patient && !self.processes.has_slot() {
            return;
        }
        if self.start_worker(index, spawner).is_none() {
            if let Some(old) = old {
                self.drain_worker(old, self.deadline_of_end());
            }
        }
    }

    /// Asks a worker to finish open requests, and to end. It is killed at `kill_at`, or earlier if it was asked before.
    pub(super) fn drain_worker(&mut self, id: ProcessId, kill_at: Moment) {
        self.end_worker(id, kill_at, Action::Drain(id, Duration::ZERO));
    }

    /// Asks a worker that is replaced to finish open requests, and to end. It has `long_drain` for them, if that is long:
    /// then true is returned, and nobody has to wait for it. `patient`: it has `patience`, also for clients that cannot migrate,
    /// unless it has finished.
    pub(super) fn retire_worker(&mut self, id: ProcessId, patient: bool) -> bool {
        if patient {
            let has_finished = self.processes.workers.get(&id).is_some_and(|worker| worker.finished);
            let patience = match has_finished {
                true => self.limits.shutdown_timeout,
                false => self.limits.patience,
            };
            let how = Action::DrainPatiently(id, patience);
            self.processes.retire_worker(id, patience, how, &mut self.step);
            return true;
        }
        let (long, most) = (self.limits.long_drain, self.most_retiring());
        let serves = self.processes.workers.get(&id).is_some_and(Worker::serves);
        if !serves || most == 0 || long <= self.limits.shutdown_timeout {
            self.drain_worker(id, self.deadline_of_end());
            return false;
        }
        while self.workers().filter(|worker| worker.retires()).count() > most {
            self.hurry_oldest();
        }
        let how = Action::Drain(id, long);
        self.processes.retire_worker(id, long, how, &mut self.step);
        true
    }

    /// Workers that retire patiently get no more time than others: a restart was asked for, and is done.
    pub(super) fn limit_retiring(&mut self) {
        let (long, usual) = (self.limits.long_drain, self.limits.shutdown_timeout);
        let latest = self.now() + long.max(usual) + EXIT_GRACE;
        let is_late =
            |worker: &&Worker| matches!(worker.state, WorkerState::Retiring { kill_at, .. } if kill_at > latest);
        let late: Vec<ProcessId> = self.workers().filter(is_late).map(|worker| worker.id).collect();
        for id in late {
            match long > usual {
                true => self
                    .processes
                    .retire_worker(id, long, Action::Drain(id, long), &mut self.step),
                false => self.drain_worker(id, self.deadline_of_end()),
            }
        }
    }

    /// Limit of retiring workers, besides the latest one: with all others, a slot is left for a starting one.
    fn most_retiring(&self) -> usize {
        self.places().min(SLOTS.saturating_sub(self.places() + 2))
    }

    /// If there is no slot, the worker that has retired first gives one up soon.
    pub(super) fn make_room(&mut self) {
        if !self.processes.has_slot() && !self.workers().any(Worker::drains) {
            self.hurry_oldest();
        }
    }

    /// The worker that has retired first gets no more time than at the end of the server.
    fn hurry_oldest(&mut self) {
        if let Some(id) = self.processes.oldest_retiring() {
            self.drain_worker(id, self.deadline_of_end());
        }
    }

    /// Asks a serving worker to become a spawner. Returns the state of the refork.
    pub(super) fn promote(&mut self, id: ProcessId, generation: Generation, refork: Refork) -> RestartState {
        let until = match refork {
            Refork::Asked => self.deadline_of_end(),
            Refork::Automatic => self.now() + self.limits.promotion_timeout,
        };
        let alive = self.now();
        if let Some(worker) = self.processes.workers.get_mut(&id) {
            worker.state.enter(WorkerState::Promoting { until, alive });
        }
        self.step.push(Action::Promote(id, generation, refork));
        RestartState::Promoting { worker: id }
    }

    pub(super) fn end_worker(&mut self, id: ProcessId, kill_at: Moment, how: Action) {
        self.processes.end_worker(id, kill_at, how, &mut self.step);
    }

    pub(super) fn kill_worker(&mut self, id: ProcessId) {
        self.processes.kill_worker(id, &mut self.step);
    }

    /// Asks a spawner to end. It is killed at `kill_at`, or earlier if it was asked before.
    pub(super) fn end_spawner(&mut self, id: ProcessId, kill_at: Moment) {
        self.processes.end_spawner(id, kill_at, &mut self.step);
    }

    pub(super) fn kill_spawner(&mut self, id: ProcessId) {
        self.processes.kill_spawner(id, &mut self.step);
    }
}
