//! Events, and their consequences.

use super::restart::Restart;
use super::{Action, Command, Event, Machine, StopReason};
use super::{Notice, Server, Warmth, SLOTS};
use std::time::Duration;

impl Machine {
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Asked(command) => self.asked(command),
            Event::SpawnerStarted(id) => self.spawner_started(id),
            Event::SpawnerNotStarted(id, reason) => self.spawner_not_started(id, reason),
            Event::SpawnerReady(id, limits) => self.spawner_ready(id, limits),
            Event::OtherVersionReady(id, version) => self.spawner_of_other_version(id, version),
            Event::NotReexecuted(id, reason) => self.not_reexecuted(id, reason),
            Event::SpawnerAlive(id) => self.spawner_alive(id),
            Event::SpawnerFailed(id, reason) => self.spawner_failed(id, reason),
            Event::Ended(id, end) => self.ended(id, end),
            Event::Adopted(generation, result) => self.adopted(generation, result),
            Event::NotForked(id, reason) => self.not_forked(id, reason),
            Event::Forked(id) => self.forked(id),
            Event::Booted(id) => self.booted(id),
            Event::BootFailed(id, reason) => self.boot_failed(id, reason),
            Event::WorkerAlive(id) => {
                let now = self.now;
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker.show_life(now);
                }
            }
            Event::Promoted(id) => self.promoted(id),
            Event::Behind(id) => self.replace_behind(id),
            Event::Idle => self.idle(),
            Event::Warm => self.warm(),
            Event::Tick => {}
        }
    }

    fn asked(&mut self, command: Command) {
        match command {
            Command::Stop { reason, .. } if !self.server.ends() => self.stop(reason, self.limits.drain_delay),
            Command::Stop { reason, hurry: true } => self.halt(reason),
            Command::Stop { .. } => {}
            Command::Halt(reason) => self.halt(reason),
            _ if self.server.ends() => self.refuse("the server is ending"),
            Command::Restart(kind) => self.restart_asked(kind),
            Command::AddWorker => self.add_worker(),
            Command::RemoveWorker => self.remove_worker(),
        }
    }

    pub(super) fn refuse(&mut self, reason: &str) {
        self.push(Action::Refuse(reason.to_owned()));
    }

    /// Refuses a command that needs workers.
    pub(super) fn refuse_without_workers(&mut self, request: &'static str) {
        self.log(Notice::NeedsWorkers { request });
        self.refuse("there are no workers");
    }

    fn add_worker(&mut self) {
        if self.wanted == 0 {
            return self.refuse_without_workers("add_worker");
        }
        if self.wanted == SLOTS {
            self.log(Notice::WorkersAtLimit { count: SLOTS });
            return self.refuse("the maximum number of workers is reached");
        }
        self.change_wanted(self.wanted + 1);
    }

    fn remove_worker(&mut self) {
        if self.wanted == 0 {
            return self.refuse_without_workers("remove_worker");
        }
        if self.wanted == 1 {
            self.log(Notice::LastWorkerKept);
            return self.refuse("the last worker cannot be removed");
        }
        self.change_wanted(self.wanted - 1);
    }

    fn change_wanted(&mut self, count: usize) {
        self.wanted = count;
        self.log(Notice::WorkersWanted { count });
    }

    fn idle(&mut self) {
        if !self.server.ends() {
            self.log(Notice::Idle);
            self.stop(StopReason::Idle, Duration::ZERO); // no load balancer has to notice
        }
    }

    /// Once for each loading of the application.
    fn warm(&mut self) {
        let due = self.current.warmth == Warmth::Cold && self.server == Server::Serving && self.wanted > 0;
        if due && self.restart.as_ref().is_none_or(Restart::is_over) {
            self.current.warmth = Warmth::Warm;
            self.begin_refork();
        }
    }
}
