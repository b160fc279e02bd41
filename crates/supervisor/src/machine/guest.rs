//! The rules of a restart to another version. Its program replaces this one, and is a guest until the restart is done:
//! it borrows the serving generation.

use super::restart_state::RestartState;
use super::restarts::Restarts;
use super::spawner::Spawner;
use super::state::Lifecycle;
use super::worker::Worker;
use super::workforce::Workforce;
use super::{Action, Generation, Notice, ProcessId, Server, REEXECUTION_TIMEOUT, RETURN_PAUSE};

impl Restarts {
    // --- the previous program

    /// The new code is loaded, and has another version.
    pub(super) fn target_of_other_version(
        &mut self,
        spawner: ProcessId,
        version: String,
        workforce: &mut Workforce,
        server: Server,
    ) {
        if workforce.borrowed.is_some() {
            let reason = format!("the new code has Fairlead {version}, a third version");
            return self.fail(reason, workforce, server);
        }
        let Some(restart) = self.restart.as_mut() else { return };
        let until = workforce.now() + REEXECUTION_TIMEOUT;
        restart.state.enter(RestartState::Reexecuting { spawner, until });
        workforce.step.log(Notice::OtherVersion { version });
        workforce.step.push(Action::Reexecute(spawner));
    }

    /// The other program has not taken over, or has returned everything.
    pub(super) fn not_reexecuted(
        &mut self,
        spawner: ProcessId,
        reason: String,
        workforce: &mut Workforce,
        server: Server,
    ) {
        if matches!(self.state(), Some(RestartState::Reexecuting { spawner: one, .. }) if *one == spawner) {
            self.fail(reason, workforce, server);
        }
    }

    /// The spawner with the new code, for which this machine waits for another program, or has taken over.
    pub(super) fn newcomer(&self) -> Option<ProcessId> {
        match *self.state()? {
            RestartState::Reexecuting { spawner, .. } | RestartState::Loading { spawner } => Some(spawner),
            _ => None,
        }
    }

    // --- the guest

    /// Returns to the previous program, once no process is left that it does not know.
    pub(super) fn go_back(&mut self, reason: String, workforce: &mut Workforce) {
        let waits_for_workers = workforce.drain_own_workers();
        let waits_for_spawners = workforce.end_own_spawners();
        if !waits_for_workers && !waits_for_spawners {
            self.try_to_return(reason, workforce);
        }
    }

    /// The previous program has not taken over again.
    pub(super) fn return_overdue(&mut self, workforce: &mut Workforce) {
        if let Some(RestartState::Returning { reason, .. }) = self.state() {
            let reason = reason.clone();
            self.try_to_return(reason, workforce);
        }
    }

    fn try_to_return(&mut self, reason: String, workforce: &mut Workforce) {
        let again = workforce.now() + RETURN_PAUSE;
        if let Some(restart) = self.restart.as_mut() {
            restart.state.enter(RestartState::Returning { reason, again });
            workforce.step.push(Action::Return);
        }
    }
}

impl Workforce {
    /// Returns true if a restart to another version can no longer be undone: all workers of this generation have
    /// settled. Older workers, which may still be ending, would be of no use to the previous program.
    pub(super) fn needs_no_return(&self, generation: Generation) -> bool {
        let (fresh, old): (Vec<&Worker>, Vec<&Worker>) =
            self.workers().partition(|worker| worker.generation == generation);
        let settled = |index: usize| fresh.iter().any(|worker| worker.index == index && worker.settled());
        self.borrowed.is_some() && !old.iter().any(|worker| worker.stays()) && (0..self.places()).all(settled)
    }

    /// Asks the workers to end that the previous program does not know. Returns true if one of them drains.
    fn drain_own_workers(&mut self) -> bool {
        let own = self.workers().filter(|worker| !self.is_borrowed(worker.generation));
        let goes_on = |worker: &Worker| worker.stays() || worker.retires();
        let own: Vec<(ProcessId, bool)> = own.map(|worker| (worker.id, goes_on(worker))).collect();
        for (id, _) in own.iter().filter(|(_, goes_on)| *goes_on) {
            self.drain_worker(*id, self.deadline_of_end());
        }
        let mut own = own.iter().filter_map(|(id, _)| self.processes.workers.get(id));
        own.any(Worker::drains)
    }

    /// Asks the spawners to end that the previous program does not know. Returns true if one of them has not been killed.
    fn end_own_spawners(&mut self) -> bool {
        let own = self.spawners().filter(|spawner| !self.is_borrowed(spawner.generation));
        let own: Vec<(ProcessId, bool)> = own.map(|spawner| (spawner.id, spawner.stays())).collect();
        for (id, _) in own.iter().filter(|(_, stays)| *stays) {
            self.end_spawner(*id, self.deadline_of_end());
        }
        let mut own = own.iter().filter_map(|(id, _)| self.processes.spawners.get(id));
        !own.all(Spawner::killed)
    }
}
