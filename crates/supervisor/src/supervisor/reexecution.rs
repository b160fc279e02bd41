//! A program of another version takes the place of this one, and perhaps gives it back.

use super::{Parts, Supervisor};
use crate::adoption::Adoption;
use crate::certificates::Certificates;
use crate::children::SavedChild;
use crate::configuration::Configuration;
use crate::fleet::Fleet;
use crate::handover::{Arrival, Comeback, Handover, Luggage, News, Package, Report};
use crate::log::Log;
use crate::machine::saved::Saved;
use crate::machine::{End, Event, Machine, Moment, ProcessId};
use crate::running_time::RunningTime;
use crate::signals::Signals;
use crate::supervisor::certifying::Certifying;
use crate::supervisor::services::{RubyLog, Services};
use crate::supervisor::watching::Watch;
use crate::versions::versions;
use fairlead_shared_memory::SharedMemory;
use serde::{Deserialize, Serialize};
use serde_json::value::{to_raw_value, RawValue};
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long somebody who is connected to the control server is waited for.
const COURTESY: Duration = Duration::from_secs(1);

/// Pause between two looks at what is under way.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// Time for lines of the log that are not written yet.
const LINES: Duration = Duration::from_millis(100);

/// This program is to be replaced.
#[derive(Debug)]
pub(super) struct Leaving {
    since: Instant,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    /// The program of the version that this spawner has.
    Other(ProcessId),
    /// The program that was here before.
    Former,
}

/// What only this program can read again.
#[derive(Deserialize, Serialize)]
struct Own {
    machine: Machine,
    now: Moment,
    /// Its descriptors.
    memory: Vec<usize>,
    /// The slot and the descriptors of each.
    mailboxes: Vec<(usize, [usize; 2])>,
}

impl Supervisor {
    /// Asks for the program of another version.
    pub(super) fn leave_to(&mut self, spawner: ProcessId) {
        self.leave(Destination::Other(spawner));
    }

    /// Asks for the former program.
    pub(super) fn leave_back(&mut self) {
        self.leave(Destination::Former);
    }

    fn leave(&mut self, to: Destination) {
        let since = Instant::now();
        self.leaving.get_or_insert(Leaving { since, to });
    }

    /// Is replaced, if that is asked for and nothing is under way that would be cut off.
    pub(super) fn leave_if_idle(&mut self) {
        let Some(leaving) = self.leaving.take_if(|leaving| {
            let idle = [&self.adoption.is_idle(), &self.fleet.is_idle(), &self.watch.is_idle()];
            let polite = self.services.is_idle() || leaving.since.elapsed() > COURTESY;
            idle.iter().all(|idle| **idle) && self.reopenings.is_idle() && polite
        }) else {
            return;
        };
        self.log.flush(LINES);
        match leaving.to {
            Destination::Other(spawner) => {
                let Err(reason) = self.reexecute(spawner);
                self.happen(Event::NotReexecuted(spawner, reason));
            }
            Destination::Former => self.give_back(),
        }
    }

    // --- this program leaves

    fn reexecute(&self, spawner: ProcessId) -> Result<Infallible, String> {
        let child = self.fleet.children.find(spawner);
        let program = child.and_then(|child| child.other.as_ref());
        let program = program.ok_or("the new process has ended")?;
        let saved = self.machine.save().ok_or("the restart is over")?;
        let package = self.pack(saved, spawner);
        let package = package.map_err(|error| crate::wording::shortage(&error))?;
        program.take_over(&package, &versions().version)
    }

    fn pack(&self, machine: Saved, spawner: ProcessId) -> io::Result<Package> {
        let mut luggage = Luggage::default();
        let (settings, socket_files) = self.adoption.current().save(&mut luggage)?;
        let (number, changed_at) = self.restart_changed_at;
        let handover = Handover {
            format: versions().format,
            version: versions().version.clone(),
            machine,
            settings,
            socket_files,
            children: self
                .fleet
                .children
                .iter()
                .map(|child| child.save(&mut luggage))
                .collect::<Result<_, _>>()?,
            certificates: self.certificates.save(&mut luggage)?,
            report: self.report_of(spawner, &mut luggage)?,
            started_at: seconds(self.started_at),
            restart_changed_at: (number, seconds(changed_at)),
            touched_at: self.watch.touched_at().map(seconds),
            systemd: self.services.told(),
            acme: Some(self.certifying.save(&mut luggage)?),
            own: self.own(&mut luggage)?,
        };
        Package::write(&handover, luggage)
    }

    fn report_of(&self, spawner: ProcessId, luggage: &mut Luggage) -> io::Result<Report> {
        let child = self.fleet.children.find(spawner).ok_or(io::ErrorKind::NotFound)?;
        let (settings, shared) = child.report.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut add = |all: &[OwnedFd]| {
            all.iter()
                .map(|one| luggage.add(one.as_fd()))
                .collect::<io::Result<Vec<_>>>()
        };
        Ok(Report {
            listeners: add(&child.listeners)?,
            shared: add(shared)?,
            settings: luggage.add(settings.as_fd())?,
        })
    }

    fn own(&self, luggage: &mut Luggage) -> io::Result<Box<RawValue>> {
        let memory = self.fleet.memory();
        let descriptors = memory.descriptors();
        let mut mailboxes = Vec::new();
        for slot in 0..SharedMemory::slots() {
            if let Some([sender, receiver]) = memory.bus().descriptors(slot) {
                mailboxes.push((slot, [luggage.add(sender)?, luggage.add(receiver)?]));
            }
        }
        let own = Own {
            machine: self.machine.clone(),
            now: self.now,
            memory: descriptors
                .into_iter()
                .map(|one| luggage.add(one))
                .collect::<Result<_, _>>()?,
            mailboxes,
        };
        Ok(to_raw_value(&own)?)
    }

    // --- this program is the other one

    /// Takes the place of a program of another version. Reads memory only: nobody supervises meanwhile.
    ///
    /// # Errors
    /// If it cannot read that state, or descriptors or threads are short: a sentence. Nothing has changed then.
    pub fn take_over(arrival: &Arrival, signals: Signals) -> Result<Supervisor, String> {
        let package = &arrival.package;
        let handover = package.read()?;
        let (clock, now) = (RunningTime::begin(), Moment::ZERO);
        let limits = handover.settings.limits.clone();
        let machine = Machine::take_over(&handover.machine, limits, now);
        let shared = package.descriptors(&handover.report.shared)?;
        let shared = shared
            .try_into()
            .map_err(|_| "the memory for the new workers is missing")?;
        let memory = SharedMemory::adopt(shared).map_err(|error| error.to_string())?;
        let mut supervisor = Supervisor::restore(package, handover, machine, memory, (clock, now), signals)?;
        for child in supervisor.fleet.children.iter_mut() {
            child.is_foreign = supervisor.machine.borrows(child.generation);
        }
        supervisor.welcome(package)?;
        Ok(supervisor)
    }

    /// Keeps the way back, and goes on with the restart.
    pub fn begin_as_guest(&mut self, arrival: Arrival) {
        self.arrival = Some(arrival);
        if let Some(event) = self.welcomed.take() {
            self.happen(event);
        }
    }

    /// Reads what the spawner with the new code has reported.
    fn welcome(&mut self, package: &Package) -> Result<(), String> {
        let report = package.read()?.report;
        let spawner = self.machine.newcomer().ok_or("there is no new code")?;
        let generation = self.fleet.children.find(spawner).map_or(0, |child| child.generation);
        let listeners = package.descriptors(&report.listeners)?;
        let settings = package.descriptor(report.settings)?;
        let configuration = Configuration::read(settings, listeners, Some(self.adoption.current()))?;
        let limits = configuration.settings.limits.clone();
        let version = configuration.settings.version.clone();
        self.adoption.current_mut().settings.version = version;
        self.adoption.report(generation, configuration);
        self.welcomed = Some(Event::SpawnerReady(spawner, limits));
        Ok(())
    }

    fn give_back(&mut self) {
        let (Some(arrival), Some((returned, reason))) = (&self.arrival, self.machine.giving_back()) else {
            return;
        };
        let present = self.fleet.children.iter().flat_map(|child| child.names()).collect();
        let news = News {
            returned,
            present: Some(present),
        };
        let Err(error) = arrival.give_back(&reason, &news);
        self.log.error(
            "not_given_back",
            format!("the former supervisor cannot take over again: {error}"),
        );
    }

    // --- this program is back

    /// Goes on where this program was when another one took over.
    ///
    /// # Errors
    /// If descriptors or threads are short: a sentence.
    pub fn come_back(comeback: &Comeback, signals: Signals) -> Result<Supervisor, String> {
        let package = &comeback.package;
        let mut handover = package.read()?;
        let own: Own = serde_json::from_str(handover.own.get()).map_err(|error| error.to_string())?;
        let memory = package.descriptors(&own.memory)?;
        let memory = memory.try_into().map_err(|_| "the memory of the workers is missing")?;
        let memory = SharedMemory::adopt(memory).map_err(|error| error.to_string())?;
        for (slot, mailbox) in own.mailboxes {
            let [sender, receiver] = mailbox;
            memory
                .bus()
                .adopt(slot, [package.descriptor(sender)?, package.descriptor(receiver)?]);
        }
        let (clock, now) = (RunningTime::resume(own.now), own.now);
        let present = comeback.news.present.as_ref();
        let is_there = |child: &SavedChild| present.is_none_or(|all| child.names().any(|name| all.contains(&name)));
        let (there, gone): (Vec<_>, Vec<_>) = handover.children.into_iter().partition(is_there);
        handover.children = there;
        let mut supervisor = Supervisor::restore(package, handover, own.machine, memory, (clock, now), signals)?;
        supervisor.machine.resume(now, &comeback.news.returned);
        let newcomer = supervisor.machine.newcomer();
        supervisor
            .events
            .extend(newcomer.map(|spawner| Event::NotReexecuted(spawner, comeback.reason.clone())));
        let names = gone.iter().flat_map(SavedChild::names);
        supervisor
            .events
            .extend(names.map(|name| Event::Ended(name, End::Unknown)));
        Ok(supervisor)
    }

    // --- both

    fn restore(
        package: &Package,
        handover: Handover,
        machine: Machine,
        memory: SharedMemory,
        (clock, now): (RunningTime, Moment),
        signals: Signals,
    ) -> Result<Supervisor, String> {
        let text = |error: io::Error| error.to_string();
        let log = Log::new(&handover.settings.log);
        let certificates = Certificates::restore(&handover.certificates, package, now)?;
        let configuration = Configuration::restore(handover.settings, &handover.socket_files, package)?;
        let mut fleet = Fleet::new(memory).map_err(text)?;
        for child in &handover.children {
            fleet.children.add(child.restore(package, now)?);
        }
        let current = machine
            .current_spawner()
            .and_then(|spawner| fleet.children.find(spawner));
        let link = current.and_then(|child| child.link_copy());
        let mut watch = Watch::new(&configuration, now);
        watch.resume(handover.touched_at.map(time));
        let certifying = handover.acme.as_deref();
        let certifying = certifying.map(|saved| Certifying::restore(saved, package, now));
        let services = Services::resume(&configuration, handover.systemd).map_err(text)?;
        let mut supervisor = Supervisor::of(Parts {
            machine,
            now,
            clock,
            fleet,
            adoption: Adoption::resume(configuration)?,
            services,
            watch,
            ruby_log: RubyLog::new(link.as_ref(), &log),
            log,
            signals: Some(signals),
        })?;
        supervisor.certificates = certificates;
        supervisor.certifying = certifying.unwrap_or_default();
        supervisor.started_at = time(handover.started_at);
        let (number, changed_at) = handover.restart_changed_at;
        supervisor.restart_changed_at = (number, time(changed_at));
        Ok(supervisor)
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn time(seconds: f64) -> SystemTime {
    UNIX_EPOCH + Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
