//! Plans the replacement of this program by another one. [`reexecution`](super::reexecution) performs it.

use crate::children::{Child, Children};
use crate::hot_restart_state::Arrival;
use crate::machine::{FirstSpawner, Generation, ProcessId};
use crate::start::Caller;
use std::time::{Duration, Instant};

/// Time limit for open requests to the control server.
const COURTESY: Duration = Duration::from_secs(1);

/// Pause between two checks of pending work.
const PAUSE: Duration = Duration::from_millis(20);

/// The program that is about to replace this one, and the programs around it.
#[derive(Default)]
pub(super) struct Departure {
    /// The program with the application that contains this supervisor.
    host: Option<Host>,
    /// Set when another program is about to replace this one.
    leaving: Option<Leaving>,
    /// The state from the previous program, while it may have to come back.
    arrival: Option<Arrival>,
}

/// A planned replacement of this program.
#[derive(Debug)]
struct Leaving {
    since: Instant,
    to: Destination,
}

/// The next program.
#[derive(Debug)]
pub(super) enum Destination {
    /// The program of this spawner's version.
    Other(ProcessId),
    /// The previous program.
    Former,
    /// A program of the same version, without the application.
    Own,
}

impl Leaving {
    fn to(to: Destination) -> Leaving {
        let since = Instant::now();
        Leaving { since, to }
    }
}

/// A program with an application that supervises its own server, with the old code and its threads.
struct Host {
    caller: Caller,
    /// The last generation that a separate process has loaded.
    loaded: Generation,
    /// True if such a generation serves, or has served.
    is_old: bool,
}

impl Departure {
    /// `caller`: the program with the application that contains this supervisor.
    pub(super) fn from(caller: Option<Caller>) -> Departure {
        let host = caller.map(|caller| Host {
            caller,
            loaded: FirstSpawner::GENERATION,
            is_old: false,
        });
        Departure {
            host,
            ..Departure::default()
        }
    }

    /// Time until the next check of pending work.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.leaving.as_ref().map(|_| PAUSE)
    }

    // --- the program with the application

    pub(super) fn has_host(&self) -> bool {
        self.host.is_some()
    }

    pub(super) fn caller(&self) -> Option<&Caller> {
        self.host.as_ref().map(|host| &host.caller)
    }

    /// The command runs again for this generation.
    pub(super) fn loads(&mut self, generation: Generation) {
        if let Some(host) = &mut self.host {
            host.loaded = generation;
        }
    }

    /// Plans the change to a separate program, once reloaded code serves: otherwise the threads of the old code would
    /// continue here, and keep its memory and sockets. The kernel ends processes that this one has forked when it is
    /// replaced, so none of them may be left.
    pub(super) fn leave_host(&mut self, current: Generation, children: &Children) {
        let Some(host) = &mut self.host else { return };
        host.is_old |= host.loaded == current && current != FirstSpawner::GENERATION;
        let first = |child: &Child| child.generation == FirstSpawner::GENERATION;
        if host.is_old && !children.iter().any(first) {
            self.leaving.get_or_insert(Leaving::to(Destination::Own));
        }
    }

    /// The separate program could not replace this one. This one stays until the next restart.
    pub(super) fn stay_in_host(&mut self) {
        if let Some(host) = &mut self.host {
            (host.is_old, host.loaded) = (false, FirstSpawner::GENERATION);
        }
    }

    // --- another version

    /// Plans the change to the program of another version.
    pub(super) fn plan_other(&mut self, spawner: ProcessId) {
        self.leaving = Some(Leaving::to(Destination::Other(spawner)));
    }

    /// Plans the return to the previous program. A second attempt does not begin the courtesy anew.
    pub(super) fn plan_return(&mut self) {
        let is_planned = |leaving: &Leaving| matches!(leaving.to, Destination::Former);
        if !self.leaving.as_ref().is_some_and(is_planned) {
            self.leaving = Some(Leaving::to(Destination::Former));
        }
    }

    /// Stores the state for a return.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        self.arrival = Some(arrival);
    }

    pub(super) fn arrival(&self) -> Option<&Arrival> {
        self.arrival.as_ref()
    }

    /// The previous program does not come back.
    pub(super) fn forget_arrival(&mut self) {
        self.arrival = None;
    }

    // --- all

    /// No other program replaces this one.
    pub(super) fn forget(&mut self) {
        (self.leaving, self.arrival) = (None, None);
    }

    /// Returns true if another program is about to replace this one.
    pub(super) fn is_planned(&self) -> bool {
        self.leaving.is_some()
    }

    /// The program that has to replace this one now. `serves`: true if the server is ready, and no restart runs.
    /// `is_idle`: true if no pending work would be lost. The interfaces get a moment to send their last responses.
    pub(super) fn due(&mut self, serves: bool, is_idle: bool, are_services_idle: bool) -> Option<Destination> {
        let is_late = |leaving: &Leaving| matches!(leaving.to, Destination::Own) && !serves;
        if self.leaving.as_ref().is_some_and(is_late) {
            self.leaving = None; // it is planned again after the restart
        }
        let leaving = self.leaving.take_if(|leaving| {
            let polite = are_services_idle || leaving.since.elapsed() > COURTESY;
            is_idle && polite
        });
        leaving.map(|leaving| leaving.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_attempt_to_return_does_not_begin_the_courtesy_anew() {
        let mut departure = Departure::default();
        departure.plan_return();
        departure.leaving.as_mut().expect("it is planned").since -= 2 * COURTESY;
        departure.plan_return();
        assert!(matches!(departure.due(true, true, false), Some(Destination::Former)));
    }
}
