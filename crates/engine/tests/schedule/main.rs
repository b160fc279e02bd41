//! Tests the rules of `src/scheduler/states` with a model checker. It runs each case again and again, and decides at
//! every step that threads share which thread continues. It reports a thread that would never wake as a deadlock.
//!
//! The code under test is the engine's own; only the primitives belong to the checker. All code is sequentially
//! consistent, as the checker assumes. `FAIRLEAD_INTERLEAVINGS` sets the number of runs for each case.
#![allow(dead_code, unused_imports, reason = "the engine uses what the model does not")]

#[path = "../../src/scheduler/states/mod.rs"]
mod schedule;
mod signal;
mod sync;
mod world;

use schedule::{Doing, Help, Tick};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{thread, Config, MaxSteps, Runner};
use std::sync::Arc;
use world::{Event, Gate, Job, Rules, World};

/// Most steps of one run; a run with more is a livelock.
const STEPS: usize = 100_000;

/// Number of preemptions of the second scheduler, which otherwise continues the same thread.
const DEPTH: usize = 4;

fn check(name: &str, case: impl Fn() + Send + Sync + Clone + 'static) {
    let each = std::env::var("FAIRLEAD_INTERLEAVINGS").map_or(1_000, |text| text.parse().expect("a number"));
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(STEPS);
    let tried = Runner::new(RandomScheduler::new(each), config.clone()).run(case.clone())
        + Runner::new(PctScheduler::new(DEPTH, each), config).run(case);
    println!("{name}: {tried} interleavings");
}

fn spawn(world: &Arc<World>, code: impl FnOnce(&World) + Send + 'static) {
    let world = Arc::clone(world);
    thread::spawn(move || code(&world));
}

#[test]
fn what_clients_and_native_threads_bring_is_run() {
    check("clients and native threads", || {
        let mut rules = Rules::new(3, 4);
        rules.monitor = None;
        World::run(rules, |world| {
            spawn(world, |world| {
                (0..2).for_each(|_| world.happen(Event::Request(Job::Quick)))
            });
            spawn(world, |world| (0..2).for_each(|_| world.push(Job::Quick)));
        });
    });
}

#[test]
fn a_thread_that_blocks_hands_over_without_the_monitor() {
    check("hand-over", || {
        let mut rules = Rules::new(3, 4);
        rules.monitor = None;
        World::run(rules, |world| {
            let gate = Arc::new(Gate::default());
            let opens = Arc::clone(&gate);
            spawn(world, |world| {
                world.happen(Event::Request(Job::Blocks(Arc::clone(&gate))));
                world.happen(Event::Request(Job::Blocks(gate)));
                world.happen(Event::Request(Job::Quick));
            });
            spawn(world, |world| world.happen(Event::Request(Job::Opens(opens))));
        });
    });
}

#[test]
fn where_the_language_says_nothing_the_monitor_finds_who_blocks() {
    check("the monitor's guess", || {
        let mut rules = Rules::new(3, 3);
        rules.tells_waits = false;
        World::run(rules, |world| {
            let gate = Arc::new(Gate::default());
            let opens = Arc::clone(&gate);
            spawn(world, |world| {
                world.happen(Event::Request(Job::Blocks(Arc::clone(&gate))));
                world.push(Job::Blocks(gate));
            });
            spawn(world, |world| world.happen(Event::Request(Job::Opens(opens))));
        });
    });
}

/// C code keeps the lock until a file was served, while another thread wants the lock.
fn a_file_behind_a_hog(rules: Rules) {
    World::run(rules, |world| {
        let gate = Arc::new(Gate::default());
        let opens = Arc::clone(&gate);
        spawn(world, |world| {
            world.happen(Event::Request(Job::Hogs(gate)));
            world.happen(Event::Request(Job::Quick));
        });
        spawn(world, |world| world.happen(Event::File(opens)));
    });
}

#[test]
fn files_are_served_while_somebody_keeps_the_lock() {
    for tells_waits in [true, false] {
        check("a lock that is kept", move || {
            let mut rules = Rules::new(3, 2);
            rules.tells_waits = tells_waits;
            a_file_behind_a_hog(rules);
        });
    }
}

#[test]
fn who_computes_until_another_request_has_run_lets_it_run() {
    for tells_waits in [true, false] {
        check("slices", move || {
            let mut rules = Rules::new(3, 4);
            rules.tells_waits = tells_waits;
            World::run(rules, |world| {
                let gate = Arc::new(Gate::default());
                let (another, opens) = (Arc::clone(&gate), Arc::clone(&gate));
                spawn(world, |world| {
                    world.happen(Event::Request(Job::Computes(gate)));
                    world.happen(Event::Request(Job::Quick));
                });
                spawn(world, |world| world.push(Job::Computes(another)));
                spawn(world, |world| world.happen(Event::Request(Job::Opens(opens))));
            });
        });
    }
}

#[test]
fn threads_that_are_killed_are_missed_by_nobody() {
    check("kills", || {
        World::run(Rules::new(2, 3), |world| {
            spawn(world, |world| {
                (0..3).for_each(|_| world.happen(Event::Request(Job::Quick)))
            });
            spawn(world, |world| world.kill_one());
        });
    });
}

#[test]
fn threads_that_are_killed_before_they_begin_are_missed_by_nobody() {
    for killed in [1, 2, 4] {
        check("early kills", move || {
            let mut rules = Rules::new(2, 3);
            rules.killed_early = killed;
            World::run(rules, |world| {
                spawn(world, |world| {
                    (0..3).for_each(|_| world.happen(Event::Request(Job::Quick)))
                });
                spawn(world, |world| world.kill_one());
            });
        });
    }
}

#[test]
fn files_are_served_though_no_thread_begins() {
    check("a vacancy", || {
        let mut rules = Rules::new(2, 1);
        rules.begins = false;
        World::run(rules, |world| {
            let gate = Arc::new(Gate::default());
            let opens = Arc::clone(&gate);
            spawn(world, |world| world.happen(Event::File(opens)));
            spawn(world, move |world| {
                gate.pass();
                world.stop();
            });
        });
    });
}

#[test]
fn there_are_never_more_threads_than_allowed() {
    check("starts", || {
        World::run(Rules::new(3, 5), |world| {
            let gate = Arc::new(Gate::default());
            let opens = Arc::clone(&gate);
            spawn(world, move |world| {
                (0..2).for_each(|_| world.happen(Event::Request(Job::Blocks(Arc::clone(&gate)))));
            });
            spawn(world, |world| {
                (0..2).for_each(|_| world.push(Job::Quick));
                world.push(Job::Opens(opens));
            });
        });
    });
}

/// A broken rule: polls only if no thread could be woken to do it, and forgets that a woken thread may first have to
/// wait for the lock.
fn rule_that_trusts_sleepers(tick: Tick) -> Help {
    if tick.now.any(Doing::Waiting) || tick.now.any(Doing::Wanting) {
        Help::WakeToRun
    } else {
        schedule::help(tick)
    }
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn a_rule_that_trusts_sleepers_is_found() {
    check("a broken rule", || {
        let mut rules = Rules::new(3, 2);
        rules.monitor = Some(rule_that_trusts_sleepers);
        a_file_behind_a_hog(rules);
    });
}
