//! Reforks of a server with more than half as many workers as there are slots.

use fairlead_supervisor::machine::{
    Action, Command, End, Event, FirstSpawner, Machine, Moment, ProcessId, RestartKind, RestartStatus, MOST_REFORKED,
    SLOTS,
};
use fairlead_supervisor::settings::{patience, promotion_timeout, Limits};
use std::collections::VecDeque;
use std::time::Duration;

const MINUTES: u64 = 60;

fn limits(workers: usize) -> Limits {
    Limits {
        workers,
        long_drain: Duration::ZERO,
        shutdown_timeout: Duration::from_secs(30),
        drain_delay: Duration::ZERO,
        worker_timeout: Duration::from_secs(60),
        worker_boot_timeout: Duration::from_secs(60),
        load_timeout: Duration::from_secs(60),
        settle_time: Duration::from_secs(1),
        patience: patience(),
        promotion_timeout: promotion_timeout(),
    }
}

/// A server. Its processes do at once what they are asked to, but workers that may end later have clients that stay.
struct Server {
    machine: Machine,
    now: Moment,
    refusals: Vec<String>,
}

impl Server {
    fn start(workers: usize) -> Server {
        let now = Duration::from_secs(1);
        let mut server = Server {
            machine: Machine::new(limits(workers), FirstSpawner { started: now }),
            now,
            refusals: Vec::new(),
        };
        server.happen(Event::SpawnerReady(FirstSpawner::ID, limits(workers)));
        server.pass(MINUTES);
        assert!(server.machine.at_rest());
        server
    }

    fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.machine.step(self.now, event) {
                match action {
                    Action::Fork { worker, .. } => events.extend([Event::Forked(worker), Event::Booted(worker)]),
                    Action::Promote(id, ..) => events.push_back(Event::Promoted(id)),
                    Action::Drain(id, _) | Action::Kill(id) | Action::EndSpawner(id) => {
                        events.push_back(Event::Ended(id, End::Exited(0)));
                    }
                    Action::Refuse(reason) => self.refusals.push(reason),
                    _ => {}
                }
            }
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            let workers: Vec<ProcessId> = self.machine.workers().map(|one| one.id).collect();
            let spawners: Vec<ProcessId> = self.machine.spawners().map(|one| one.id).collect();
            workers.into_iter().for_each(|id| self.happen(Event::WorkerAlive(id)));
            spawners.into_iter().for_each(|id| self.happen(Event::SpawnerAlive(id)));
            self.happen(Event::Tick);
        }
    }

    fn begin_refork(&mut self) {
        let warm = self.machine.workers().next().map(|one| one.id).expect("a worker");
        self.happen(Event::Warm(warm));
        assert_eq!(self.status(), Some(RestartStatus::Running));
    }

    fn status(&self) -> Option<RestartStatus> {
        self.machine.restart().map(|restart| restart.state)
    }
}

#[test]
fn a_refork_that_is_asked_for_needs_no_slot_of_an_automatic_refork_that_waits() {
    let mut server = Server::start(40);
    server.begin_refork();
    server.pass(2 * MINUTES);
    assert_eq!(server.status(), Some(RestartStatus::Running));
    assert_eq!(server.machine.workers().count(), SLOTS, "no slot is left");
    server.happen(Event::Asked(Command::Restart(RestartKind::Refork)));
    assert_eq!(server.refusals, [""; 0]);
    server.pass(2 * MINUTES);
    assert_eq!(server.status(), Some(RestartStatus::Done));
    assert_eq!(server.machine.workers().count(), 40, "nobody retires");
    assert!(server.machine.at_rest());
}

#[test]
fn workers_are_not_added_beyond_the_slots_that_an_automatic_refork_needs() {
    let mut server = Server::start(MOST_REFORKED);
    server.begin_refork();
    server.happen(Event::Asked(Command::AddWorker));
    assert_eq!(server.refusals, ["the maximum number of workers is reached"]);
    assert_eq!(server.machine.wanted(), MOST_REFORKED);
    let mut server = Server::start(MOST_REFORKED);
    server.happen(Event::Asked(Command::AddWorker));
    assert_eq!((server.refusals.len(), server.machine.wanted()), (0, MOST_REFORKED + 1));
}
