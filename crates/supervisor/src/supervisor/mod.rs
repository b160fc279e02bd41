//! The loop: waits for events, passes them to the machine, and performs its actions. Every step may fail; the error
//! becomes an event, and never ends the loop.

mod acting;
mod certifying;
mod departure;
mod hearing;
mod hosting;
mod pausing;
mod recycling;
mod reexecution;
mod reforking;
mod reloading;
mod requests;
mod restart_counts;
mod services;
mod watching;

use crate::adoption::Adoption;
use crate::asks::Asks;
use crate::children::Child;
use crate::fleet::Fleet;
use crate::log::Log;
use crate::machine::{Event, FirstSpawner, Machine};
use crate::memory_use::MemoryUse;
use crate::running_time::RunningTime;
use crate::signals::Signals;
use crate::start::Start;
use crate::strangers::Strangers;
use acting::{Acting, Parts};
use certifying::Certifying;
use departure::Departure;
use requests::Requests;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use services::Services;
use std::io;
use std::os::fd::BorrowedFd;
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
    acting: Acting,
    requests: Requests,
    certifying: Certifying,
    strangers: Strangers,
    memory: MemoryUse,
    clock: RunningTime,
    started_at: SystemTime,
    /// The number of the last change of the restart, and its time.
    restart_changed_at: (u64, SystemTime),
    /// The first event after another program has run.
    welcomed: Option<Event>,
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
        services.publish(adoption.current(), fleet.memory().bus(), &log);
        let acting = Acting::new(Parts {
            machine,
            now,
            fleet,
            adoption,
            services,
            watch,
            ruby_log,
            log,
        });
        let mut supervisor = Supervisor::of(acting, clock, signals)?;
        supervisor.acting.departure = Departure::from(start.caller);
        Ok(supervisor)
    }

    fn of(acting: Acting, clock: RunningTime, signals: Signals) -> Result<Supervisor, String> {
        raise_descriptor_limit();
        Ok(Supervisor {
            acting,
            requests: Requests::new(signals).map_err(|error| error.to_string())?,
            certifying: Certifying::default(),
            strangers: Strangers::default(),
            memory: MemoryUse::default(),
            clock,
            started_at: SystemTime::now(),
            restart_changed_at: (0, SystemTime::now()),
            welcomed: None,
        })
    }

    /// Makes requests to the server from other threads.
    pub fn asks(&self) -> Asks {
        self.requests.asks()
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
                    self.acting
                        .log
                        .error("defect", "[BUG] the supervisor panicked, see above; it continues");
                    std::thread::sleep(AFTER_DEFECT);
                }
            }
        }
    }

    /// Logs the reason why the server has never served.
    pub fn tell_of_defeat(&self, reason: &str) {
        let text = format!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
        self.acting.log.error("start_failed", text);
        self.acting.log.flush(LAST_LINES);
    }

    /// Waits for events and handles them. Returns the end of the server.
    pub fn turn(&mut self) -> Option<Ended> {
        let pause = self.pause();
        self.wait(pause);
        self.acting.now = self.clock.look(pause);
        self.requests.hear(&mut self.acting);
        self.hear_processes();
        self.hear_ends();
        self.hear_background();
        self.serve();
        self.tend();
        if self.clock.head_start().is_none() {
            self.acting.happen(Event::Tick);
        }
        self.acting.adopt_services();
        self.acting.leave_host();
        self.leave_if_idle();
        self.finish()
    }

    /// Time until the next deadline.
    fn pause(&self) -> Duration {
        let pauses = [self.acting.pause(), self.requests.pause(self.acting.now)];
        let next = pauses.into_iter().flatten().fold(TICK, Duration::min);
        next.max(self.clock.head_start().unwrap_or_default())
    }

    fn wait(&self, pause: Duration) {
        let all: Vec<BorrowedFd<'_>> = self.acting.descriptors().chain(self.requests.descriptors()).collect();
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

    fn finish(&mut self) -> Option<Ended> {
        let ended = self.acting.ended.take()?;
        self.acting.services.close();
        while !self.acting.services.are_closed() {
            self.wait(LAST_ANSWERS);
            self.serve();
        }
        self.acting.adoption.end();
        let ruby_says = self.acting.adoption.current().settings.log.by_ruby; // the last process then logs this
        if ended.defeat.is_none() && !ruby_says {
            self.acting.log.info("stopped", "fairlead stopped");
        }
        self.acting.services.ended();
        self.acting.log.flush(LAST_LINES);
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
