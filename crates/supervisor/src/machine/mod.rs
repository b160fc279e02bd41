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
//!           Settling -> Promoting -> Retiring -> Retiring -> Ending
//!           Settling -> Retiring
//!           Serving -> Retiring -> Killed
//!           Forking -> Killed
//!
//! Recycling: Idle -> Starting -> Waiting -> Idle
//!           Starting -> Idle
//!
//! Restart:  Loading -> Adopting -> Replacing -> Done
//!           Loading -> Replacing
//!           Preparing -> Promoting -> Replacing
//!           Loading -> RollingBack -> Failed
//!           Loading -> Reexecuting -> RollingBack -> Returning -> Returning -> Failed
//!           Reexecuting -> Failed
//!           Promoting -> RollingBack
//!           Adopting -> RollingBack
//!           Replacing -> RollingBack
//!           Loading -> Failed
//!           Preparing -> Failed
//!           Promoting -> Failed
//!           Adopting -> Failed
//!           Replacing -> Failed
//! ```
//!
//! A restart that replaces workers starts a new one, waits until it has settled, and drains the old one of the same
//! index. Before [`Action::Commit`] the old configuration keeps all of its resources. The recycling of a single worker
//! does the same within a generation. The next worker is replaced once the old one has ended. With `long_drain`, the old
//! one is `Retiring` instead, and several of them may do that at a time ([`workforce`]).
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
mod losses;
pub mod notice;
mod overdue;
mod processes;
mod rebase;
mod recycling;
mod replacement;
mod restart_state;
mod restarts;
mod rollback;
pub mod saved;
mod server;
mod spawner;
mod spawners;
mod state;
mod status;
mod step;
mod timers;
mod worker;
mod workforce;

pub use action::{Action, SpawnKind};
pub use event::{Command, End, Event, RecycleReason, Refork, RestartKind, StopReason};
pub use notice::Notice;
pub use server::Server;
pub use status::{RestartStatus, RestartView, ServerStatus, SpawnerView, WorkerView};
pub use timers::Timer;

use crate::settings::Limits;
use back_off::{Attempts, Hold};
use end::Outcome;
use processes::Processes;
use recycling::Recycling;
use restarts::Restarts;
use serde::{Deserialize, Serialize};
use spawner::{Origin, Part, Spawner, SpawnerState};
use state::Lifecycle;
use std::time::Duration;
use step::Step;
use workforce::Workforce;

/// Running time since the start of the supervisor: pauses of the machine do not count.
pub type Moment = Duration;

/// The number of a generation: one loading of the application, 1 for the first. Log lines and statistics show it. The
/// replacement of a lost spawner has the same number and another [`ProcessId`].
pub type Generation = u32;

/// Names a spawner or a worker within the supervisor; never used twice.
pub type ProcessId = u32;

/// The maximum number of workers, and of slots.
pub const SLOTS: usize = 64;

/// The maximum number of workers during an automatic refork. Two may then retire, with long requests, while their substitutes serve; without
/// a slot for another one, nobody would retire.
pub const MOST_REFORKED: usize = SLOTS - 2;

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

/// The state of the supervisor. Events call rules, rules call parts, and parts add actions to the step; nothing calls
/// back.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    server: Server,
    outcome: Outcome,
    restarts: Restarts,
    workforce: Workforce,
    without: Option<Timer>,
}

/// The serving generation.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
struct Current {
    generation: Generation,
    seat: Seat,
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
        let current = Current {
            generation,
            seat: Seat::Taken(id),
        };
        Machine {
            server: Server::Starting,
            outcome: Outcome::default(),
            restarts: Restarts::none(generation),
            workforce: Workforce {
                wanted: limits.workers,
                limits,
                current,
                borrowed: None,
                processes: Processes::new(spawner),
                spawner_attempts: Attempts::default(),
                hold: Hold::default(),
                recycling: Recycling::default(),
                step: Step::at(first.started),
            },
            without: None,
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
        self.workforce.step.reach(now);
        match event {
            Event::Tick => self.expire(),
            event => self.happen(event),
        }
        self.tend();
        self.workforce.step.take()
    }

    /// Moves the current state towards the wanted one.
    fn tend(&mut self) {
        if self.server.ends() {
            return self.tend_end();
        }
        let (restarts, workforce) = (&mut self.restarts, &mut self.workforce);
        if restarts.replacing().is_none() {
            workforce.vacate_seat(); // a restart that replaces workers needs no other spawner
        }
        workforce.tend_recycling(restarts.are_over());
        workforce.replace_lost_spawner();
        workforce.end_surplus(restarts.incoming(workforce.current.generation), restarts.preparing());
        workforce.start_missing(restarts.source(workforce));
        restarts.advance(workforce, self.server);
        self.announce();
    }

    /// The server is complete for the first time.
    fn announce(&mut self) {
        let workforce = &mut self.workforce;
        if self.server != Server::Completing || !workforce.complete() {
            return;
        }
        self.server.enter(Server::Serving);
        workforce.step.push(Action::Announce);
        if let Seat::Taken(spawner) = workforce.current.seat {
            workforce.step.push(Action::TellBooted(spawner));
        }
    }
}
