//! Views of the supervisor for the control server and for systemd.

use super::Supervisor;
use crate::cgroup;
use crate::children::Place;
use crate::control::{
    Asked, CgroupMemory, Child, Host, MemoryOf, Paused, ProcessMemory, Question, Restart, RestartState, ServerState,
    Status, WorkerAnswer,
};
use crate::fleet::pipe;
use crate::machine::{Event, RestartStatus, RestartView, ServerStatus, WorkerView};
use crate::systemd;
use fairlead_engine::{Scoreboard, SLOTS};
use std::os::fd::{AsFd, OwnedFd};
use std::time::SystemTime;

impl Host for Supervisor {
    fn status(&self) -> Status {
        let configuration = self.acting.adoption.current();
        let settings = &configuration.settings;
        let addresses = configuration.listeners.iter();
        Status {
            pid: std::process::id(),
            state: match self.acting.machine.state() {
                ServerStatus::Starting => ServerState::Starting,
                ServerStatus::Ready => ServerState::Ready,
                ServerStatus::Restarting => ServerState::Restarting,
                ServerStatus::Draining => ServerState::Draining,
            },
            generation: self.acting.machine.generation(),
            started_at: self.started_at,
            workers: self.acting.machine.wanted(),
            restart: self.acting.machine.restart().map(|restart| self.restart(restart)),
            restarts: self.acting.restarts,
            recycled: self.acting.machine.recycled().collect(),
            refork: self.acting.reforker.effect(),
            pause: self.paused(),
            children: self.acting.machine.workers().map(|worker| self.child(worker)).collect(),
            addresses: addresses.map(|listener| listener.settings.address.clone()).collect(),
            max_threads: settings.max_threads,
            version: settings.version.clone(),
            ruby: settings.ruby.clone(),
            acme: self.certifying.report(),
        }
    }

    fn scoreboard(&self) -> Option<&Scoreboard> {
        Some(self.acting.fleet.memory().scoreboard())
    }

    fn memory(&mut self) -> Vec<ProcessMemory> {
        let processes = self.processes();
        self.memory.look(processes)
    }

    fn cgroup_memory(&self) -> Option<CgroupMemory> {
        cgroup::memory()
    }

    fn ask(&mut self, asked: Asked) -> Result<(), String> {
        self.requests.do_asked(asked, &mut self.acting)
    }

    fn ask_ruby(&mut self, question: Question) -> Option<OwnedFd> {
        let child = self
            .acting
            .fleet
            .children
            .find(self.acting.machine.current_spawner()?)?;
        let (reader, writer) = pipe().ok()?;
        let sent = child.send("ask_ruby", &[question.name().as_bytes()], &[writer.as_fd()]);
        sent.then_some(reader)
    }

    fn ask_workers(&mut self, only: Option<i32>) -> Vec<WorkerAnswer> {
        let workers = self.acting.fleet.children.iter().filter(|child| child.worker.is_some());
        let workers = workers.filter(|child| only.is_none() || child.pid() == only);
        let answers = workers.map(|child| WorkerAnswer {
            worker: child.place.map(|place| place.index).filter(|_| child.spawner.is_none()),
            pid: child.pid(),
            pipe: pipe().ok().and_then(|(reader, writer)| {
                let sent = child.send("backtraces", &[], &[writer.as_fd()]);
                sent.then_some(reader)
            }),
        });
        answers.collect()
    }

    fn failed(&mut self, reason: &str) {
        self.acting.log.error("control_failed", format!("control: {reason}"));
    }
}

/// `None` for a worker without a place.
fn memory_of(child: &crate::children::Child) -> Option<MemoryOf> {
    let generation = child.generation;
    match (child.worker, child.place) {
        (Some(_), Some(Place { index, slot })) => Some(MemoryOf::Worker { index, slot }),
        (Some(_), None) => None,
        (None, _) => Some(MemoryOf::Spawner { generation }),
    }
}

impl Supervisor {
    /// Runs the control server and reports to systemd.
    pub(super) fn serve(&mut self) {
        self.acting.adopt_services();
        let mut services = std::mem::take(&mut self.acting.services);
        services.turn(self);
        if services.want_report(self.acting.now, self.acting.machine.state()) {
            services.tell(&self.report());
        }
        self.acting.services = services;
    }

    /// The processes with a shown memory.
    fn processes(&self) -> Vec<(MemoryOf, i32)> {
        let own = (MemoryOf::Supervisor, std::process::id() as i32);
        let children = self.acting.fleet.children.iter();
        let children = children.filter_map(|child| Some((memory_of(child)?, child.pid()?)));
        let mut processes: Vec<(MemoryOf, i32)> = children.collect();
        if processes.iter().all(|(_, pid)| *pid != own.1) {
            processes.push(own);
        }
        processes
    }

    fn paused(&self) -> Option<Paused> {
        let pause = &self.acting.fleet.memory().scoreboard().pause;
        let left = pause.left()?;
        Some(Paused {
            timeout: pause.wait(),
            left,
        })
    }

    fn restart(&self, restart: RestartView<'_>) -> Restart {
        Restart {
            kind: restart.kind,
            state: match restart.state {
                RestartStatus::Running => RestartState::Running,
                RestartStatus::Done => RestartState::Done,
                RestartStatus::Failed => RestartState::Failed,
            },
            error: restart.error.map(str::to_string),
            at: self.restart_changed_at.1,
        }
    }

    /// Stores the time at which the restart has changed.
    pub(super) fn note_restart(&mut self) {
        let changes = self.acting.machine.restart().map_or(0, |restart| restart.changes);
        if changes != self.restart_changed_at.0 {
            self.restart_changed_at = (changes, SystemTime::now());
        }
    }

    fn child(&self, worker: WorkerView) -> Child {
        let child = self.acting.fleet.children.find(worker.id);
        Child {
            index: worker.index,
            slot: worker.slot,
            pid: child.and_then(crate::children::Child::pid),
            generation: worker.generation,
            booted: worker.booted,
            ending: worker.ending,
            started_at: child.map_or(self.started_at, |child| child.began_at),
            heartbeat_age: self.acting.fleet.memory().scoreboard().slot(worker.slot).age(),
        }
    }

    /// The state of the server, for systemd.
    fn report(&self) -> systemd::Report<'_> {
        let slots = (0..SLOTS).map(|slot| self.acting.fleet.memory().scoreboard().slot(slot));
        let stats: Vec<_> = slots
            .filter(|slot| slot.age().is_some())
            .map(|slot| slot.stats(slot))
            .collect();
        let restart = self.acting.machine.restart();
        systemd::Report {
            state: match self.acting.machine.state() {
                ServerStatus::Starting => systemd::NotifyState::Starting,
                ServerStatus::Ready => systemd::NotifyState::Ready,
                ServerStatus::Restarting => systemd::NotifyState::Restarting,
                ServerStatus::Draining => systemd::NotifyState::Draining,
            },
            restart: restart.map(|restart| systemd::Restart {
                number: restart.changes,
                error: restart.error,
            }),
            workers: self.acting.machine.wanted(),
            booted: self.acting.machine.workers().filter(|worker| worker.booted).count(),
            busy_threads: stats.iter().map(|stats| stats.busy_threads).sum(),
            threads: stats.iter().map(|stats| stats.threads).sum(),
            queued: stats.iter().map(|stats| stats.queued).sum(),
        }
    }
}

impl Supervisor {
    /// Does periodic work.
    pub(super) fn tend(&mut self) {
        self.note_restart();
        if self.memory.is_due() {
            let processes = self.processes();
            self.memory.tend(processes);
        }
        self.acting.ask_for_certificates();
        self.acting.tend_certificates();
        self.certifying.tend(&mut self.acting);
        let board = self.acting.fleet.memory().scoreboard();
        if self.acting.watch.is_idle_for_long(self.acting.now, board) {
            self.acting.happen(Event::Idle);
        }
        if self.acting.watch.is_touched(self.acting.now) {
            let _ = self.requests.do_asked(Asked::Restart, &mut self.acting);
        }
        let is_due = self.acting.watch.is_due(self.acting.now);
        if is_due {
            self.acting.fleet.tend(self.acting.machine.restarts());
            self.acting.tend_pause();
        }
        self.acting.recycle(is_due);
        if is_due {
            self.acting.refork();
        }
        if self.acting.watch.orphans_are_due(self.acting.now) {
            self.strangers.reap(&self.acting.fleet.children);
        }
    }
}
