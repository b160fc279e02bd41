//! The machine, and everything that its actions change. Performs these actions.

use super::departure::Departure;
use super::recycling::Recycler;
use super::reforking::Reforker;
use super::restart_counts;
use super::services::{RubyLog, Services};
use super::watching::Watch;
use super::Ended;
use crate::adoption::Adoption;
use crate::certificates::Certificates;
use crate::children::{Child, Place};
use crate::control::RestartCounts;
use crate::fleet::Fleet;
use crate::log::{Level, Log};
use crate::machine::notice::{self, Names};
use crate::machine::{Action, Command, Event, Generation, Machine, Moment, Notice, ProcessId, ServerStatus, SpawnKind};
use crate::native_threads;
use crate::standard_streams::StandardStreams;
use crate::strangers::Strangers;
use crate::wording::shortage;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The machine, and what its actions change.
pub(super) struct Acting {
    pub(super) machine: Machine,
    pub(super) now: Moment,
    /// Events in the queue of the machine.
    pub(super) events: VecDeque<Event>,
    pub(super) fleet: Fleet,
    pub(super) adoption: Adoption,
    pub(super) certificates: Certificates,
    /// True if certificates must be reloaded as soon as there is a spawner.
    pub(super) reload_waits: bool,
    pub(super) streams: StandardStreams,
    pub(super) services: Services,
    /// True until the services use the configuration that has come into force.
    services_are_old: bool,
    pub(super) watch: Watch,
    recycler: Recycler,
    pub(super) reforker: Reforker,
    /// True while requests wait, as far as was noticed.
    pub(super) is_paused: bool,
    pub(super) log: Log,
    pub(super) restarts: RestartCounts,
    pub(super) ruby_log: RubyLog,
    pub(super) departure: Departure,
    /// The last signal or command that has asked for the end.
    pub(super) asked_by: Option<&'static str>,
    pub(super) ended: Option<Ended>,
}

/// The parts that differ between a starting server and a continued one.
pub(super) struct Parts {
    pub(super) machine: Machine,
    pub(super) now: Moment,
    pub(super) fleet: Fleet,
    pub(super) adoption: Adoption,
    pub(super) services: Services,
    pub(super) watch: Watch,
    pub(super) ruby_log: RubyLog,
    pub(super) log: Log,
}

impl Acting {
    pub(super) fn new(parts: Parts) -> Acting {
        let recycler = Recycler::new(&parts.adoption.current().settings.recycling, parts.now);
        let reforker = Reforker::new(parts.adoption.current().settings.refork_after);
        let is_paused = parts.fleet.memory().scoreboard().pause.left().is_some();
        Acting {
            machine: parts.machine,
            now: parts.now,
            events: VecDeque::new(),
            fleet: parts.fleet,
            adoption: parts.adoption,
            certificates: Certificates::default(),
            reload_waits: false,
            streams: StandardStreams::default(),
            services: parts.services,
            services_are_old: false,
            watch: parts.watch,
            recycler,
            reforker,
            is_paused,
            log: parts.log,
            restarts: RestartCounts::default(),
            ruby_log: parts.ruby_log,
            departure: Departure::default(),
            asked_by: None,
            ended: None,
        }
    }

    // --- the loop

    /// Time until the next deadline.
    pub(super) fn pause(&self) -> Option<Duration> {
        let machine = self.machine.deadline();
        let machine = machine.map(|deadline| deadline.saturating_sub(self.now));
        let pauses = [
            machine,
            self.services.pause(),
            self.watch.pause(),
            self.departure.pause(),
        ];
        pauses.into_iter().flatten().min()
    }

    /// The descriptors to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let fleet = self.fleet.descriptors().chain([self.adoption.descriptor()]);
        fleet.chain(self.services.descriptors())
    }

    /// Returns true if no work is pending that another program could not continue. The previous program gets a reload of certificates
    /// that waits: this one starts no spawner for it.
    pub(super) fn is_idle(&self) -> bool {
        let reload_waits = self.reload_waits && !self.machine.is_guest();
        self.adoption.is_idle() && self.fleet.is_idle() && self.watch.is_idle() && !reload_waits
    }

    /// Plans the change to a separate program, once reloaded code serves.
    pub(super) fn leave_host(&mut self) {
        if self.machine.state() == ServerStatus::Ready {
            let current = self.machine.generation();
            self.departure.leave_host(current, &self.fleet.children);
        }
    }

    // --- events

    /// Passes an event to the machine, and performs its actions, including their consequences.
    pub(super) fn happen(&mut self, event: Event) {
        self.events.push_back(event);
        while let Some(event) = self.events.pop_front() {
            for action in self.machine.step(self.now, event) {
                self.act(action);
            }
        }
    }

    /// Makes a request to the machine. An error is the reason of a refusal.
    pub(super) fn ask(&mut self, command: Command) -> Result<(), String> {
        let actions = self.machine.step(self.now, Event::Asked(command));
        let mut answer = Ok(());
        for action in actions {
            match action {
                Action::Refuse(reason) => answer = Err(reason),
                action => self.act(action),
            }
        }
        answer
    }

    /// Has the machine replace workers that have used up a limit. `is_due`: true once a second.
    pub(super) fn recycle(&mut self, is_due: bool) {
        if !is_due && !self.recycler.is_urgent() {
            return;
        }
        let (events, problem) = self.recycler.look(self.now, &self.machine, &self.fleet);
        if let Some(problem) = problem {
            self.log.warn("worker_memory", problem);
        }
        for event in events {
            self.happen(event);
        }
    }

    /// Has the machine begin a refork, if it is due.
    pub(super) fn refork(&mut self) {
        match self.reforker.look(self.now, &self.machine, &mut self.fleet) {
            Some(Ok(event)) => self.happen(event),
            Some(Err(reason)) => self.tell_no_refork(&reason),
            None => {}
        }
    }

    /// Logs that no refork of this code begins by itself any more.
    pub(super) fn tell_no_refork(&self, reason: &str) {
        let text = format!("refork: none begins by itself for this code: {reason} (see docs/guides/fork_safety.md)");
        self.log.warn("refork_off", text);
    }

    // --- actions

    fn act(&mut self, action: Action) {
        match action {
            Action::StartSpawner {
                spawner,
                generation,
                kind,
            } => self.start_spawner(spawner, generation, kind),
            Action::Fork {
                spawner,
                worker,
                index,
                slot,
            } => self.fork(spawner, worker, Place { index, slot }),
            Action::Reexecute(spawner) => self.departure.plan_other(spawner),
            Action::Return => self.departure.plan_return(),
            Action::Adopt(generation) => self.adopt(generation),
            Action::Commit(generation) => self.commit(generation),
            Action::Revert(generation) => self.adoption.revert(generation),
            Action::Drain(worker, Duration::ZERO) => self.fleet.end(worker, "drain", &[]),
            Action::Drain(worker, long) => {
                let seconds = long.as_secs_f64().to_string();
                self.fleet.end(worker, "drain", &[seconds.as_bytes()]);
            }
            Action::DrainPatiently(worker, long) => {
                let seconds = long.as_secs_f64().to_string();
                self.fleet.end(worker, "drain", &[seconds.as_bytes(), b"patiently"]);
            }
            Action::EndWorker(worker, delay) => self.end_worker(worker, delay),
            Action::StopWorker(worker) => self.fleet.end(worker, "stop", &[]),
            Action::GiveUp(worker) => self.fleet.give_up(worker),
            Action::Promote(worker, generation, how) => {
                self.fleet.promote(worker, generation, how, self.adoption.current());
            }
            Action::EndSpawner(spawner) => self.fleet.end(spawner, "end", &[]),
            Action::Kill(process) => {
                if let Some(child) = self.fleet.children.get(process) {
                    child.kill();
                }
            }
            Action::CloseListenersOf(spawner) => _ = self.fleet.tell(spawner, "close_listeners", &[]),
            Action::CloseListeners => {
                self.departure.forget(); // it has copies of them
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

    fn tell(&mut self, notice: &Notice) {
        restart_counts::count(&mut self.restarts, notice);
        let level = match notice.level() {
            notice::Level::Info => Level::Info,
            notice::Level::Warn => Level::Warn,
        };
        self.log.write(level, notice.event(), &notice.text(&Processes(self)));
    }

    fn start_spawner(&mut self, spawner: ProcessId, generation: Generation, kind: SpawnKind) {
        Strangers::adopt();
        self.departure.loads(generation);
        let configuration = self.adoption.current();
        let started = self
            .fleet
            .start_spawner(spawner, generation, kind, configuration, &self.certificates);
        if let Err(error) = started {
            self.events
                .push_back(Event::SpawnerNotStarted(spawner, shortage(&error)));
        }
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
        self.watch.adopt(configuration, self.now);
        self.recycler.adopt(&configuration.settings.recycling);
        self.reforker.adopt(configuration.settings.refork_after);
        self.services_are_old = true;
        self.certificates.clear(); // the new spawner sends its own once it is the current one
    }

    /// Has the services use the configuration that has come into force. Not part of the commit: a request to the control server can
    /// cause the commit, and the control server is then within its turn.
    pub(super) fn adopt_services(&mut self) {
        if std::mem::take(&mut self.services_are_old) {
            let configuration = self.adoption.current();
            self.services.adopt(configuration, &self.log);
            self.services
                .publish(configuration, self.fleet.memory().bus(), &self.log);
            self.services.store(self.adoption.current_mut());
        }
    }

    fn make_current(&mut self, spawner: ProcessId) {
        if !self.machine.is_guest() {
            self.departure.forget_arrival();
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
struct Processes<'a>(&'a Acting);

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
