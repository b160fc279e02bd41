//! Receives signals, messages and ends of processes, and results of the threads.

use super::Supervisor;
use crate::certificates::Outcome;
use crate::children::Child;
use crate::configuration::Configuration;
use crate::control::Asked;
use crate::fleet::Ended;
use crate::hot_restart_state::Program;
use crate::link::Message;
use crate::machine::{Command, End, Event, ProcessId, RestartKind, StopReason};
use crate::strangers::Strangers;
use rustix::process::Pid;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

impl Supervisor {
    /// Handles signals, and requests from this process.
    pub(super) fn hear_requests(&mut self) {
        for name in self.signals.read() {
            self.hear_signal(name);
        }
        if let Some(kind) = self.restart_signals.due(self.now) {
            let _ = self.ask(Command::Restart(kind));
        }
        for request in self.asks.take() {
            self.hear_ask(&request);
        }
    }

    fn hear_signal(&mut self, name: &'static str) {
        let reason = StopReason::Signal(name);
        let _ = match name {
            "TERM" | "INT" => self.stop(reason),
            "QUIT" => self.halt(reason),
            "HUP" => self.hang_up(),
            "USR1" => self.wait_for_restart(RestartKind::Phased),
            "USR2" => self.wait_for_restart(RestartKind::Hot),
            "TTIN" => self.ask(Command::AddWorker),
            "TTOU" => self.ask(Command::RemoveWorker),
            "URG" => self.ask(Command::Restart(RestartKind::Refork)),
            _ => {
                self.fleet.tell_all("backtraces", &[], &[]);
                Ok(())
            }
        };
    }

    fn wait_for_restart(&mut self, kind: RestartKind) -> Result<(), String> {
        self.restart_signals.ask(kind);
        Ok(())
    }

    /// HUP ends a server without logs to reopen or certificates to reload, unless `nohup` has disabled it.
    fn hang_up(&mut self) -> Result<(), String> {
        let reopened = self.reopen_logs();
        let reloaded = self.reload_certificates();
        if reopened || reloaded || self.signals.hup_was_ignored() {
            return Ok(());
        }
        self.stop(StopReason::Signal("HUP"))
    }

    fn stop(&mut self, reason: StopReason) -> Result<(), String> {
        self.note_reason(reason);
        let hurry = self.insistence.hurries(reason, self.now);
        self.insistence.begin(reason, self.now);
        self.ask(Command::Stop { reason, hurry })
    }

    fn halt(&mut self, reason: StopReason) -> Result<(), String> {
        self.note_reason(reason);
        self.ask(Command::Halt(reason))
    }

    fn note_reason(&mut self, reason: StopReason) {
        if let (StopReason::Signal(name), None) = (reason, self.asked_by) {
            self.asked_by = Some(name);
        }
    }

    /// Handles a request from a process of the server.
    fn hear_ask(&mut self, request: &str) {
        let asked = match request {
            "stop" => Asked::Stop,
            "halt" => Asked::Halt,
            "restart" => Asked::Restart,
            "phased_restart" => Asked::PhasedRestart,
            "refork" => Asked::Refork,
            "reopen_logs" => Asked::ReopenLogs,
            "reload_certificates" => Asked::ReloadCertificates,
            "add_worker" => Asked::AddWorker,
            "remove_worker" => Asked::RemoveWorker,
            "backtraces" => Asked::Backtraces,
            _ => return,
        };
        let _ = self.do_asked(asked);
    }

    /// Handles a request of a user or a program. An error is the reason of a refusal.
    pub(super) fn do_asked(&mut self, asked: Asked) -> Result<(), String> {
        match asked {
            Asked::Stop => self.stop(StopReason::Command),
            Asked::Halt => self.halt(StopReason::Command),
            Asked::Restart => self.ask(Command::Restart(RestartKind::Hot)),
            Asked::PhasedRestart => self.ask(Command::Restart(RestartKind::Phased)),
            Asked::Refork => self.ask(Command::Restart(RestartKind::Refork)),
            Asked::AddWorker => self.ask(Command::AddWorker),
            Asked::RemoveWorker => self.ask(Command::RemoveWorker),
            Asked::ReopenLogs => {
                self.reopen_logs();
                Ok(())
            }
            Asked::ReloadCertificates => {
                self.reload_certificates();
                Ok(())
            }
            Asked::Backtraces => {
                self.fleet.tell_all("backtraces", &[], &[]);
                Ok(())
            }
        }
    }

    /// Reopens the logs. Returns false if no log is a file.
    fn reopen_logs(&mut self) -> bool {
        let Some(reopening) = self.streams.reopening(&self.adoption.current().settings.log) else {
            return false;
        };
        self.fleet.tell_all("reopen_logs", &[], &[]);
        self.reopenings.abandon();
        let (late, log) = (reopening.late(), self.log.clone());
        if self.reopenings.run(move || reopening.run()).is_err() {
            late.report(&log);
        }
        true
    }

    /// Reloads the certificates. Returns false if there are none. Waits until there is a spawner to read them.
    pub(super) fn reload_certificates(&mut self) -> bool {
        self.reload_waits = self.adoption.current().settings.tls;
        self.ask_for_certificates();
        self.adoption.current().settings.tls
    }

    /// Asks the current spawner to read the certificates, if a reload is pending.
    pub(super) fn ask_for_certificates(&mut self) {
        if let (true, Some(spawner)) = (self.reload_waits, self.machine.current_spawner()) {
            self.reload_waits = !self.fleet.tell(spawner, "reload_certificates", &[]);
        }
    }

    // --- processes

    pub(super) fn hear_processes(&mut self) {
        for event in self.fleet.started() {
            self.happen(event);
        }
        for (name, message) in self.fleet.messages() {
            self.hear_message(name, message);
        }
        for event in self.fleet.beats() {
            self.happen(event);
        }
    }

    /// Handles processes that have ended, after their last messages. A signal that has ended one of them may have been
    /// sent to the whole process group: then this process has it, too, and handles it first.
    pub(super) fn hear_ends(&mut self) {
        let ends = self.fleet.children.note_ends();
        if !ends.is_empty() {
            self.hear_requests();
            self.hear_processes();
        }
        for (name, end) in ends {
            let Some((ended, names)) = self.fleet.ended(name, end) else {
                continue;
            };
            self.tell_of_end(ended);
            for name in names {
                let planned = self.fleet.children.find(name).is_some_and(|child| child.is_ending);
                self.happen(Event::Ended(name, end));
                self.lose_tasks(name, planned);
            }
        }
        if !self.fleet.children.remove_ended() {
            return;
        }
        let children = &self.fleet.children;
        if children.iter().any(Child::is_resident) {
            Strangers::leave_alone(children);
        }
        let lives = |generation| children.iter().any(|child| child.generation == generation);
        self.adoption.keep(lives);
    }

    /// Reports the end to the hooks of the current spawner.
    fn tell_of_end(&mut self, ended: Ended) {
        let (Some(index), Some(spawner)) = (ended.index, self.machine.current_spawner()) else {
            return;
        };
        let (code, signal) = match ended.end {
            End::Exited(code) => (code.to_string(), String::new()),
            End::Killed(signal) => (String::new(), signal.to_string()),
            End::Unknown => (String::new(), String::new()),
        };
        let pid = ended.pid.map(|pid| pid.to_string()).unwrap_or_default();
        let fields = [index.to_string(), pid, code, signal];
        self.fleet
            .tell(spawner, "worker_ended", &fields.each_ref().map(String::as_bytes));
    }

    fn hear_message(&mut self, name: ProcessId, message: Message) {
        let Some(child) = self.fleet.children.find(name) else {
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
            ("booted", _, Some(worker)) => return self.hear_booted(worker),
            ("promoted", None, Some(worker)) => self.hear_promoted(worker),
            // A signal that asks a process to end can arrive when the process takes signals for requests to the server.
            ("ask", ..) if is_ending => return,
            ("ask", ..) => return self.hear_ask(&message.text(0)),
            ("acme_orders", Some(spawner), _) => return self.hear_orders(spawner, message),
            ("acme", Some(_), _) => return self.hear_task_done(message),
            ("kept" | "certificates", Some(_), _) => return self.hear_certificates(message),
            ("certified", ..) => return self.hear_certified(name, &message),
            _ => return,
        };
        self.happen(event);
    }

    /// The process has become a spawner, even if the machine does not wait for it any more.
    fn hear_promoted(&mut self, worker: ProcessId) -> Event {
        self.fleet.promoted(worker);
        Event::Promoted(worker)
    }

    /// The new code has another protocol or layout. It continues loading the application, and reports to its own
    /// program.
    fn hear_other_version(&mut self, spawner: ProcessId, message: &Message) {
        let version = message.text(0);
        if self.host.is_some() {
            self.fleet.tell(spawner, "end", &[]);
            let reason = format!(
                "the new code has Fairlead {version}, which is incompatible with the running version; stop the server and start it again"
            );
            return self.happen(Event::SpawnerFailed(spawner, reason));
        }
        let path = message.fields.get(3).cloned().unwrap_or_default();
        if let Some(child) = self.fleet.children.get(spawner) {
            child.other = Some(Program {
                version,
                path: OsString::from_vec(path).into(),
            });
        }
    }

    fn hear_ready(&mut self, spawner: ProcessId, message: Message) -> Event {
        let now = self.now;
        let child = self.fleet.children.get(spawner);
        if let Some((child, other)) = child.and_then(|child| child.other.clone().map(|other| (child, other))) {
            (child.ready, child.since) = (true, now);
            child.report = message.descriptors;
            return Event::OtherVersionReady(spawner, other.version);
        }
        let child = self.fleet.children.get(spawner);
        let (generation, listeners) = child.map_or((0, Vec::new()), |child| {
            (child.generation, std::mem::take(&mut child.listeners))
        });
        let settings = message.descriptors.into_iter().next();
        let settings = settings.ok_or_else(|| "its message contains no settings".to_string());
        let read = settings.and_then(|file| Configuration::read(file, listeners, Some(self.adoption.current())));
        match read {
            Ok(configuration) => {
                let limits = configuration.settings.limits.clone();
                self.adoption.report(generation, configuration);
                if let Some(child) = self.fleet.children.get(spawner) {
                    child.ready = true;
                    child.since = self.now;
                }
                Event::SpawnerReady(spawner, limits)
            }
            Err(reason) => {
                self.fleet.tell(spawner, "end", &[]);
                Event::SpawnerFailed(spawner, reason)
            }
        }
    }

    fn keep_listeners(&mut self, spawner: ProcessId, message: Message) {
        if let Some(child) = self.fleet.children.get(spawner) {
            child.listeners.extend(message.descriptors);
        }
    }

    fn hear_forked(&mut self, worker: ProcessId, message: &Message) {
        let pid = message.number(0).and_then(Pid::from_raw);
        if let (Some(child), Some(pid)) = (self.fleet.children.get(worker), pid) {
            child.is_process(pid, None);
        }
        self.happen(Event::Forked(worker));
    }

    fn hear_booted(&mut self, worker: ProcessId) {
        let current = self.machine.generation();
        if let Some(child) = self.fleet.children.get(worker) {
            child.ready = true;
            child.since = self.now;
            if child.generation == current {
                self.certificates
                    .each(|fields, bytes| _ = child.send("certificates", &fields, &[bytes]));
            }
        }
        self.fleet.tend(); // the others must know its mailbox
        self.happen(Event::Booted(worker));
    }

    // --- certificates

    /// The current spawner has read files: at its start (`kept`), or because they have changed.
    fn hear_certificates(&mut self, message: Message) {
        let Message {
            kind,
            fields,
            descriptors,
        } = message;
        let (Ok(fields), Some(bytes)) = (<[Vec<u8>; 3]>::try_from(fields), descriptors.into_iter().next()) else {
            return;
        };
        let is_news = kind == "certificates";
        let words = fields.each_ref().map(Vec::as_slice);
        self.certificates.keep(self.now, words, bytes, is_news);
        if is_news {
            let fleet = &self.fleet;
            self.certificates.one(&fields[0], |fields, bytes| {
                fleet.tell_all("certificates", &fields, &[bytes])
            });
        }
    }

    fn hear_certified(&mut self, name: ProcessId, message: &Message) {
        let reason = message.fields.get(1).map(|_| message.text(1));
        let key = message.fields.first().cloned().unwrap_or_default();
        if let Some(outcome) = self.certificates.answered(name, &key, reason) {
            self.tell_of_certificates(outcome);
        }
    }

    pub(super) fn tell_of_certificates(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Reloaded(location) => {
                self.log
                    .info("certificates_reloaded", format!("certificates reloaded for {location}"));
            }
            Outcome::Failed(process, location, reason) => {
                let (name, pid) = (self.title(process), self.pid_text(process));
                let text =
                    format!("certificates not reloaded for {location} in {name} (pid {pid}): {reason}; trying again");
                self.log.warn("certificates_behind", text);
            }
            Outcome::Behind(worker, location) => {
                let (name, pid) = (self.title(worker), self.pid_text(worker));
                let seconds = crate::certificates::Certificates::PATIENCE.as_secs();
                let text = format!(
                    "{name} (pid {pid}) still uses the old certificates for {location} after {seconds} s; replacing it"
                );
                self.log.warn("worker_behind", text);
                self.happen(Event::Behind(worker));
            }
        }
    }

    /// "worker 1", or "the spawner of generation 2".
    fn title(&self, process: ProcessId) -> String {
        let child = self.fleet.children.find(process);
        match child.map(|child| (child.place, child.generation)) {
            Some((Some(place), _)) => format!("worker {}", place.index),
            Some((None, generation)) => format!("the spawner of generation {generation}"),
            None => "a process".into(),
        }
    }

    fn pid_text(&self, process: ProcessId) -> String {
        let pid = self.fleet.children.find(process).and_then(|child| child.pid());
        pid.map_or_else(|| "unknown".into(), |pid| pid.to_string())
    }

    // --- threads

    pub(super) fn hear_background(&mut self) {
        for (generation, result) in self.adoption.prepared() {
            self.happen(Event::Adopted(generation, result));
        }
        for reopened in self.reopenings.results() {
            reopened.report(&self.log);
        }
    }
}
