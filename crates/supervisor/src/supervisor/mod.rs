//! The loop: waits for events, passes them to the machine, and performs its actions. Every step may fail; the error
//! becomes an event, and never ends the loop.

mod acting;
mod certifying;
mod hearing;
mod hosting;
mod reexecution;
mod services;
mod watching;

use crate::adoption::Adoption;
use crate::asks::Asks;
use crate::background::Background;
use crate::certificates::Certificates;
use crate::children::Child;
use crate::fleet::Fleet;
use crate::hot_restart_state::Arrival;
use crate::insistence::Insistence;
use crate::log::Log;
use crate::machine::{Action, Command, Event, FirstSpawner, Machine, Moment};
use crate::restart_signals::RestartSignals;
use crate::running_time::RunningTime;
use crate::signals::Signals;
use crate::standard_streams::{Reopened, StandardStreams};
use crate::start::Start;
use crate::strangers::Strangers;
use certifying::Certifying;
use reexecution::{Host, Leaving};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use services::Services;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::time::{Duration, SystemTime};
use watching::Watch;

pub use services::RubyLog;

/// Longest time between two checks of state without notifications.
const TICK: Duration = Duration::from_secs(1);

/// Longest time between two checks of the last responses of the control server.
const LAST_ANSWERS: Duration = Duration::from_millis(50);

/// Most turns in a row that may panic, and the pause after each.
const MOST_DEFECTS: u32 = 10;
const AFTER_DEFECT: Duration = Duration::from_millis(100);

/// Time limit for the last lines of the log.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The end of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit status of the process.
    pub status: i32,
    /// The reason, if the server has never served.
    pub defeat: Option<String>,
    /// True if the process has to end as by TERM.
    pub by_term: bool,
}

/// A running server.
pub struct Supervisor {
    machine: Machine,
    now: Moment,
    clock: RunningTime,
    fleet: Fleet,
    adoption: Adoption,
    certificates: Certificates,
    certifying: Certifying,
    strangers: Strangers,
    streams: StandardStreams,
    reopenings: Background<Reopened>,
    services: Services,
    watch: Watch,
    insistence: Insistence,
    restart_signals: RestartSignals,
    /// True if certificates must be reloaded as soon as there is a spawner.
    reload_waits: bool,
    log: Log,
    ruby_log: RubyLog,
    signals: Signals,
    asks: Asks,
    started_at: SystemTime,
    /// Events in the queue of the machine.
    events: VecDeque<Event>,
    ended: Option<Ended>,
    /// The number of the last change of the restart, and its time.
    restart_changed_at: (u64, SystemTime),
    /// The last signal or command that has asked for the end.
    asked_by: Option<&'static str>,
    /// The program with the application that contains this supervisor.
    host: Option<Host>,
    /// Set when another program is about to replace this one.
    leaving: Option<Leaving>,
    /// The state from the previous program, while it may have to come back.
    arrival: Option<Arrival>,
    /// The first event after another program has run.
    welcomed: Option<Event>,
}

/// The parts that differ between a starting server and a continued one.
struct Parts {
    machine: Machine,
    now: Moment,
    clock: RunningTime,
    fleet: Fleet,
    adoption: Adoption,
    services: Services,
    watch: Watch,
    ruby_log: RubyLog,
    log: Log,
    signals: Signals,
}

impl Supervisor {
    /// Takes over the state from the command. `signals`: the signals of this process.
    ///
    /// # Errors
    /// If a file cannot be written or descriptors are short: a sentence.
    pub fn new(start: Start, signals: Signals) -> Result<Supervisor, String> {
        let text = |error: io::Error| error.to_string();
        let settings = &start.configuration.settings;
        let log = Log::new(&settings.log);
        let ruby_log = RubyLog::new(Some(&start.link), &log);
        let mut clock = RunningTime::begin();
        let now = clock.look(Duration::ZERO);
        let machine = Machine::new(settings.limits.clone(), FirstSpawner { started: now });
        let mut fleet = Fleet::new(start.memory).map_err(text)?;
        if start.resident.is_none() {
            Strangers::adopt();
        }
        fleet
            .children
            .add(Child::first(start.first, start.link, start.resident));
        let watch = Watch::new(&start.configuration, now);
        let mut adoption = Adoption::begin(start.configuration)?;
        let mut services = Services::open(adoption.current()).map_err(text)?;
        services.store(adoption.current_mut());
        let mut supervisor = Supervisor::of(Parts {
            machine,
            now,
            clock,
            fleet,
            adoption,
            services,
            watch,
            ruby_log,
            log,
            signals,
        })?;
        supervisor.host = start.caller.map(Host::new);
        Ok(supervisor)
    }

    fn of(parts: Parts) -> Result<Supervisor, String> {
        let text = |error: io::Error| error.to_string();
        raise_descriptor_limit();
        Ok(Supervisor {
            machine: parts.machine,
            now: parts.now,
            clock: parts.clock,
            fleet: parts.fleet,
            adoption: parts.adoption,
            certificates: Certificates::default(),
            certifying: Certifying::default(),
            strangers: Strangers::default(),
            streams: StandardStreams::default(),
            reopenings: Background::new("fairlead logs").map_err(text)?,
            services: parts.services,
            watch: parts.watch,
            insistence: Insistence::default(),
            restart_signals: RestartSignals::default(),
            reload_waits: false,
            log: parts.log,
            ruby_log: parts.ruby_log,
            signals: parts.signals,
            asks: Asks::new().map_err(text)?,
            started_at: SystemTime::now(),
            events: VecDeque::new(),
            ended: None,
            restart_changed_at: (0, SystemTime::now()),
            asked_by: None,
            host: None,
            leaving: None,
            arrival: None,
            welcomed: None,
        })
    }

    /// Makes requests to the server from other threads.
    pub fn asks(&self) -> Asks {
        self.asks.clone()
    }

    /// Runs until everything has ended. A panic in one turn does not end the server, unless every further turn panics,
    /// too.
    pub fn run(&mut self) -> Ended {
        let mut defects = 0;
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.turn())) {
                Ok(Some(ended)) => return ended,
                Ok(None) => defects = 0,
                Err(defect) if defects == MOST_DEFECTS => resume_unwind(defect),
                Err(_) => {
                    defects += 1;
                    self.log
                        .error("defect", "[BUG] the supervisor panicked, see above; it continues");
                    std::thread::sleep(AFTER_DEFECT);
                }
            }
        }
    }

    /// Logs the reason why the server has never served.
    pub fn tell_of_defeat(&self, reason: &str) {
        let text = format!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
        self.log.error("start_failed", text);
        self.log.flush(LAST_LINES);
    }

    /// Waits for events and handles them. Returns the end of the server.
    pub fn turn(&mut self) -> Option<Ended> {
        let pause = self.pause();
        self.wait(pause);
        self.now = self.clock.look(pause);
        self.hear_requests();
        self.hear_processes();
        self.hear_ends();
        self.hear_background();
        self.serve();
        self.tend();
        self.happen(Event::Tick);
        self.leave_host();
        self.leave_if_idle();
        self.finish()
    }

    /// Time until the next deadline.
    fn pause(&self) -> Duration {
        let machine = self
            .machine
            .deadline()
            .map(|deadline| deadline.saturating_sub(self.now));
        let leaving = self.leaving.as_ref().map(|_| reexecution::PAUSE);
        let restart = self.restart_signals.pause(self.now);
        let pauses = [machine, self.services.pause(), self.watch.pause(), restart, leaving];
        pauses.into_iter().flatten().fold(TICK, Duration::min)
    }

    fn wait(&self, pause: Duration) {
        let own = [self.asks.as_fd(), self.reopenings.as_fd(), self.adoption.descriptor()];
        let signals = [self.signals.as_fd()];
        let all = self
            .fleet
            .descriptors()
            .chain(own)
            .chain(signals)
            .chain(self.services.descriptors());
        let all: Vec<BorrowedFd<'_>> = all.collect();
        let mut polled: Vec<PollFd<'_>> = all
            .iter()
            .map(|descriptor| PollFd::new(descriptor, PollFlags::IN))
            .collect();
        let timeout = Timespec {
            tv_sec: pause.as_secs() as i64,
            tv_nsec: pause.subsec_nanos().into(),
        };
        if poll(&mut polled, Some(&timeout)).is_err_and(|error| error != rustix::io::Errno::INTR) {
            std::thread::sleep(Duration::from_millis(10)); // memory is short
        }
    }

    /// Passes an event to the machine, and performs its actions, including their consequences.
    fn happen(&mut self, event: Event) {
        self.events.push_back(event);
        while let Some(event) = self.events.pop_front() {
            for action in self.machine.step(self.now, event) {
                self.act(action);
            }
        }
    }

    /// Makes a request to the machine. An error is the reason of a refusal.
    fn ask(&mut self, command: Command) -> Result<(), String> {
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

    fn finish(&mut self) -> Option<Ended> {
        let ended = self.ended.take()?;
        self.services.close();
        while !self.services.are_closed() {
            self.wait(LAST_ANSWERS);
            self.serve();
        }
        self.adoption.end();
        let ruby_says = self.adoption.current().settings.log.by_ruby; // the last process then logs this
        if ended.defeat.is_none() && !ruby_says {
            self.log.info("stopped", "fairlead stopped");
        }
        self.services.ended();
        self.log.flush(LAST_LINES);
        Some(ended)
    }
}

/// Workers and connections take descriptors; processes that this one starts inherit the limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}
