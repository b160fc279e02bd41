//! The rules of a restart to another version, whose program takes the place of this one, and of that program as long as it is a guest:
//! until the restart is done, it borrows the generation that serves.

use super::restart::RestartState;
use super::saved::Returned;
use super::spawner::Spawner;
use super::state::Lifecycle;
use super::worker::Worker;
use super::{Action, Generation, Machine, Notice, ProcessId, Server, REEXECUTION_TIMEOUT, RETURN_PAUSE};

impl Machine {
    // --- the former program

    /// The spawner has loaded the application, and is of that other version.
    pub(super) fn spawner_of_other_version(&mut self, id: ProcessId, version: String) {
        let now = self.now;
        let Some(spawner) = self.spawners.get_mut(&id).filter(|spawner| spawner.loads()) else {
            return;
        };
        spawner.has_loaded(now);
        match self.restart.as_ref().and_then(|restart| restart.target()) == Some(id) {
            true => self.target_of_other_version(id, version),
            false => self.spawner_failed(
                id,
                format!("it has Fairlead {version}, which cannot share with what runs"),
            ),
        }
    }

    /// The new code is loaded, and is of another version.
    pub(super) fn target_of_other_version(&mut self, spawner: ProcessId, version: String) {
        if self.borrowed.is_some() {
            return self.fail_restart(format!("the new code has Fairlead {version}, a third version"));
        }
        let Some(restart) = self.restart.as_mut() else { return };
        let until = self.now + REEXECUTION_TIMEOUT;
        restart.state.enter(RestartState::Reexecuting { spawner, until });
        self.log(Notice::OtherVersion { version });
        self.push(Action::Reexecute(spawner));
    }

    /// The other program has not taken over, or has given everything back.
    pub(super) fn not_reexecuted(&mut self, spawner: ProcessId, reason: String) {
        let state = self.restart.as_ref().map(|restart| &restart.state);
        if matches!(state, Some(RestartState::Reexecuting { spawner: one, .. }) if *one == spawner) {
            self.fail_restart(reason);
        }
    }

    /// The spawner with the new code, for the sake of which this machine waits for another program, or has taken over.
    pub fn newcomer(&self) -> Option<ProcessId> {
        match self.restart.as_ref()?.state {
            RestartState::Reexecuting { spawner, .. } | RestartState::Loading { spawner } => Some(spawner),
            _ => None,
        }
    }

    /// Whether the processes of that generation were started by another version.
    pub fn borrows(&self, generation: Generation) -> bool {
        self.is_borrowed(generation)
    }

    /// Whether another version may have to go on.
    pub fn is_guest(&self) -> bool {
        self.borrowed.is_some()
    }

    // --- the guest

    /// Whether the processes of that generation were started by another version.
    pub(super) fn is_borrowed(&self, generation: Generation) -> bool {
        self.borrowed.is_some_and(|last| generation <= last)
    }

    /// Whether a spawner can be asked for one more worker by this program.
    pub(super) fn can_fork(&self, spawner: &Spawner) -> bool {
        spawner.can_fork() && !self.is_borrowed(spawner.generation)
    }

    /// Whether a restart to another version is as good as done: all workers of that generation have settled, and those of before, which
    /// may still end, would be of no use to the former program.
    pub(super) fn needs_no_return(&self, generation: Generation) -> bool {
        let (fresh, old): (Vec<&Worker>, Vec<&Worker>) = self
            .workers
            .values()
            .partition(|worker| worker.generation == generation);
        let settled = |index: usize| fresh.iter().any(|worker| worker.index == index && worker.settled());
        self.borrowed.is_some() && !old.iter().any(|worker| worker.stays()) && (0..self.places()).all(settled)
    }

    /// Has the former program back, once nothing is left that it does not know of.
    pub(super) fn go_back(&mut self, reason: String) {
        let kill_at = self.deadline_of_end();
        let own = self
            .workers
            .values()
            .filter(|worker| !self.is_borrowed(worker.generation));
        let own: Vec<(ProcessId, bool)> = own.map(|worker| (worker.id, worker.stays())).collect();
        for (id, stays) in &own {
            if *stays {
                self.drain_worker(*id, kill_at);
            }
        }
        let spawners: Vec<(ProcessId, bool)> = self
            .spawners
            .values()
            .filter(|spawner| !self.is_borrowed(spawner.generation))
            .map(|spawner| (spawner.id, spawner.stays()))
            .collect();
        for (id, stays) in &spawners {
            if *stays {
                self.end_spawner(*id, kill_at);
            }
        }
        let drains = own
            .iter()
            .any(|(id, _)| self.workers.get(id).is_some_and(Worker::drains));
        let ends = spawners
            .iter()
            .any(|(id, _)| self.spawners.get(id).is_some_and(|one| !one.killed()));
        if !drains && !ends {
            self.try_to_return(reason);
        }
    }

    pub(super) fn try_to_return(&mut self, reason: String) {
        let again = self.now + RETURN_PAUSE;
        if let Some(restart) = self.restart.as_mut() {
            restart.state.enter(RestartState::Returning { reason, again });
            self.push(Action::Return);
        }
    }

    /// What to tell the program that gets everything back, and why.
    pub fn giving_back(&self) -> Option<(Returned, String)> {
        let RestartState::Returning { reason, .. } = &self.restart.as_ref()?.state else {
            return None;
        };
        let workers = self.workers.values().filter(|one| !one.stays()).map(|one| one.id);
        let spawners = self.spawners.values().filter(|one| !one.stays()).map(|one| one.id);
        let returned = Returned {
            wanted: Some(self.wanted),
            announced: self.server == Server::Serving,
            pending: self.pending,
            ending: workers.chain(spawners).collect(),
        };
        Some((returned, reason.clone()))
    }
}
