//! Tests of the fair queue with simulated threads: the time that each flow gets, for jobs of any cost.

use super::*;
use crate::cluster::ledger::Ledger;
use std::collections::BTreeMap;

const MILLISECOND: u64 = 1_000_000;

/// A job of a flow; the number distinguishes the jobs of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TestJob {
    flow: Option<u64>,
    number: u64,
    cost: u64,
    has_to_stay: bool,
}

impl Queued for TestJob {
    fn arrived(&self) -> Option<Nanos> {
        self.flow.map(|_| at(self.number))
    }

    fn can_leave(&self) -> bool {
        self.flow.is_some() && !self.has_to_stay
    }

    fn flow(&self) -> Option<Flow> {
        self.flow.map(Flow)
    }

    fn is_urgent(&self) -> bool {
        false
    }
}

fn at(nanoseconds: u64) -> Nanos {
    Nanos::START + Duration::from_nanos(nanoseconds)
}

fn job(flow: u64, cost: u64) -> TestJob {
    TestJob {
        flow: Some(flow),
        number: 0,
        cost,
        has_to_stay: false,
    }
}

/// xorshift64*: the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

/// Threads that run the jobs from the queue.
struct World {
    queue: FairQueue<TestJob>,
    now: u64,
    threads: usize,
    /// Running jobs, by the time at which they end; the second number distinguishes jobs that end together.
    running: BTreeMap<(u64, u64), (TestJob, Charge)>,
    /// Jobs under way, by their time of arrival.
    coming: BTreeMap<(u64, u64), TestJob>,
    begun: u64,
    /// Time that each flow has got.
    used: BTreeMap<u64, u64>,
}

impl World {
    fn new(threads: usize) -> World {
        World::with(threads, None)
    }

    fn with(threads: usize, ledger: Option<&'static Ledger>) -> World {
        World {
            queue: FairQueue::new(threads, ledger),
            now: 0,
            threads,
            running: BTreeMap::new(),
            coming: BTreeMap::new(),
            begun: 0,
            used: BTreeMap::new(),
        }
    }

    fn push(&mut self, job: TestJob) {
        self.queue.push(job, at(self.now));
    }

    fn fill(&mut self) {
        while self.running.len() < self.threads {
            let Some((job, charge)) = self.queue.pop(at(self.now)) else {
                break;
            };
            self.begun += 1;
            self.running.insert((self.now + job.cost, self.begun), (job, charge));
        }
    }

    /// Time of the next event; jobs that are held back are checked every millisecond.
    fn next_event(&self) -> Option<u64> {
        let is_held = self.queue.len() > 0 && self.running.len() < self.threads;
        let look = is_held.then_some(self.now + MILLISECOND);
        let times = [self.running.keys().next(), self.coming.keys().next()];
        times.into_iter().flatten().map(|(time, _)| *time).chain(look).min()
    }

    /// Runs until the next job has ended, and returns it. The threads take waiting jobs before and afterwards.
    fn step(&mut self) -> Option<TestJob> {
        loop {
            self.fill();
            self.now = self.next_event()?;
            while let Some(entry) = self.coming.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let job = entry.remove();
                self.push(job);
            }
            let Some(entry) = self.running.first_entry().filter(|entry| entry.key().0 <= self.now) else {
                continue;
            };
            let (job, charge) = entry.remove();
            self.queue.end(charge, at(self.now));
            if let Some(flow) = job.flow {
                *self.used.entry(flow).or_default() += job.cost;
            }
            return Some(job);
        }
    }

    fn used(&self, flow: u64) -> u64 {
        self.used.get(&flow).copied().unwrap_or(0)
    }

    /// Runs for `milliseconds`; `again` returns the job that follows a job.
    fn run(&mut self, milliseconds: u64, mut again: impl FnMut(TestJob) -> Option<TestJob>) {
        let until = self.now + milliseconds * MILLISECOND;
        while self.now < until {
            let Some(job) = self.step() else { break };
            again(job).into_iter().for_each(|next| self.push(next));
        }
    }
}

#[test]
fn flows_that_always_have_something_to_run_get_the_same_time_whatever_their_jobs_cost() {
    let mut random = Random(7);
    for round in 0..50 {
        let threads = 1 + random.below(8) as usize;
        let flows = 2 + random.below(12);
        let longest: Vec<u64> = (0..flows).map(|_| 1 + random.below(60 * MILLISECOND)).collect();
        let most = longest.iter().max().copied().expect("flows");
        let mut world = World::new(threads);
        // More jobs of each flow than the threads could run.
        for flow in 0..flows {
            (0..threads + 1 + random.below(20) as usize).for_each(|_| world.push(job(flow, 1)));
        }
        let cost = |random: &mut Random, flow: u64| 1 + random.below(longest[flow as usize]);
        world.run(2_000, |ended| {
            let flow = ended.flow?;
            Some(job(flow, cost(&mut random, flow)))
        });
        let used: Vec<u64> = (0..flows).map(|flow| world.used(flow)).collect();
        let (least, highest) = (used.iter().min().expect("some"), used.iter().max().expect("some"));
        let bound = QUANTUM + (threads as u64 + 1) * most;
        assert!(
            highest - least <= bound,
            "{round}: {used:?}, {threads} threads, at most {most}"
        );
    }
}

#[test]
fn a_crowd_of_one_flow_takes_no_time_from_those_who_come_alone() {
    for (threads, long) in [(1, 5), (5, 5), (5, 50), (8, 50)] {
        let mut world = World::new(threads);
        (0..200).for_each(|_| world.push(job(0, long * MILLISECOND)));
        (1..=10).for_each(|flow| world.push(job(flow, 5 * MILLISECOND)));
        world.run(20_000, Some);
        let share = world.now * threads as u64 / 11;
        for flow in 1..=10 {
            let used = world.used(flow);
            assert!(
                used * 100 >= share * 90,
                "{threads} threads, {long} ms: {used} of {share}"
            );
        }
        assert!(world.used(0) * 100 >= share * 90, "the crowd has its share too");
    }
}

#[test]
fn who_asks_again_a_moment_later_finds_a_thread() {
    let mut random = Random(3);
    // As many threads as there are others, so that between two of their jobs only the crowd waits.
    for (threads, long) in [(5, 5), (5, 50), (5, 500), (10, 50)] {
        let mut world = World::new(threads);
        (0..200).for_each(|_| world.push(job(0, long * MILLISECOND)));
        (1..=threads as u64).for_each(|flow| world.push(job(flow, 5 * MILLISECOND)));
        let until = 10_000 * MILLISECOND;
        while world.now < until {
            let ended = world.step().expect("jobs");
            if ended.flow == Some(0) {
                world.push(ended);
            } else {
                let pause = random.below(2 * MILLISECOND);
                world.begun += 1;
                world.coming.insert((world.now + pause, world.begun), ended);
            }
        }
        let total: u64 = world.used.values().sum();
        let share = total / (threads as u64 + 1);
        for flow in 1..=threads as u64 {
            let used = world.used(flow);
            assert!(
                used * 100 >= share * 80,
                "{threads} threads, {long} ms: {used} of {share}"
            );
        }
        assert!(
            total * 100 >= until * threads as u64 * 80,
            "threads are not left idle for long: {total}"
        );
        assert!(world.used(0) * 100 >= share * 80, "the crowd has its share too");
    }
}

#[test]
fn without_others_nothing_is_held_back() {
    let mut world = World::new(5);
    (0..20).for_each(|_| world.push(job(0, 50 * MILLISECOND)));
    world.push(job(1, MILLISECOND));
    world.run(3_000, |ended| ended.flow.filter(|flow| *flow == 0).map(|_| ended));
    world.used.clear();
    world.run(1_000, Some);
    assert_eq!(world.used(0), 5_000 * MILLISECOND);
}

#[test]
fn many_long_jobs_that_begin_at_once_count_at_once() {
    let mut world = World::new(4);
    (0..20).for_each(|_| world.push(job(0, 100 * MILLISECOND)));
    // Its jobs are known to be long by now.
    for _ in 0..8 {
        world.step();
    }
    (1..=4).for_each(|flow| (0..40).for_each(|_| world.push(job(flow, 10 * MILLISECOND))));
    world.used.clear();
    world.run(1_000, Some);
    let running = |world: &World| world.running.values().filter(|(job, _)| job.flow == Some(0)).count();
    assert!(running(&world) <= 2);
    let share = 4 * 1_000 * MILLISECOND / 5;
    assert!(world.used(0) <= share + 400 * MILLISECOND, "{}", world.used(0));
}

#[test]
fn whoever_owes_the_most_still_gets_a_turn_however_many_strangers_come() {
    let mut world = World::new(2);
    world.push(job(0, 60_000 * MILLISECOND));
    // Twenty strangers wait at any time, and none of them comes twice.
    let mut stranger = 0;
    let mut next = || {
        stranger += 1;
        Some(job(stranger, 5 * MILLISECOND))
    };
    (0..20).for_each(|_| world.push(next().expect("a stranger")));
    world.run(61_000, |ended| if ended.flow == Some(0) { None } else { next() });
    assert_eq!(world.used(0), 60_000 * MILLISECOND);
    world.push(job(0, MILLISECOND));
    let before = world.now;
    while world.used(0) == 60_000 * MILLISECOND {
        world.step();
        world.push(next().expect("a stranger"));
        assert!(world.now - before < 150_000 * MILLISECOND, "the flow waits for ever");
    }
    assert!(world.now - before > 5_000 * MILLISECOND, "the flow had a debt");
}

#[test]
fn who_was_away_has_saved_nothing_up() {
    let mut world = World::new(1);
    (0..2).for_each(|flow| (0..5).for_each(|_| world.push(job(flow, MILLISECOND))));
    world.run(10_000, |ended| {
        ended.flow.filter(|flow| *flow == 0).map(|flow| job(flow, MILLISECOND))
    });
    // Flow 1 has had nothing to run for almost ten seconds.
    (0..50).for_each(|_| world.push(job(1, MILLISECOND)));
    (0..50).for_each(|_| world.push(job(0, MILLISECOND)));
    world.used.clear();
    world.run(40, Some);
    assert!(
        world.used(0).abs_diff(world.used(1)) <= 3 * MILLISECOND,
        "{:?}",
        world.used
    );
}

#[test]
fn jobs_of_a_flow_keep_their_order_and_flows_alternate() {
    let mut world = World::new(1);
    for number in 0..4 {
        for flow in 0..3 {
            let job = TestJob {
                number,
                ..job(flow, 10)
            };
            world.push(job);
        }
    }
    let order: Vec<(u64, u64)> = std::iter::from_fn(|| world.step())
        .map(|job| (job.number, job.flow.expect("a flow")))
        .collect();
    let expected: Vec<(u64, u64)> = (0..4)
        .flat_map(|number| (0..3).map(move |flow| (number, flow)))
        .collect();
    assert_eq!(order, expected);
}

#[test]
fn jobs_of_nobody_wait_for_one_turn_of_each_at_most() {
    let mut world = World::new(1);
    for flow in 0..5 {
        (0..20).for_each(|_| world.push(job(flow, 3 * MILLISECOND)));
    }
    (0..30).for_each(|_| _ = world.step());
    let own = TestJob {
        flow: None,
        ..job(0, MILLISECOND)
    };
    (0..3).for_each(|_| world.push(own));
    let turns: Vec<Option<u64>> = (0..30).map(|_| world.step().and_then(|job| job.flow)).collect();
    let places: Vec<usize> = (0..30).filter(|index| turns[*index].is_none()).collect();
    assert_eq!(places.len(), 3);
    assert!(places.iter().all(|place| *place <= 8), "{turns:?}");
}

#[test]
fn an_endless_stream_of_jobs_of_nobody_starves_no_flow() {
    let mut world = World::new(1);
    let own = TestJob {
        flow: None,
        ..job(0, MILLISECOND)
    };
    (0..10).for_each(|_| world.push(own));
    (0..10).for_each(|_| world.push(job(0, 50 * MILLISECOND)));
    world.run(2_000, Some);
    assert!(world.used(0) >= 500 * MILLISECOND, "{:?}", world.used);
}

#[test]
fn what_is_remembered_has_a_limit() {
    let mut world = World::new(2);
    // Keeps the server busy.
    (0..3).for_each(|_| world.push(job(0, MILLISECOND)));
    let mut most = 0;
    for stranger in 1..60_000 {
        world.push(job(stranger, 1 + stranger % 40 * MILLISECOND));
        while world.queue.len() > 20 {
            let ended = world.step().expect("jobs");
            if ended.flow == Some(0) {
                world.push(ended);
            }
        }
        most = most.max(world.queue.flows.len());
    }
    assert!(most <= MOST_IDLE + 3 * 22 + 2, "{most}");
    while world.step().is_some() {}
    assert_eq!(
        (world.queue.flows.len(), world.queue.turns.len(), world.queue.len()),
        (0, 0, 0)
    );
    assert!(world.queue.virtual_time.is_idle());
}

#[test]
fn the_one_whose_turn_is_next_leaves_and_may_come_back() {
    let mut queue = FairQueue::new(1, None);
    (0..3).for_each(|number| queue.push(TestJob { number, ..job(1, 1) }, at(10 + number)));
    queue.push(job(2, 1), at(20));
    queue.push(
        TestJob {
            flow: None,
            ..job(1, 1)
        },
        at(5),
    );
    assert_eq!(queue.pop_waiting_since(at(9)), None, "no job has waited that long");
    let first = queue.pop_waiting_since(at(30)).expect("one");
    assert_eq!((first.flow, first.number), (Some(1), 0));
    let stays = TestJob {
        has_to_stay: true,
        ..first
    };
    queue.put_back(stays, at(40));
    assert_eq!(queue.pop_waiting_since(at(30)).map(|job| job.flow), Some(Some(2)));
    assert_eq!((queue.len(), queue.waiting_flows()), (4, 1));
    let run = || {
        let (job, charge) = queue.pop(at(50))?;
        queue.end(charge, at(50));
        Some(job.flow.map(|_| job.number))
    };
    let numbers: Vec<Option<u64>> = std::iter::from_fn(run).collect();
    assert_eq!(numbers.iter().flatten().copied().collect::<Vec<u64>>(), [0, 1, 2]);
    assert_eq!(numbers.len(), 4);
    assert!(queue.virtual_time.is_idle());
}

#[test]
fn a_flow_has_one_share_of_all_workers_together() {
    let ledger: &'static Ledger = Box::leak(Box::default());
    let mut workers = [World::with(5, Some(ledger)), World::with(5, Some(ledger))];
    for (number, world) in workers.iter_mut().enumerate() {
        (0..100).for_each(|_| world.push(job(7, 10 * MILLISECOND)));
        (0..5).for_each(|single| world.push(job(100 + 16 * (5 * number as u64 + single), 5 * MILLISECOND)));
    }
    // Always step the worker with the earliest time.
    loop {
        workers.iter_mut().for_each(World::fill);
        let [one, other] = &workers;
        let world = usize::from(one.next_event() > other.next_event());
        let world = &mut workers[world];
        if world.now > 20_000 * MILLISECOND {
            break;
        }
        let ended = world.step().expect("jobs");
        world.push(ended);
    }
    let share = workers[0].now * 10 / 11;
    let hog = workers[0].used(7) + workers[1].used(7);
    assert!(hog * 100 <= share * 115, "{hog} of {share}");
    for (number, world) in workers.iter().enumerate() {
        for single in 0..5 {
            let used = world.used(100 + 16 * (5 * number as u64 + single));
            assert!(used * 100 >= share * 90, "{used} of {share}");
        }
    }
}

/// A queue in which flow 1 has three jobs, flow 2 has two, flow 3 has one, and one job has no flow.
fn mixed() -> FairQueue<TestJob> {
    let mut queue = FairQueue::new(1, None);
    for (flow, number) in [(1, 1), (2, 2), (1, 3), (3, 4), (1, 5), (2, 6)] {
        let flow = Some(flow);
        queue.push(
            TestJob {
                flow,
                number,
                ..job(0, 0)
            },
            at(number),
        );
    }
    let own = TestJob {
        flow: None,
        number: 7,
        ..job(0, 0)
    };
    queue.push(own, at(7));
    queue
}

#[test]
fn the_flow_with_most_waiting_jobs_loses_its_last_one() {
    let mut queue = mixed();
    let mut pop_last = |newcomer| queue.pop_last(newcomer).map(|job| job.number);
    assert_eq!(pop_last(Some(Flow(3))), Some(5), "flow 1 has most");
    // Now flows 1 and 2 have two each.
    assert_eq!(pop_last(Some(Flow(1))), Some(3));
    assert_eq!(pop_last(Some(Flow(3))), Some(6));
    assert_eq!(pop_last(Some(Flow(2))), Some(2), "all have one");
    assert_eq!(pop_last(Some(Flow(2))).is_some(), pop_last(None).is_some());
    assert_eq!(pop_last(None), None, "a job without a flow stays");
    assert_eq!(queue.len(), 1);
}

#[test]
fn several_sweeps_reach_every_job_of_every_flow() {
    let mut queue = mixed();
    let mut taken = Vec::new();
    for _ in 0..10 {
        let selected = queue.sweep(2, &mut |job: &mut TestJob| job.number % 2 == 0 || job.number == 5);
        taken.extend(selected.into_iter().map(|job| job.number));
    }
    taken.sort_unstable();
    assert_eq!(taken, [2, 4, 5, 6]);
    let mut left = Vec::new();
    while let Some((job, charge)) = queue.pop(at(10)) {
        left.push(job.number);
        queue.end(charge, at(11));
    }
    left.sort_unstable();
    assert_eq!(left, [1, 3, 7]);
    assert_eq!((queue.len(), queue.waiting_flows()), (0, 0));
}
