//! The reload of certificates: the current spawner reads them, and each process confirms their use.

use super::acting::Acting;
use crate::certificates::{Outcome, Serving};
use crate::link::Message;
use crate::machine::{Event, ProcessId};

impl Acting {
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

    /// The current spawner has read files: at its start (`kept`), or because they have changed.
    pub(super) fn hear_certificates(&mut self, message: Message) {
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

    pub(super) fn hear_certified(&mut self, name: ProcessId, message: &Message) {
        let reason = message.fields.get(1).map(|_| message.text(1));
        let key = message.fields.first().cloned().unwrap_or_default();
        if let Some(outcome) = self.certificates.answered(name, &key, reason) {
            self.tell_of_certificates(outcome);
        }
    }

    fn tell_of_certificates(&mut self, outcome: Outcome) {
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

    pub(super) fn tend_certificates(&mut self) {
        let fleet = &self.fleet;
        self.certificates.again(self.now, |process, fields, bytes| {
            if let Some(child) = fleet.children.find(process) {
                child.send("certificates", &fields, &[bytes]);
            }
        });
        let serving = self.serving();
        let replacing = self.machine.workers().any(|worker| worker.ending && !worker.retires);
        let children = &self.fleet.children;
        let exists = |process| children.find(process).is_some();
        for outcome in self.certificates.tend(self.now, &serving, exists, replacing) {
            self.tell_of_certificates(outcome);
        }
    }

    /// The serving workers, for certificates.
    fn serving(&self) -> Vec<Serving> {
        let workers = self.machine.workers().filter(|worker| worker.booted && !worker.ending);
        let serving = workers.map(|worker| Serving {
            worker: worker.id,
            spawner: self.fleet.children.find(worker.spawner).map(|_| worker.spawner),
            since: self
                .fleet
                .children
                .find(worker.id)
                .map_or(self.now, |child| child.since),
        });
        serving.collect()
    }
}
