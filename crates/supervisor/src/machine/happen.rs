//! Events and commands.

use super::{Command, Event, Machine, StopReason};
use super::{Notice, ProcessId, Refork, RestartKind, Server, MOST_REFORKED, SLOTS};
use std::time::Duration;

impl Machine {
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Asked(command) => self.asked(command),
            Event::SpawnerStarted(id) => self.spawner_started(id),
            Event::SpawnerNotStarted(id, reason) => self.spawner_not_started(id, reason),
            Event::SpawnerReady(id, limits) => self.spawner_ready(id, limits),
            Event::OtherVersionReady(id, version) => self.spawner_of_other_version(id, version),
            Event::NotReexecuted(id, reason) => {
                self.restarts
                    .not_reexecuted(id, reason, &mut self.workforce, self.server);
            }
            Event::SpawnerAlive(id) => self.spawner_alive(id),
            Event::SpawnerFailed(id, reason) => self.spawner_failed(id, reason),
            Event::Ended(id, end) => self.ended(id, end),
            Event::Adopted(generation, result) => {
                self.restarts
                    .adopted(generation, result, &mut self.workforce, self.server);
            }
            Event::NotForked(id, reason) => self.not_forked(id, reason),
            Event::Forked(id) => self.forked(id),
            Event::Booted(id) => self.booted(id),
            Event::BootFailed(id, reason) => self.boot_failed(id, reason),
            Event::WorkerAlive(id) => self.worker_alive(id),
            Event::Finished(id) => self.finished(id),
            Event::Promoted(id) => self.promoted(id),
            Event::Behind(id) => self.replace_behind(id),
            Event::Recycle(id, reason, detail) => self.recycle(id, reason, detail),
            Event::Idle => self.idle(),
            Event::Warm(id) => self.warm(id),
            Event::Tick => {}
        }
    }

    fn asked(&mut self, command: Command) {
        match command {
            Command::Stop { reason, .. } if !self.server.ends() => {
                self.stop(reason, self.workforce.limits.drain_delay);
            }
            Command::Stop { reason, hurry: true } => self.halt(reason),
            Command::Stop { .. } => {}
            Command::Halt(reason) => self.halt(reason),
            _ if self.server.ends() => self.workforce.step.refuse("the server is ending"),
            Command::Restart(kind) => self.begin_restart(kind),
            Command::AddWorker => self.add_worker(),
            Command::RemoveWorker => self.remove_worker(),
        }
    }

    fn add_worker(&mut self) {
        let (wanted, step) = (self.workforce.wanted, &mut self.workforce.step);
        if wanted == 0 {
            return step.refuse_without_workers("add_worker");
        }
        let reforks = self.restarts.is_patient() && !self.restarts.are_over();
        let most = if reforks { MOST_REFORKED } else { SLOTS };
        if wanted >= most {
            step.log(Notice::WorkersAtLimit { count: most, reforks });
            return step.refuse("the maximum number of workers is reached");
        }
        self.change_wanted(wanted + 1);
    }

    fn remove_worker(&mut self) {
        let (wanted, step) = (self.workforce.wanted, &mut self.workforce.step);
        if wanted == 0 {
            return step.refuse_without_workers("remove_worker");
        }
        if wanted == 1 {
            step.log(Notice::LastWorkerKept);
            return step.refuse("the last worker cannot be removed");
        }
        self.change_wanted(wanted - 1);
    }

    fn begin_restart(&mut self, kind: RestartKind) {
        let why = "another restart was asked for";
        self.restarts.give_up_promotion(why, &mut self.workforce, self.server);
        self.restarts.ask(kind, &mut self.workforce, self.server);
    }

    fn change_wanted(&mut self, count: usize) {
        self.workforce.wanted = count;
        self.workforce.step.log(Notice::WorkersWanted { count });
    }

    fn idle(&mut self) {
        if !self.server.ends() {
            self.workforce.step.log(Notice::Idle);
            self.stop(StopReason::Idle, Duration::ZERO); // no load balancer has to notice
        }
    }

    fn warm(&mut self, busiest: ProcessId) {
        let workforce = &mut self.workforce;
        if self.server == Server::Serving && workforce.wanted > 0 && self.restarts.are_over() && workforce.may_start() {
            self.restarts.begin_refork(Refork::Automatic, Some(busiest), workforce);
        }
    }
}
