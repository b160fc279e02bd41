use super::*;
use crate::machine::{Action, FirstSpawner};
use crate::settings::Limits;
use fairlead_shared_memory::SharedMemory;

const START: Moment = Duration::from_secs(100);

fn limits() -> Limits {
    Limits {
        workers: 2,
        shutdown_timeout: Duration::from_secs(5),
        long_drain: Duration::ZERO,
        drain_delay: Duration::ZERO,
        worker_timeout: Duration::from_secs(600),
        worker_boot_timeout: Duration::from_secs(60),
        load_timeout: Duration::from_secs(60),
        settle_time: Duration::from_secs(1),
        patience: Duration::from_secs(1),
        promotion_timeout: Duration::from_secs(1),
    }
}

/// A server with two settled workers, and their names.
fn server() -> (Machine, Fleet, Vec<ProcessId>) {
    let mut machine = Machine::new(limits(), FirstSpawner { started: START });
    let mut booted = Vec::new();
    for action in machine.step(START, Event::SpawnerReady(FirstSpawner::ID, limits())) {
        if let Action::Fork { worker, .. } = action {
            booted.push(worker);
        }
    }
    for worker in &booted {
        machine.step(START, Event::Booted(*worker));
    }
    machine.step(START + Duration::from_secs(2), Event::Tick);
    let fleet = Fleet::new(SharedMemory::new(2).expect("memory")).expect("a fleet");
    (machine, fleet, booted)
}

fn recycler(settings: &RecyclingSettings) -> Recycler {
    Recycler::new(settings, START)
}

/// The workers and the reasons.
fn found(recycler: &mut Recycler, after: u64, machine: &Machine, fleet: &Fleet) -> Vec<(ProcessId, RecycleReason)> {
    let (events, problem) = recycler.look(START + Duration::from_secs(after), machine, fleet);
    assert_eq!(problem, None);
    let pair = |event| match event {
        Event::Recycle(id, reason, _) => (id, reason),
        other => panic!("{other:?}"),
    };
    events.into_iter().map(pair).collect()
}

#[test]
fn a_stuck_worker_comes_first_without_any_setting() {
    let (machine, fleet, workers) = server();
    let settings = RecyclingSettings {
        max_age: Some(10.0),
        ..RecyclingSettings::default()
    };
    let mut recycler = recycler(&settings);
    assert_eq!(found(&mut recycler, 2, &machine, &fleet), []);
    assert!(!recycler.is_urgent());
    fleet.memory().scoreboard().slot(1).stuck.store(3, Relaxed);
    let stuck = (workers[1], RecycleReason::Stuck);
    assert_eq!(found(&mut recycler, 3, &machine, &fleet), [stuck]);
    assert!(recycler.is_urgent());
    let aged = (workers[0], RecycleReason::Age);
    assert_eq!(found(&mut recycler, 12, &machine, &fleet), [stuck, aged]);
}

#[test]
fn only_requests_of_the_application_count() {
    let (machine, fleet, workers) = server();
    let settings = RecyclingSettings {
        max_requests: Some(100),
        ..RecyclingSettings::default()
    };
    let mut recycler = recycler(&settings);
    let slot = fleet.memory().scoreboard().slot(0);
    slot.requests.store(150, Relaxed);
    slot.files.store(51, Relaxed);
    assert_eq!(found(&mut recycler, 2, &machine, &fleet), []);
    slot.files.store(50, Relaxed);
    let requests = (workers[0], RecycleReason::Requests);
    assert_eq!(found(&mut recycler, 2, &machine, &fleet), [requests]);
}

#[test]
fn jitter_only_lowers_a_limit() {
    let (machine, fleet, _) = server();
    let settings = RecyclingSettings {
        max_age: Some(1000.0),
        jitter: 0.5,
        ..RecyclingSettings::default()
    };
    let ages: Vec<f64> = (0..40)
        .map(|_| {
            let mut recycler = recycler(&settings);
            assert_eq!(found(&mut recycler, 0, &machine, &fleet), []);
            assert_eq!(found(&mut recycler, 499, &machine, &fleet), []);
            assert_eq!(found(&mut recycler, 1000, &machine, &fleet).len(), 2);
            recycler.workers.values().map(|record| record.chance).sum()
        })
        .collect();
    let (least, most) = ages.iter().fold((f64::MAX, 0.0f64), |(least, most), age| {
        (least.min(*age), most.max(*age))
    });
    assert!(most - least > 0.1, "{ages:?}");
}

#[test]
fn memory_counts_from_what_the_application_needs_at_its_start() {
    let recycler = recycler(&RecyclingSettings {
        max_memory: Some(100 * MEBIBYTE),
        ..RecyclingSettings::default()
    });
    let spent = |first: u64, last: u64| {
        let (first, last) = (first * MEBIBYTE, last * MEBIBYTE);
        let record = Record {
            memory: Some(Memory::new(first).read(last, false)),
            ..Record::new(START)
        };
        recycler.memory_spent(&record, 1.0).is_some()
    };
    assert_eq!((spent(20, 100), spent(20, 101)), (false, true));
    assert_eq!((spent(120, 150), spent(120, 151)), (false, true));
}

#[test]
fn a_worker_that_shares_its_pages_with_fewer_processes_has_not_grown() {
    let mut memory = Memory::new(75);
    memory = memory.read(76, false);
    // The drained worker has ended.
    memory = memory.read(111, true);
    assert_eq!((memory.first, memory.last), (111, 111));
    memory = memory.read(140, false);
    memory = memory.read(150, false);
    assert_eq!((memory.first, memory.last), (111, 150), "this is growth");
    // It had ended just before the last reading.
    memory = memory.read(151, true);
    assert_eq!(memory.first, 111 + 10 + 1);
}
