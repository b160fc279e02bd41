//! The decisions of the supervisor: from a state, an event and the time to the next state and the actions to take.
//!
//! No I/O, no clock, no threads. [`Machine::step`] is a pure function of the machine, the time and the event. Each state that waits
//! for something has a [`Timer`] and a successor, so nothing waits for ever. A process may end in each of its states.
//!
//! ```text
//! Server:   Starting -> Completing -> Serving -> Draining -> Stopping -> Ended
//!           Starting -> Draining -> Ended
//!           Completing -> Draining
//!           Starting -> Stopping
//!           Completing -> Stopping
//!           Serving -> Stopping
//!
//! Spawner:  Starting -> Loading -> Loading -> Ready -> Ending -> Ending -> Killed -> Killed
//!           Starting -> Ending
//!           Starting -> Killed
//!           Loading -> Ending
//!           Loading -> Killed
//!           Ready -> Killed
//!
//! Worker:   Forking -> Booting -> Settling -> Serving -> Promoting -> Ending -> Ending -> Killed -> Killed
//!           Settling -> Promoting -> Killed
//!           Forking -> Ending
//!           Booting -> Ending
//!           Settling -> Ending
//!           Serving -> Ending
//!           Forking -> Killed
//!
//! Restart:  Loading -> Adopting -> Replacing -> Done
//!           Loading -> Replacing
//!           Promoting -> Replacing
//!           Loading -> RollingBack -> Failed
//!           Loading -> Reexecuting -> RollingBack -> Returning -> Returning -> Failed
//!           Reexecuting -> Failed
//!           Promoting -> RollingBack
//!           Adopting -> RollingBack
//!           Replacing -> RollingBack
//!           Loading -> Failed
//!           Promoting -> Failed
//!           Adopting -> Failed
//!           Replacing -> Failed
//! ```
//!
//! A restart that replaces workers starts a new one, waits until it has settled, and drains the old one of the same index. Before
//! [`Action::Commit`] nothing of the old configuration is given up.
//!
//! Code of another version of Fairlead is supervised by the program of that version, which replaces this one (`Reexecuting`) and goes
//! on with a machine of its own ([`saved`]). Until the restart has succeeded it only borrows the generation that serves: it forks
//! nothing for it, and has this program back if the restart fails (`Returning`).

pub mod action;
mod back_off;
mod course;
mod end;
pub mod event;
mod guest;
mod happen;

pub mod notice;
mod rebase;
mod restart;
mod restarts;
pub mod saved;
mod server;
mod spawner;
mod spawners;
mod state;
mod status;
mod timers;
mod worker;
mod workforce;

pub use action::{Action, SpawnKind};
pub use event::{Command, End, Event, RestartKind, StopReason};
pub use notice::Notice;
pub use server::Server;
pub use status::{RestartStatus, RestartView, ServerStatus, SpawnerView, WorkerView};
pub use timers::Timer;

use crate::settings::Limits;
use back_off::{Attempts, Hold};
use restart::Restart;
use serde::{Deserialize, Serialize};
use spawner::{Origin, Part, Spawner, SpawnerState};
use state::Lifecycle;
use std::collections::BTreeMap;
use std::time::Duration;
use worker::Worker;

/// Running time since the start of the supervisor: pauses of the machine do not count.
pub type Moment = Duration;

/// The number of a generation: one loading of the application, 1 for the first. Log lines and statistics show it. A spawner that
/// replaces a lost one has the same number and another [`ProcessId`].
pub type Generation = u32;

/// Names a spawner or a worker within the supervisor; never used twice.
pub type ProcessId = u32;

/// The maximum number of workers, and of slots.
pub const SLOTS: usize = 64;

/// How long a process may take to end once its requests have been aborted, or after it was killed.
pub const EXIT_GRACE: Duration = Duration::from_secs(5);

/// How long a worker that does not work may take to end before it is killed.
pub const REPLACEMENT_GRACE: Duration = Duration::from_secs(2);

/// How long the program of another version may take to replace this one.
pub const REEXECUTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before the next attempt to go back to the former program.
pub const RETURN_PAUSE: Duration = Duration::from_secs(1);

/// How long the loop may take to adopt a configuration.
pub const ADOPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The spawner that the command has forked before there was a supervisor.
#[derive(Clone, Copy, Debug)]
pub struct FirstSpawner {
    /// When it was forked.
    pub started: Moment,
}

impl FirstSpawner {
    /// Its name.
    pub const ID: ProcessId = 1;
    /// Its generation.
    pub const GENERATION: Generation = 1;
}

/// The state of the supervisor.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    server: Server,
    limits: Limits,
    /// How many workers there are to be; 0 for a sole process.
    wanted: usize,
    current: Current,
    spawners: BTreeMap<ProcessId, Spawner>,
    workers: BTreeMap<ProcessId, Worker>,
    restart: Option<Restart>,
    /// Processes up to this generation were started by another version, which gets them back if the restart fails.
    borrowed: Option<Generation>,
    /// Counts the changes of the restart that people see.
    restart_changes: u64,
    /// The restart to begin when the one that runs is over.
    pending: Option<RestartKind>,
    spawner_attempts: Attempts,
    hold: Hold,
    last_process: ProcessId,
    last_generation: Generation,
    ended_by: Option<StopReason>,
    status: i32,
    defeat: Option<String>,
    without: Option<Timer>,
    now: Moment,
    #[serde(skip)]
    actions: Vec<Action>,
}

/// The generation that serves.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
struct Current {
    generation: Generation,
    seat: Seat,
    warmth: Warmth,
}

/// The spawner of the current generation.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
enum Seat {
    /// It runs.
    Taken(ProcessId),
    /// It was lost; another one is started then.
    Vacant { until: Moment },
    /// It was lost, and a restart brings in another generation.
    Superseded,
}

/// The reforks of a generation that happen by themselves: one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
enum Warmth {
    /// It is still to come.
    Cold,
    /// It has been tried, or the generation comes from one.
    Warm,
}

impl Machine {
    /// A server that starts. Its first spawner has been forked already.
    pub fn new(limits: Limits, first: FirstSpawner) -> Machine {
        let (id, generation) = (FirstSpawner::ID, FirstSpawner::GENERATION);
        let part = if limits.workers == 0 {
            Part::Serves(None)
        } else {
            Part::Forks
        };
        let state = SpawnerState::Loading {
            since: first.started,
            slow: false,
        };
        let spawner = Spawner {
            id,
            generation,
            origin: Origin::First,
            part,
            state,
        };
        Machine {
            server: Server::Starting,
            wanted: limits.workers,
            limits,
            current: Current {
                generation,
                seat: Seat::Taken(id),
                warmth: Warmth::Cold,
            },
            spawners: BTreeMap::from([(id, spawner)]),
            workers: BTreeMap::new(),
            restart: None,
            borrowed: None,
            restart_changes: 0,
            pending: None,
            spawner_attempts: Attempts::default(),
            hold: Hold::default(),
            last_process: id,
            last_generation: generation,
            ended_by: None,
            status: 0,
            defeat: None,
            without: None,
            now: first.started,
            actions: Vec::new(),
        }
    }

    /// A machine in which one deadline is missing: a test of the tests.
    #[doc(hidden)]
    #[must_use]
    pub fn without(mut self, timer: Timer) -> Machine {
        self.without = Some(timer);
        self
    }

    /// Takes note of an event and of the time, and returns what is to be done.
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Action> {
        if self.server == Server::Ended {
            return Vec::new();
        }
        self.now = now.max(self.now);
        match event {
            Event::Tick => self.expire(),
            event => self.happen(event),
        }
        self.tend();
        std::mem::take(&mut self.actions)
    }

    /// Brings about what ought to be, from what there is.
    fn tend(&mut self) {
        if self.server.ends() {
            return self.tend_end();
        }
        self.vacate_seat();
        self.replace_lost_spawner();
        self.end_surplus();
        self.start_missing();
        self.advance();
        self.announce();
    }

    fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn log(&mut self, notice: Notice) {
        self.actions.push(Action::Log(notice));
    }

    fn next_process(&mut self) -> ProcessId {
        self.last_process += 1;
        self.last_process
    }

    /// How many indexes there are: a sole process has one, too.
    fn places(&self) -> usize {
        self.wanted.max(1)
    }

    /// When a process that is asked to end now is to be killed.
    fn deadline_of_end(&self) -> Moment {
        self.now + self.limits.shutdown_timeout + EXIT_GRACE
    }

    /// The server is complete for the first time.
    fn announce(&mut self) {
        if self.server != Server::Completing || !self.complete() {
            return;
        }
        self.server.enter(Server::Serving);
        self.push(Action::Announce);
        if let Seat::Taken(spawner) = self.current.seat {
            self.push(Action::TellBooted(spawner));
        }
    }
}
