//! Performs the actions of the machine.

use super::{Ended, Supervisor};
use crate::children::{Child, Place};
use crate::log::Level;
use crate::machine::notice::{self, Names};
use crate::machine::{Action, Event, Generation, Notice, ProcessId};
use crate::native_threads;
use crate::strangers::Strangers;
use crate::wording::shortage;
use std::time::Duration;

impl Supervisor {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::StartSpawner {
                spawner,
                generation,
                kind,
            } => {
                Strangers::adopt();
                if let Some(host) = &mut self.host {
                    host.loads(generation);
                }
                let started =
                    self.fleet
                        .start_spawner(spawner, generation, kind, self.adoption.current(), &self.certificates);
                if let Err(error) = started {
                    self.events
                        .push_back(Event::SpawnerNotStarted(spawner, shortage(&error)));
                }
            }
            Action::Fork {
                spawner,
                worker,
                index,
                slot,
            } => self.fork(spawner, worker, Place { index, slot }),
            Action::Reexecute(spawner) => self.leave_to(spawner),
            Action::Return => self.leave_back(),
            Action::Adopt(generation) => self.adopt(generation),
            Action::Commit(generation) => self.commit(generation),
            Action::Revert(generation) => self.adoption.revert(generation),
            Action::Drain(worker) => self.fleet.end(worker, "drain", &[]),
            Action::EndWorker(worker, delay) => self.end_worker(worker, delay),
            Action::StopWorker(worker) => self.fleet.end(worker, "stop", &[]),
            Action::GiveUp(worker) => self.fleet.give_up(worker),
            Action::Promote(worker, generation) => self.fleet.promote(worker, generation, self.adoption.current()),
            Action::EndSpawner(spawner) => self.fleet.end(spawner, "end", &[]),
            Action::Kill(process) => {
                if let Some(child) = self.fleet.children.get(process) {
                    child.kill();
                }
            }
            Action::CloseListenersOf(spawner) => _ = self.fleet.tell(spawner, "close_listeners", &[]),
            Action::CloseListeners => {
                (self.leaving, self.arrival) = (None, None); // it has copies of them
                self.adoption.close_listeners();
            }
            Action::TellBooted(spawner) => _ = self.fleet.tell(spawner, "booted", &[]),
            Action::TellRestarting(spawner) => _ = self.fleet.tell(spawner, "restarting", &[]),
            Action::TellLost(spawner, index) => {
                _ = self.fleet.tell(spawner, "worker_lost", &[index.to_string().as_bytes()]);
            }
            Action::TellCurrent(spawner) => self.make_current(spawner),
            Action::Announce => self.announce(),
            Action::Refuse(_) => {} // the requester gets the reason
            Action::Log(notice) => self.tell(&notice),
            Action::Finish { status, defeat } => self.end(status, defeat),
        }
    }

    fn tell(&self, notice: &Notice) {
        let level = match notice.level() {
            notice::Level::Info => Level::Info,
            notice::Level::Warn => Level::Warn,
        };
        self.log.write(level, notice.event(), &notice.text(&Processes(self)));
    }

    fn fork(&mut self, spawner: ProcessId, worker: ProcessId, place: Place) {
        let generation = self.fleet.children.find(spawner).map_or(0, |child| child.generation);
        let is_sole = self.adoption.is_sole(generation);
        if let Err(reason) = self.fleet.fork(spawner, worker, place, is_sole) {
            self.events.push_back(Event::NotForked(worker, reason));
        }
    }

    fn end_worker(&mut self, worker: ProcessId, delay: Duration) {
        let inodes = self
            .adoption
            .ending_listeners()
            .into_iter()
            .map(|inode| inode.to_string());
        let fields: Vec<String> = [delay.as_secs_f64().to_string()].into_iter().chain(inodes).collect();
        let fields: Vec<&[u8]> = fields.iter().map(String::as_bytes).collect();
        self.fleet.end(worker, "end", &fields);
    }

    fn adopt(&mut self, generation: Generation) {
        if let Err(reason) = self.adoption.prepare(generation) {
            self.events.push_back(Event::Adopted(generation, Err(reason)));
        }
    }

    fn commit(&mut self, generation: Generation) {
        let Some((output, errors)) = self.adoption.commit(generation) else {
            return;
        };
        if let Err(error) = self.streams.adopt(output, errors) {
            self.log.error(
                "log_not_adopted",
                format!("the logs of the new configuration cannot be used: {error}"),
            );
        }
        let configuration = self.adoption.current();
        self.log.adopt(&configuration.settings.log);
        self.services.adopt(configuration, &self.log);
        self.watch.adopt(configuration, self.now);
        self.services.store(self.adoption.current_mut());
    }

    fn make_current(&mut self, spawner: ProcessId) {
        if !self.machine.is_guest() {
            self.arrival = None;
        }
        self.fleet.tell(spawner, "current", &[]);
        self.ruby_log.follow(
            self.fleet
                .children
                .find(spawner)
                .and_then(crate::children::Child::link_copy),
        );
    }

    fn announce(&mut self) {
        let configuration = self.adoption.current();
        for listener in &configuration.listeners {
            self.log
                .info("listening", format!("listening on {}", listener.settings.address));
        }
        self.log.info("ready", &configuration.settings.ready);
    }

    fn end(&mut self, status: i32, defeat: Option<String>) {
        let raises = self.adoption.current().settings.raise_on_term;
        self.ended = Some(Ended {
            status,
            defeat,
            by_term: raises && status == 0 && self.asked_by == Some("TERM"),
        });
    }
}

/// The processes, for log lines.
struct Processes<'a>(&'a Supervisor);

impl Names for Processes<'_> {
    fn pid(&self, process: ProcessId) -> Option<i32> {
        self.0.fleet.children.find(process)?.pid()
    }

    fn is_resident(&self, process: ProcessId) -> bool {
        let child = self.0.fleet.children.find(process);
        child.is_some_and(Child::is_resident)
    }

    fn idle_timeout(&self) -> f64 {
        self.0.adoption.current().settings.idle_timeout
    }

    fn threads(&self, process: ProcessId) -> String {
        self.pid(process).map(native_threads::describe).unwrap_or_default()
    }
}
