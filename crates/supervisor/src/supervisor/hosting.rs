//! The supervisor as outsiders see it: for the control server, and for systemd.

use super::Supervisor;
use crate::certificates::Serving;
use crate::control::{self, Asked, Host, Question, Status, WorkerAnswer};
use crate::fleet::pipe;
use crate::machine::{Event, RestartKind};
use crate::systemd;
use fairlead_engine::Scoreboard;
use std::os::fd::{AsFd, OwnedFd};

impl Host for Supervisor {
    fn status(&self) -> Status {
        let settings = &self.adoption.current().settings;
        Status {
            pid: std::process::id(),
            state: self.state(),
            generation: self.machine.generation(),
            started_at: self.started_at,
            workers: self.machine.wanted(),
            restart: self.machine.restart().map(|restart| self.restart_status(restart)),
            children: self.children_status(),
            addresses: self
                .adoption
                .current()
                .listeners
                .iter()
                .map(|listener| listener.settings.address.clone())
                .collect(),
            max_threads: settings.max_threads,
            version: settings.version.clone(),
            ruby: settings.ruby.clone(),
            acme: self.watch.acme(),
        }
    }

    fn scoreboard(&self) -> Option<&Scoreboard> {
        Some(self.fleet.memory().scoreboard())
    }

    fn ask(&mut self, asked: Asked) -> Result<(), String> {
        self.do_asked(asked)
    }

    fn ask_ruby(&mut self, question: Question) -> Option<OwnedFd> {
        let spawner = self.machine.current_spawner()?;
        let (reader, writer) = pipe().ok()?;
        let child = self.fleet.children.find(spawner)?;
        child
            .send("ask_ruby", &[question.name().as_bytes()], &[writer.as_fd()])
            .then_some(reader)
    }

    fn ask_workers(&mut self) -> Vec<WorkerAnswer> {
        let workers = self.fleet.children.iter().filter(|child| child.worker.is_some());
        let answers = workers.map(|child| WorkerAnswer {
            worker: child.place.map(|place| place.index).filter(|_| child.spawner.is_none()),
            pid: child.pid(),
            pipe: pipe()
                .ok()
                .and_then(|(reader, writer)| child.send("backtraces", &[], &[writer.as_fd()]).then_some(reader)),
        });
        answers.collect()
    }

    fn failed(&mut self, reason: &str) {
        self.log.error("control_failed", format!("control: {reason}"));
    }
}

impl Supervisor {
    /// Answers outsiders.
    pub(super) fn serve(&mut self) {
        let mut services = std::mem::take(&mut self.services);
        services.turn(self);
        let report = self.report();
        services.tell(self.now, &report.as_report());
        self.services = services;
    }

    /// Looks after what is due now and then.
    pub(super) fn tend(&mut self) {
        self.fleet.tend();
        let serving = self.serving();
        let replacing = self.machine.workers().any(|worker| worker.is_ending);
        let children = &self.fleet.children;
        let outcomes = self.certificates.tend(
            self.now,
            &serving,
            |process| children.find(process).is_some(),
            replacing,
        );
        outcomes
            .into_iter()
            .for_each(|outcome| self.tell_of_certificates(outcome));
        let events = self
            .watch
            .look(self.now, self.machine.generation(), self.fleet.memory().scoreboard());
        events.into_iter().for_each(|event| self.happen(event));
        if self.watch.is_touched(self.now) {
            let _ = self.do_asked(Asked::Restart);
        }
        if self.watch.orphans_are_due(self.now) {
            self.strangers.reap(&self.fleet.children);
        }
    }
}
