//! The decisions of the supervisor: from a state, an event and the time to the next state and the actions to take.
//!
//! No I/O, no clock, no threads. [`Machine::step`] is a pure function of the machine, the time and the event. Each
//! waiting state has a [`Timer`] and a successor, so no state waits for ever. A process may end in each of its states.
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
//! A restart that replaces workers starts a new one, waits until it has settled, and drains the old one of the same
//! index. Before [`Action::Commit`] the old configuration keeps all of its resources.
//!
//! Code of another version of Fairlead is supervised by the program of that version, which replaces this one
//! (`Reexecuting`) and continues with its own machine ([`saved`]). Until the restart has succeeded it only borrows the
//! serving generation: it forks nothing for it, and returns to this program if the restart fails (`Returning`).

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

/// The number of a generation: one loading of the application, 1 for the first. Log lines and statistics show it. The
/// replacement of a lost spawner has the same number and another [`ProcessId`].
pub type Generation = u32;

/// Names a spawner or a worker within the supervisor; never used twice.
pub type ProcessId = u32;

/// The maximum number of workers, and of slots.
pub const SLOTS: usize = 64;

/// Time limit for a process to end once its requests have been aborted, or after it was killed.
pub const EXIT_GRACE: Duration = Duration::from_secs(5);

/// Time limit for a faulty worker to end before it is killed.
pub const REPLACEMENT_GRACE: Duration = Duration::from_secs(2);

/// Time limit for the program of another version to replace this one.
pub const REEXECUTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before the next attempt to return to the previous program.
pub const RETURN_PAUSE: Duration = Duration::from_secs(1);

/// Time limit for the loop to adopt a configuration.
pub const ADOPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The spawner that the command has forked before the supervisor started.
#[derive(Clone, Copy, Debug)]
pub struct FirstSpawner {
    /// The time of the fork.
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
    /// Configured number of workers; 0 for a sole process.
    wanted: usize,
    current: Current,
    spawners: BTreeMap<ProcessId, Spawner>,
    workers: BTreeMap<ProcessId, Worker>,
    restart: Option<Restart>,
    /// Another version started the processes up to this generation, and gets them back if the restart fails.
    borrowed: Option<Generation>,
    /// Counts the visible changes of the restart.
    restart_changes: u64,
    /// The next restart, which begins when the running one is over.
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

/// The serving generation.
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
    /// It was lost; another one is started at that time.
    Vacant { until: Moment },
    /// It was lost, and a restart brings in another generation.
    Superseded,
}

/// The automatic reforks of a generation: one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
enum Warmth {
    /// It has not happened yet.
    Cold,
    /// It has been tried, or the generation comes from one.
    Warm,
}

impl Machine {
    /// A starting server. Its first spawner has been forked already.
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

    /// A machine without one of the deadlines, to test the tests.
    #[doc(hidden)]
    #[must_use]
    pub fn without(mut self, timer: Timer) -> Machine {
        self.without = Some(timer);
        self
    }

    /// Takes an event and the time, and returns the actions to take.
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

    /// Moves the current state towards the wanted one.
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

    /// Number of indexes: a sole process has one, too.
    fn places(&self) -> usize {
        self.wanted.max(1)
    }

    /// The time to kill a process that is asked to end now.
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
