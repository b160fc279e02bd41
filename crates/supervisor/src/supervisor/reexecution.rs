//! Another program replaces this one: a program of another version, which may return the state, or the same supervisor
//! without the application that has called it.

use super::acting::{Acting, Parts};
use super::departure::Destination;
use super::Supervisor;
use crate::adoption::Adoption;
use crate::certificates::Certificates;
use crate::children::SavedChild;
use crate::configuration::Configuration;
use crate::fleet::Fleet;
use crate::hot_restart_state::{Arrival, Comeback, HotRestartState, Luggage, News, Package, Report};
use crate::log::Log;
use crate::machine::saved::Saved;
use crate::machine::{End, Event, Machine, Moment, ProcessId, ServerStatus};
use crate::running_time::RunningTime;
use crate::signals::Signals;
use crate::strangers::Strangers;
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
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time limit for log lines that are not written yet.
const LINES: Duration = Duration::from_secs(1);

/// State that only this program can read again.
#[derive(Deserialize, Serialize)]
struct Own {
    machine: Machine,
    now: Moment,
    /// Its descriptors.
    memory: Vec<usize>,
    /// The slot and the descriptors of each.
    mailboxes: Vec<(usize, [usize; 2])>,
    /// The pipe of its handlers of signals.
    #[serde(default)]
    signals: Option<usize>,
}

impl Supervisor {
    /// Performs the planned replacement, if no pending work would be lost.
    pub(super) fn leave_if_idle(&mut self) {
        let acting = &self.acting;
        acting.services.rest(acting.departure.is_planned());
        if !acting.departure.is_planned() {
            return;
        }
        let serves = acting.machine.state() == ServerStatus::Ready;
        let is_idle = acting.is_idle() && acting.services.is_resting() && self.requests.are_done(acting.now);
        let are_services_idle = acting.services.is_idle();
        let Some(to) = self.acting.departure.due(serves, is_idle, are_services_idle) else {
            return;
        };
        self.acting.log.flush(LINES);
        match to {
            Destination::Other(spawner) => {
                let Err(reason) = self.reexecute(spawner);
                self.acting.happen(Event::NotReexecuted(spawner, reason));
            }
            Destination::Former => self.give_back(),
            Destination::Own => self.execute_own(),
        }
    }

    // --- this program leaves

    /// If that fails, this program stays until the next restart.
    fn execute_own(&mut self) {
        let package = self.pack(None).map_err(|error| crate::wording::shortage(&error));
        let departure = &mut self.acting.departure;
        let Some(caller) = departure.caller() else { return };
        let left = package.and_then(|package| package.return_to(caller.successor.as_fd(), "", &News::default()));
        let Err(reason) = left;
        departure.stay_in_host();
        Strangers::adopt();
        self.acting.log.error(
            "host_not_left",
            format!(
                "cannot start a separate program for the supervisor, so threads of the old code continue: {reason}"
            ),
        );
    }

    fn reexecute(&self, spawner: ProcessId) -> Result<Infallible, String> {
        let child = self.acting.fleet.children.find(spawner);
        let program = child.and_then(|child| child.other.as_ref());
        let program = program.ok_or("the new process has ended")?;
        let saved = self.acting.machine.save().ok_or("the restart is over")?;
        let package = self.pack(Some((saved, spawner)));
        let package = package.map_err(|error| crate::wording::shortage(&error))?;
        program.take_over(&package, &versions().version)
    }

    /// `restart`: for a program of another version, which continues it.
    fn pack(&self, restart: Option<(Saved, ProcessId)>) -> io::Result<Package> {
        let mut luggage = Luggage::default();
        let (machine, spawner) = restart.unzip();
        let caller = self.acting.departure.caller();
        let pid_file = caller.map_or_else(
            || self.acting.adoption.caller_pid_file(),
            |caller| caller.pid_file.as_ref(),
        );
        let report = spawner
            .map(|spawner| self.report_of(spawner, &mut luggage))
            .transpose()?;
        let (settings, socket_files) = self.acting.adoption.current().save(&mut luggage)?;
        let (number, changed_at) = self.restart_changed_at;
        let hot_restart_state = HotRestartState {
            format: versions().format,
            version: versions().version.clone(),
            machine,
            settings,
            socket_files,
            children: self
                .acting
                .fleet
                .children
                .iter()
                .map(|child| child.save(&mut luggage))
                .collect::<Result<_, _>>()?,
            certificates: self.acting.certificates.save(&mut luggage)?,
            report,
            started_at: seconds(self.started_at),
            restart_changed_at: (number, seconds(changed_at)),
            touched_at: self.acting.watch.touched_at().map(seconds),
            moves: Some(SharedMemory::MOVES),
            pause: self.acting.rest_of_pause(),
            systemd: self.acting.services.told(),
            acme: Some(self.certifying.save(&mut luggage)?),
            caller_pid_file: pid_file.cloned(),
            own: self.own(&mut luggage)?,
        };
        Package::write(&hot_restart_state, luggage)
    }

    fn report_of(&self, spawner: ProcessId, luggage: &mut Luggage) -> io::Result<Report> {
        let child = self
            .acting
            .fleet
            .children
            .find(spawner)
            .ok_or(io::ErrorKind::NotFound)?;
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
        let memory = self.acting.fleet.memory();
        let descriptors = memory.descriptors();
        let mut mailboxes = Vec::new();
        for slot in 0..SharedMemory::slots() {
            if let Some([sender, receiver]) = memory.bus().descriptors(slot) {
                mailboxes.push((slot, [luggage.add(sender)?, luggage.add(receiver)?]));
            }
        }
        let pipe = self.requests.signals.pipe();
        let own = Own {
            machine: self.acting.machine.clone(),
            now: self.acting.now,
            memory: descriptors
                .into_iter()
                .map(|one| luggage.add(one))
                .collect::<Result<_, _>>()?,
            mailboxes,
            signals: pipe.map(|pipe| luggage.add(pipe)).transpose()?,
        };
        Ok(to_raw_value(&own)?)
    }

    // --- this program is the other one

    /// Replaces a program of another version. Only reads memory: the server has no supervisor meanwhile.
    ///
    /// # Errors
    /// If it cannot read that state, or descriptors or threads are short: a sentence. Nothing has changed then.
    pub fn take_over(arrival: &Arrival, signals: Signals) -> Result<Supervisor, String> {
        let package = &arrival.package;
        let hot_restart_state = package.read()?;
        let (clock, now) = (RunningTime::begin(), Moment::ZERO);
        let limits = hot_restart_state.settings.limits.clone();
        let saved = hot_restart_state.machine.as_ref().ok_or("the restart is missing")?;
        let machine = Machine::take_over(saved, limits, now);
        let report = hot_restart_state.report.as_ref().ok_or("the new code is missing")?;
        let shared = package.descriptors(&report.shared)?;
        let shared = shared
            .try_into()
            .map_err(|_| "the memory for the new workers is missing")?;
        let memory = SharedMemory::adopt(shared).map_err(|error| error.to_string())?;
        if let Some(pause) = &hot_restart_state.pause {
            memory.scoreboard().pause.begin(pause.timeout, pause.limit); // the new workers have other memory
        }
        let moves = hot_restart_state.moves == Some(SharedMemory::MOVES);
        let mut supervisor = Supervisor::restore(package, hot_restart_state, machine, memory, (clock, now), signals)?;
        supervisor.acting.fleet.predecessors_move = moves;
        for child in supervisor.acting.fleet.children.iter_mut() {
            child.is_foreign = supervisor.acting.machine.borrows(child.generation);
        }
        supervisor.welcome(package)?;
        Ok(supervisor)
    }

    /// Stores the state for a return, and continues the restart.
    pub fn begin_as_guest(&mut self, arrival: Arrival) {
        self.acting.departure.arrive(arrival);
        if let Some(event) = self.welcomed.take() {
            self.acting.happen(event);
        }
    }

    /// Reads the report of the spawner with the new code.
    fn welcome(&mut self, package: &Package) -> Result<(), String> {
        let report = package.read()?.report.ok_or("the new code is missing")?;
        let spawner = self.acting.machine.newcomer().ok_or("there is no new code")?;
        let generation = self
            .acting
            .fleet
            .children
            .find(spawner)
            .map_or(0, |child| child.generation);
        let listeners = package.descriptors(&report.listeners)?;
        let settings = package.descriptor(report.settings)?;
        let configuration = Configuration::read(settings, listeners, Some(self.acting.adoption.current()))?;
        let limits = configuration.settings.limits.clone();
        let version = configuration.settings.version.clone();
        self.acting.adoption.current_mut().settings.version = version;
        self.acting.adoption.report(generation, configuration);
        self.welcomed = Some(Event::SpawnerReady(spawner, limits));
        Ok(())
    }

    fn give_back(&mut self) {
        let (Some(arrival), Some((returned, reason))) =
            (self.acting.departure.arrival(), self.acting.machine.giving_back())
        else {
            return;
        };
        let present = self
            .acting
            .fleet
            .children
            .iter()
            .flat_map(|child| child.names())
            .collect();
        let news = News {
            returned,
            present: Some(present),
            resumed: self.acting.rest_of_pause().is_none(),
            reload_waits: self.acting.reload_waits,
        };
        let Err(error) = arrival.give_back(&reason, &news);
        self.acting.log.error(
            "not_given_back",
            format!("the previous supervisor cannot take over again: {error}"),
        );
    }

    // --- this program is back

    /// Continues after another program has run.
    ///
    /// # Errors
    /// If descriptors or threads are short: a sentence.
    pub fn come_back(comeback: &Comeback, signals: Signals) -> Result<Supervisor, String> {
        let package = &comeback.package;
        let mut hot_restart_state = package.read()?;
        let own: Own = serde_json::from_str(hot_restart_state.own.get()).map_err(|error| error.to_string())?;
        let memory = package.descriptors(&own.memory)?;
        let memory = memory.try_into().map_err(|_| "the memory of the workers is missing")?;
        let memory = SharedMemory::adopt(memory).map_err(|error| error.to_string())?;
        for (slot, mailbox) in own.mailboxes {
            let [sender, receiver] = mailbox;
            memory
                .bus()
                .adopt(slot, [package.descriptor(sender)?, package.descriptor(receiver)?]);
        }
        if comeback.news.resumed {
            memory.scoreboard().pause.end();
        }
        let (clock, now) = (RunningTime::resume(own.now), own.now);
        let present = comeback.news.present.as_ref();
        let is_there = |child: &SavedChild| present.is_none_or(|all| child.names().any(|name| all.contains(&name)));
        let (there, gone): (Vec<_>, Vec<_>) = hot_restart_state.children.into_iter().partition(is_there);
        hot_restart_state.children = there;
        let mut supervisor =
            Supervisor::restore(package, hot_restart_state, own.machine, memory, (clock, now), signals)?;
        supervisor.acting.machine.resume(now, &comeback.news.returned);
        supervisor.acting.reload_waits = comeback.news.reload_waits;
        let newcomer = supervisor.acting.machine.newcomer();
        supervisor
            .acting
            .events
            .extend(newcomer.map(|spawner| Event::NotReexecuted(spawner, comeback.reason.clone())));
        let names = gone.iter().flat_map(SavedChild::names);
        supervisor
            .acting
            .events
            .extend(names.map(|name| Event::Ended(name, End::Unknown)));
        let pipe = own.signals.map(|pipe| package.descriptor(pipe)).transpose()?;
        if let Some(pipe) = pipe {
            supervisor.requests.signals.follow(pipe);
        }
        Ok(supervisor)
    }

    // --- both

    fn restore(
        package: &Package,
        hot_restart_state: HotRestartState,
        machine: Machine,
        memory: SharedMemory,
        (clock, now): (RunningTime, Moment),
        signals: Signals,
    ) -> Result<Supervisor, String> {
        let text = |error: io::Error| error.to_string();
        let log = Log::new(&hot_restart_state.settings.log);
        let certificates = Certificates::restore(&hot_restart_state.certificates, package, now)?;
        let configuration =
            Configuration::restore(hot_restart_state.settings, &hot_restart_state.socket_files, package)?;
        let mut fleet = Fleet::new(memory).map_err(text)?;
        for child in &hot_restart_state.children {
            fleet.children.add(child.restore(package, now)?);
        }
        let current = machine
            .current_spawner()
            .and_then(|spawner| fleet.children.find(spawner));
        let link = current.and_then(|child| child.link_copy());
        let mut watch = Watch::new(&configuration, now);
        watch.resume(hot_restart_state.touched_at.map(time));
        let certifying = hot_restart_state.acme.as_deref();
        let certifying = certifying.map(|saved| Certifying::restore(saved, package, now));
        let mut services = Services::resume(&configuration, hot_restart_state.systemd).map_err(text)?;
        services.publish(&configuration, fleet.memory().bus(), &log);
        let mut adoption = Adoption::resume(configuration)?;
        adoption.inherit(hot_restart_state.caller_pid_file);
        Strangers::adopt();
        let mut acting = Acting::new(Parts {
            machine,
            now,
            fleet,
            adoption,
            services,
            watch,
            ruby_log: RubyLog::new(link.as_ref(), &log),
            log,
        });
        acting.certificates = certificates;
        let mut supervisor = Supervisor::of(acting, clock, signals)?;
        supervisor.certifying = certifying.unwrap_or_default();
        supervisor.started_at = time(hot_restart_state.started_at);
        let (number, changed_at) = hot_restart_state.restart_changed_at;
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
