//! Begins reforks: once workers have served `refork_after` requests, one of them becomes the spawner, and its copies share the memory of
//! all that the requests have loaded and cached. While that saves memory, it is done again, with growing intervals.
//!
//! ```text
//!   Warming ─▶ Examining ─▶ Measuring ─▶ Asked ─▶ Proving ─▶ Comparing ─▶ Warming
//!      ▲         │   │          │          │                    │
//!      └─────────┴───│──────────┘          │                    │
//!                    └───────▶ Over ◀──────┴────────────────────┘
//! ```
//!
//! A refork that fails leads from Asked back to Warming.

use crate::background::Background;
use crate::control::ReforkEffect;
use crate::fleet::Fleet;
use crate::machine::{Event, Generation, Machine, Moment, ProcessId, RestartKind, RestartStatus, MOST_REFORKED};
use crate::process_memory;
use fairlead_engine::{Scoreboard, Slot};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The next refork comes after so many times the requests of the last one, also if that has failed.
const GROWTH: u64 = 8;

/// A refork that saves less than this part of the memory is the last one.
const LEAST_SAVED: u64 = 32;

/// A worker has this time to examine itself. It looks for some seconds, to leave out what does not stay.
const EXAMINATION: Duration = Duration::from_secs(30);

/// Decides about automatic reforks.
pub(super) struct Reforker {
    /// Requests of the busiest worker that begin the first refork; 0 for never.
    after: u64,
    generation: Generation,
    /// The last generation with workers that share a connection: the end of one would close it for all.
    shares_connections: Option<Generation>,
    state: State,
    effect: ReforkEffect,
    /// Reforks of the current code that have failed.
    failures: u32,
    memory: Option<Background<Reading>>,
}

/// The memory of all processes. Two readings are compared only if there are as many processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    generation: Generation,
    processes: usize,
    /// Nothing if a process could not be read.
    bytes: Option<u64>,
}

/// The progress with one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Workers serve, up to this number of requests.
    Warming { until: u64 },
    /// This worker looks for threads and connections that copies must not have, while it serves.
    Examining {
        until: u64,
        worker: ProcessId,
        give_up: Moment,
    },
    /// The memory before the refork is read. This worker has found nothing.
    Measuring { until: u64, worker: ProcessId },
    /// The refork was asked for.
    Asked { memory: Reading },
    /// The copies serve as many requests as before the first refork.
    Proving { before: Reading },
    /// Their memory is read.
    Comparing { before: Reading },
    /// There is no further refork of this code.
    Over,
}

impl Reforker {
    /// `after`: the option `refork_after`.
    pub(super) fn new(after: u64) -> Reforker {
        Reforker {
            after,
            generation: 0,
            shares_connections: None,
            state: State::Over,
            effect: ReforkEffect::default(),
            failures: 0,
            memory: None,
        }
    }

    /// Uses another number of requests from the next generation on.
    pub(super) fn adopt(&mut self, after: u64) {
        self.after = after;
    }

    /// The reforks of the current code that were automatic, and the memory that the last one has saved.
    pub(super) fn effect(&self) -> ReforkEffect {
        self.effect
    }

    /// The spawner of the generation has found connections that all workers share.
    pub(super) fn shares_connections(&mut self, generation: Generation) {
        self.shares_connections = Some(generation);
    }

    /// The worker has examined itself. Returns true if it was asked to, and has found something: there is no refork of this code.
    pub(super) fn examined(&mut self, worker: ProcessId, has_problem: bool, fleet: &Fleet) -> bool {
        let until = match self.state {
            State::Examining {
                until, worker: asked, ..
            } if asked == worker => until,
            _ => return false,
        };
        self.state = match has_problem {
            true => State::Over,
            false => self.read(fleet, State::Measuring { until, worker }, State::Over),
        };
        has_problem
    }

    /// Takes the next step. Returns [`Event::Warm`] when a refork is due; an error if there will be none of this code.
    pub(super) fn look(&mut self, now: Moment, machine: &Machine, fleet: &mut Fleet) -> Option<Result<Event, String>> {
        self.follow(machine);
        let is_due = |requests: u64| {
            let board = fleet.memory().scoreboard();
            busiest(machine, board).is_some_and(|(most, _)| most >= requests)
                && machine.at_rest()
                && machine.wanted() <= MOST_REFORKED
                && can_all_migrate(machine, board)
                && has_room(machine, board)
        };
        match self.state {
            State::Warming { until } if is_due(until) => {
                let (_, worker) = busiest(machine, fleet.memory().scoreboard())?;
                if fleet.tell(worker, "examine", &[]) {
                    let give_up = now + EXAMINATION;
                    self.state = State::Examining { until, worker, give_up };
                }
            }
            State::Examining { until, worker, .. } if !serves(machine, fleet, worker) => {
                self.state = State::Warming { until };
            }
            State::Examining { give_up, .. } if give_up <= now => {
                self.state = State::Over;
                let seconds = EXAMINATION.as_secs();
                return Some(Err(format!(
                    "a worker did not say within {seconds} s if it can be copied"
                )));
            }
            State::Asked { .. } if machine.at_rest() => {
                self.failures += 1;
                self.state = self.warming();
            }
            State::Proving { before } if is_due(self.after) => {
                self.state = self.read(fleet, State::Comparing { before }, State::Over);
            }
            State::Measuring { until, worker } => {
                let memory = self.result()?;
                if is_due(until) && serves(machine, fleet, worker) {
                    self.state = State::Asked { memory };
                    return Some(Ok(Event::Warm(worker)));
                }
                self.state = State::Warming { until };
            }
            State::Comparing { before } => {
                let after = self.result()?;
                self.state = self.judge(before, after);
            }
            _ => {}
        }
        None
    }

    /// Begins again with a new generation.
    fn follow(&mut self, machine: &Machine) {
        if machine.generation() == self.generation || machine.is_guest() {
            return;
        }
        self.generation = machine.generation();
        let is_copy = machine
            .restart()
            .is_some_and(|restart| restart.kind == RestartKind::Refork && restart.state == RestartStatus::Done);
        self.state = match self.state {
            State::Asked { memory } if is_copy => {
                self.effect.reforks += 1;
                State::Proving { before: memory }
            }
            _ if is_copy || self.after == 0 => State::Over, // the user decides about reforks
            _ if self.shares_connections == Some(self.generation) => State::Over,
            _ => State::Warming { until: self.after },
        };
        if !is_copy {
            self.effect = ReforkEffect::default();
            self.failures = 0;
        }
    }

    fn judge(&mut self, before: Reading, after: Reading) -> State {
        self.effect.memory = None;
        if before.processes != after.processes {
            return self.warming();
        }
        let (Some(before), Some(after)) = (before.bytes, after.bytes) else {
            return State::Over;
        };
        self.effect.memory = Some([before, after]);
        if before.saturating_sub(after) < before / LEAST_SAVED {
            return State::Over;
        }
        self.warming()
    }

    /// The state before the next refork.
    fn warming(&self) -> State {
        let times = GROWTH.saturating_pow(self.effect.reforks.saturating_add(self.failures));
        State::Warming {
            until: self.after.saturating_mul(times),
        }
    }

    // --- memory

    /// Begins to read the memory of all processes. Returns the next state; `otherwise` if there is no thread for it.
    fn read(&mut self, fleet: &Fleet, next: State, otherwise: State) -> State {
        if self.memory.is_none() {
            self.memory = Background::new("fairlead refork").ok();
        }
        let generation = self.generation;
        let pids: Vec<i32> = fleet.children.iter().filter_map(|child| child.pid()).collect();
        let reading = move || Reading {
            generation,
            processes: pids.len(),
            bytes: pids.iter().map(|pid| process_memory::proportional(*pid).ok()).sum(),
        };
        match self.memory.as_mut().map(|memory| memory.run(reading)) {
            Some(Ok(())) => next,
            _ => otherwise,
        }
    }

    /// The reading of this generation, once it is there.
    fn result(&mut self) -> Option<Reading> {
        let readings = self.memory.as_mut()?.results();
        readings
            .into_iter()
            .rfind(|reading| reading.generation == self.generation)
    }
}

/// The workers that serve, and their slots.
fn slots<'a>(machine: &'a Machine, board: &'a Scoreboard) -> impl Iterator<Item = (ProcessId, &'a Slot)> + 'a {
    let workers = machine.workers().filter(|worker| worker.settled && !worker.sole);
    workers.map(|worker| (worker.id, board.slot(worker.slot)))
}

/// The most requests of the application that one worker has served, and this worker.
fn busiest(machine: &Machine, board: &Scoreboard) -> Option<(u64, ProcessId)> {
    let requests = |slot: &Slot| slot.requests.load(Relaxed).saturating_sub(slot.files.load(Relaxed));
    slots(machine, board).map(|(id, slot)| (requests(slot), id)).max()
}

/// Returns true if the worker still serves.
fn serves(machine: &Machine, fleet: &Fleet, worker: ProcessId) -> bool {
    slots(machine, fleet.memory().scoreboard()).any(|(id, _)| id == worker)
}

/// Returns true if a quarter of the workers' places for connections is free. Others connect while the clients of one worker migrate, and a
/// client without a place would be closed. The new worker has places, too.
fn has_room(machine: &Machine, board: &Scoreboard) -> bool {
    let total = |gauge: fn(&Slot) -> &AtomicI64| -> i64 {
        slots(machine, board).map(|(_, slot)| gauge(slot).load(Relaxed)).sum()
    };
    let (open, most) = (total(|slot| &slot.connections), total(|slot| &slot.limit_connections));
    open.saturating_mul(4) <= most.saturating_mul(3)
}

/// Returns true if each client can migrate.
fn can_all_migrate(machine: &Machine, board: &Scoreboard) -> bool {
    slots(machine, board).all(|(_, slot)| slot.immovable.load(Relaxed) <= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn reading(processes: usize, mib: u64) -> Reading {
        Reading {
            generation: 2,
            processes,
            bytes: Some(mib * MIB),
        }
    }

    #[test]
    fn the_last_refork_saves_less_than_a_thirty_second_of_the_memory() {
        let mut reforker = Reforker::new(500);
        reforker.effect.reforks = 1;
        let next = State::Warming { until: 4_000 };
        assert_eq!(reforker.judge(reading(3, 320), reading(3, 310)), next);
        assert_eq!(reforker.judge(reading(3, 320), reading(3, 311)), State::Over);
        assert_eq!(reforker.effect.memory, Some([320 * MIB, 311 * MIB]));
    }

    #[test]
    fn a_change_of_the_number_of_workers_says_nothing_about_a_refork() {
        let mut reforker = Reforker::new(500);
        reforker.effect.reforks = 1;
        let next = State::Warming { until: 4_000 };
        assert_eq!(reforker.judge(reading(3, 320), reading(4, 400)), next);
        assert_eq!(reforker.effect.memory, None);
    }
}
