//! Receives messages and ends of processes, and results of the threads.

use super::Supervisor;
use crate::children::Child;
use crate::configuration::Configuration;
use crate::fleet::Ended;
use crate::hot_restart_state::Program;
use crate::link::Message;
use crate::machine::{End, Event, ProcessId};
use crate::strangers::Strangers;
use rustix::process::Pid;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

impl Supervisor {
    pub(super) fn hear_processes(&mut self) {
        for event in self.acting.fleet.started() {
            self.acting.happen(event);
        }
        for (name, message) in self.acting.fleet.messages() {
            self.hear_message(name, message);
        }
        for event in self.acting.fleet.beats() {
            self.acting.happen(event);
        }
    }

    /// Handles processes that have ended, after their last messages. A signal that has ended one of them may have been
    /// sent to the whole process group: then this process has it, too, and handles it first.
    pub(super) fn hear_ends(&mut self) {
        let ends = self.acting.fleet.children.note_ends();
        if !ends.is_empty() {
            self.requests.hear(&mut self.acting);
            self.hear_processes();
        }
        for (name, end) in ends {
            let Some((ended, names)) = self.acting.fleet.ended(name, end) else {
                continue;
            };
            self.tell_of_end(ended);
            for name in names {
                let planned = self
                    .acting
                    .fleet
                    .children
                    .find(name)
                    .is_some_and(|child| child.is_ending);
                self.acting.happen(Event::Ended(name, end));
                self.certifying.lose_tasks(name, planned, &mut self.acting);
            }
        }
        if !self.acting.fleet.children.remove_ended() {
            return;
        }
        let children = &self.acting.fleet.children;
        if children.iter().any(Child::is_resident) {
            Strangers::leave_alone(children);
        }
        let lives = |generation| children.iter().any(|child| child.generation == generation);
        self.acting.adoption.keep(lives);
    }

    /// Reports the end to the hooks of the current spawner.
    fn tell_of_end(&mut self, ended: Ended) {
        let (Some(index), Some(spawner)) = (ended.index, self.acting.machine.current_spawner()) else {
            return;
        };
        let (code, signal) = match ended.end {
            End::Exited(code) => (code.to_string(), String::new()),
            End::Killed(signal) => (String::new(), signal.to_string()),
            End::Unknown => (String::new(), String::new()),
        };
        let pid = ended.pid.map(|pid| pid.to_string()).unwrap_or_default();
        let fields = [index.to_string(), pid, code, signal];
        self.acting
            .fleet
            .tell(spawner, "worker_ended", &fields.each_ref().map(String::as_bytes));
    }

    fn hear_message(&mut self, name: ProcessId, message: Message) {
        let Some(child) = self.acting.fleet.children.find(name) else {
            return;
        };
        let (spawner, worker, is_ending) = (child.spawner, child.worker, child.is_ending);
        let event = match (message.kind.as_str(), spawner, worker) {
            ("other_version", Some(spawner), _) => return self.hear_other_version(spawner, &message),
            ("ready", Some(spawner), _) => self.hear_ready(spawner, message),
            ("listeners", Some(spawner), _) => return self.keep_listeners(spawner, message),
            ("alive", Some(spawner), _) => Event::SpawnerAlive(spawner),
            ("failed", _, Some(worker)) => Event::BootFailed(worker, message.text(0)),
            ("failed", Some(spawner), None) => Event::SpawnerFailed(spawner, message.text(0)),
            ("forked", _, Some(worker)) => return self.hear_forked(worker, &message),
            ("status", Some(_), _) => return self.hear_status(&message),
            ("booted", _, Some(worker)) => return self.hear_booted(worker),
            ("finished", _, Some(worker)) => Event::Finished(worker),
            ("promoted", None, Some(worker)) => self.hear_promoted(worker),
            ("shares_connections", Some(_), _) => return self.acting.reforker.shares_connections(child.generation),
            ("examined", _, Some(worker)) => return self.hear_examined(worker, &message),
            // A signal that asks a process to end can arrive when the process takes signals for requests to the server.
            ("ask", ..) if is_ending => return,
            ("ask", ..) => return self.requests.hear_ask(&message.text(0), &mut self.acting),
            ("acme_orders", Some(spawner), _) => {
                return self.certifying.hear_orders(spawner, message, &mut self.acting)
            }
            ("acme", Some(_), _) => return self.certifying.hear_task_done(message, &mut self.acting),
            ("kept" | "certificates", Some(_), _) => return self.acting.hear_certificates(message),
            ("certified", ..) => return self.acting.hear_certified(name, &message),
            _ => return,
        };
        self.acting.happen(event);
    }

    /// The process has become a spawner, even if the machine does not wait for it any more.
    fn hear_promoted(&mut self, worker: ProcessId) -> Event {
        self.acting.fleet.promoted(worker);
        Event::Promoted(worker)
    }

    /// The worker has looked for problems of its copies, and serves on.
    fn hear_examined(&mut self, worker: ProcessId, message: &Message) {
        let problems = message.text(0);
        let acting = &mut self.acting;
        if acting.reforker.examined(worker, !problems.is_empty(), &acting.fleet) {
            acting.tell_no_refork(&problems);
        }
    }

    /// The new code has another protocol or layout. It continues loading the application, and reports to its own
    /// program.
    fn hear_other_version(&mut self, spawner: ProcessId, message: &Message) {
        let version = message.text(0);
        if self.acting.departure.has_host() {
            self.acting.fleet.tell(spawner, "end", &[]);
            let reason = format!(
                "the new code has Fairlead {version}, which is incompatible with the running version; stop the server and start it again"
            );
            return self.acting.happen(Event::SpawnerFailed(spawner, reason));
        }
        let path = message.fields.get(3).cloned().unwrap_or_default();
        if let Some(child) = self.acting.fleet.children.get(spawner) {
            child.other = Some(Program {
                version,
                path: OsString::from_vec(path).into(),
            });
        }
    }

    fn hear_ready(&mut self, spawner: ProcessId, message: Message) -> Event {
        let now = self.acting.now;
        let child = self.acting.fleet.children.get(spawner);
        if let Some((child, other)) = child.and_then(|child| child.other.clone().map(|other| (child, other))) {
            (child.ready, child.since) = (true, now);
            child.report = message.descriptors;
            self.acting.fleet.memory().bus().rouse();
            return Event::OtherVersionReady(spawner, other.version);
        }
        let child = self.acting.fleet.children.get(spawner);
        let (generation, listeners) = child.map_or((0, Vec::new()), |child| {
            (child.generation, std::mem::take(&mut child.listeners))
        });
        let settings = message.descriptors.into_iter().next();
        let settings = settings.ok_or_else(|| "its message contains no settings".to_string());
        let read = settings.and_then(|file| Configuration::read(file, listeners, Some(self.acting.adoption.current())));
        match read {
            Ok(configuration) => {
                let limits = configuration.settings.limits.clone();
                self.acting.adoption.report(generation, configuration);
                if let Some(child) = self.acting.fleet.children.get(spawner) {
                    child.ready = true;
                    child.since = self.acting.now;
                }
                Event::SpawnerReady(spawner, limits)
            }
            Err(reason) => {
                self.acting.fleet.tell(spawner, "end", &[]);
                Event::SpawnerFailed(spawner, reason)
            }
        }
    }

    fn keep_listeners(&mut self, spawner: ProcessId, message: Message) {
        if let Some(child) = self.acting.fleet.children.get(spawner) {
            child.listeners.extend(message.descriptors);
        }
    }

    fn hear_forked(&mut self, worker: ProcessId, message: &Message) {
        let pid = message.number(0).and_then(Pid::from_raw);
        if let (Some(child), Some(pid)) = (self.acting.fleet.children.get(worker), pid) {
            child.is_process(pid, None);
        }
        self.acting.happen(Event::Forked(worker));
    }

    /// The status of a worker, from the process that has forked it and stayed its parent.
    fn hear_status(&mut self, message: &Message) {
        let mut children = self.acting.fleet.children.iter_mut();
        let Some(child) = children.find(|child| child.pid().is_some_and(|pid| message.number(0) == Some(pid))) else {
            return;
        };
        let (status, signal) = (message.number(1).map(End::Exited), message.number(2).map(End::Killed));
        child.reported = status.or(signal);
    }

    fn hear_booted(&mut self, worker: ProcessId) {
        let current = self.acting.machine.generation();
        if let Some(child) = self.acting.fleet.children.get(worker) {
            child.ready = true;
            child.since = self.acting.now;
            if child.generation == current {
                self.acting
                    .certificates
                    .each(|fields, bytes| _ = child.send("certificates", &fields, &[bytes]));
            }
        }
        self.acting.fleet.tend(self.acting.machine.restarts()); // the others must know its mailbox
        self.acting.happen(Event::Booted(worker));
    }

    // --- threads

    pub(super) fn hear_background(&mut self) {
        for (generation, result) in self.acting.adoption.prepared() {
            self.acting.happen(Event::Adopted(generation, result));
        }
        self.requests.hear_reopened(&self.acting.log);
    }
}
