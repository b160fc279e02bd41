//! The rules of a restart to another version. Its program replaces this one, and is a guest until the restart is done:
//! it borrows the serving generation.

use super::restart::RestartState;
use super::saved::Returned;
use super::spawner::Spawner;
use super::state::Lifecycle;
use super::worker::Worker;
use super::{Action, Generation, Machine, Notice, ProcessId, Server, REEXECUTION_TIMEOUT, RETURN_PAUSE};

impl Machine {
    // --- the previous program

    /// The spawner has loaded the application, and has another version.
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
                format!("it has Fairlead {version}, which is incompatible with the running version"),
            ),
        }
    }

    /// The new code is loaded, and has another version.
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

    /// The other program has not taken over, or has returned everything.
    pub(super) fn not_reexecuted(&mut self, spawner: ProcessId, reason: String) {
        let state = self.restart.as_ref().map(|restart| &restart.state);
        if matches!(state, Some(RestartState::Reexecuting { spawner: one, .. }) if *one == spawner) {
            self.fail_restart(reason);
        }
    }

    /// The spawner with the new code, for which this machine waits for another program, or has taken over.
    pub fn newcomer(&self) -> Option<ProcessId> {
        match self.restart.as_ref()?.state {
            RestartState::Reexecuting { spawner, .. } | RestartState::Loading { spawner } => Some(spawner),
            _ => None,
        }
    }

    /// Returns true if another version started the processes of this generation.
    pub fn borrows(&self, generation: Generation) -> bool {
        self.is_borrowed(generation)
    }

    /// Returns true if another version may have to continue.
    pub fn is_guest(&self) -> bool {
        self.borrowed.is_some()
    }

    // --- the guest

    /// Returns true if another version started the processes of this generation.
    pub(super) fn is_borrowed(&self, generation: Generation) -> bool {
        self.borrowed.is_some_and(|last| generation <= last)
    }

    /// Returns true if this program can ask the spawner for another worker.
    pub(super) fn can_fork(&self, spawner: &Spawner) -> bool {
        spawner.can_fork() && !self.is_borrowed(spawner.generation)
    }

    /// Returns true if a restart to another version can no longer be undone: all workers of this generation have
    /// settled. Older workers, which may still be ending, would be of no use to the previous program.
    pub(super) fn needs_no_return(&self, generation: Generation) -> bool {
        let (fresh, old): (Vec<&Worker>, Vec<&Worker>) = self
            .workers
            .values()
            .partition(|worker| worker.generation == generation);
        let settled = |index: usize| fresh.iter().any(|worker| worker.index == index && worker.settled());
        self.borrowed.is_some() && !old.iter().any(|worker| worker.stays()) && (0..self.places()).all(settled)
    }

    /// Returns to the previous program, once no process is left that it does not know.
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

    /// The changes for the program that gets everything back, and the reason.
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
