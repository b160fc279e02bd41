//! Explores every order of events, faults and commands, for small servers.

mod rules;
mod search;
mod world;

use fairlead_supervisor::machine::{Command, RecycleReason, RestartKind, StopReason, Timer};
use search::{Search, TOO_MANY};
use std::time::Instant;
use world::Scenario;

const TERM: Command = Command::Stop {
    reason: StopReason::Signal("TERM"),
    hurry: false,
};

fn scenarios() -> Vec<Scenario> {
    let depth = |name: &str, default: u8| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (faults, asked) = (depth("MODEL_FAULTS", 2), depth("MODEL_COMMANDS", 1));
    let scenario = |title, workers, next, commands| Scenario {
        title,
        workers,
        next,
        commands,
        recycles: None,
        warms: false,
        asked,
        faults,
        long_drains: false,
        without: None,
        other_version: false,
    };
    let hot = Command::Restart(RestartKind::Hot);
    let phased = Command::Restart(RestartKind::Phased);
    let refork = Command::Restart(RestartKind::Refork);
    let workers = vec![Command::AddWorker, Command::RemoveWorker];
    vec![
        scenario(
            "start and stop, 2 workers",
            2,
            2,
            vec![TERM, Command::Halt(StopReason::Command)],
        ),
        scenario(
            "start and stop, no workers",
            0,
            0,
            vec![TERM, Command::Halt(StopReason::Command)],
        ),
        scenario("phased restart", 2, 2, vec![phased]),
        scenario("refork", 2, 2, vec![refork.clone()]),
        scenario("refork, 1 worker", 1, 1, vec![refork.clone()]),
        scenario(
            "stop and number of workers during a refork",
            2,
            2,
            vec![refork, TERM, Command::RemoveWorker],
        )
        .twice(),
        scenario("automatic refork", 2, 2, vec![]).with_warmth().calm(),
        scenario("automatic refork, 1 worker", 1, 1, vec![])
            .with_warmth()
            .calmer(),
        scenario(
            "stop and phased restart during an automatic refork",
            1,
            1,
            vec![TERM, Command::Restart(RestartKind::Phased)],
        )
        .with_warmth()
        .twice()
        .calm(),
        scenario(
            "refork during an automatic refork",
            2,
            2,
            vec![Command::Restart(RestartKind::Refork)],
        )
        .with_warmth()
        .twice()
        .calm(),
        scenario("stuck worker during an automatic refork", 2, 2, vec![])
            .with_warmth()
            .with_recycling(RecycleReason::Stuck)
            .twice()
            .calm(),
        scenario("number of workers", 2, 2, workers),
        scenario("recycling, 2 workers", 2, 2, vec![]).with_recycling(RecycleReason::Memory),
        scenario("recycling, 1 worker", 1, 1, vec![]).with_recycling(RecycleReason::Age),
        scenario("stuck workers", 2, 2, vec![])
            .with_recycling(RecycleReason::Stuck)
            .twice(),
        scenario(
            "phased restart during recycling",
            2,
            2,
            vec![Command::Restart(RestartKind::Phased)],
        )
        .with_recycling(RecycleReason::Memory)
        .twice(),
        scenario(
            "number of workers during recycling",
            2,
            2,
            vec![Command::AddWorker, Command::RemoveWorker],
        )
        .with_recycling(RecycleReason::Requests)
        .twice(),
        scenario("stop during recycling", 1, 1, vec![TERM])
            .with_recycling(RecycleReason::Stuck)
            .twice(),
        scenario("stop during a hot restart", 1, 1, vec![hot.clone(), TERM]).twice(),
        scenario("hot restart, 2 to 1", 2, 1, vec![hot.clone()]),
        scenario("hot restart, 1 to 2", 1, 2, vec![hot.clone()]),
        scenario("hot restart, 2 to 0", 2, 0, vec![hot.clone()]),
        scenario("hot restart, 0 to 2", 0, 2, vec![hot.clone()]),
        scenario("hot restart, 0 to 0", 0, 0, vec![hot.clone()]),
        scenario(
            "another version, phased, 2 workers",
            2,
            2,
            vec![Command::Restart(RestartKind::Phased)],
        )
        .with_another_version()
        .calmer(),
        scenario("another version, hot, 1 to 2", 1, 2, vec![hot.clone()]).with_another_version(),
        scenario("another version, hot, 0 to 0", 0, 0, vec![hot.clone()]).with_another_version(),
        scenario("another version, hot, 2 to 0", 2, 0, vec![hot.clone()])
            .with_another_version()
            .calmer(),
        scenario("stop during another version", 1, 1, vec![hot, TERM])
            .twice()
            .with_another_version(),
        scenario(
            "phased restarts, long drains",
            2,
            2,
            vec![Command::Restart(RestartKind::Phased)],
        )
        .with_long_drains()
        .twice()
        .calmer(),
        scenario(
            "stop during a long drain",
            1,
            1,
            vec![Command::Restart(RestartKind::Hot), TERM],
        )
        .with_long_drains()
        .twice(),
        scenario(
            "hot restart, 0 to 0, long drains",
            0,
            0,
            vec![Command::Restart(RestartKind::Hot)],
        )
        .with_long_drains()
        .twice()
        .calmer(),
        scenario(
            "fewer workers and recycling, long drains",
            2,
            2,
            vec![Command::RemoveWorker],
        )
        .with_recycling(RecycleReason::Memory)
        .with_long_drains()
        .twice()
        .calmer(),
        scenario(
            "another version, long drains",
            1,
            1,
            vec![Command::Restart(RestartKind::Hot)],
        )
        .with_long_drains()
        .with_another_version()
        .calmer(),
    ]
}

impl Scenario {
    /// New code has another version.
    fn with_another_version(mut self) -> Scenario {
        self.other_version = true;
        self
    }

    /// Replaced workers have long requests.
    fn with_long_drains(mut self) -> Scenario {
        self.long_drains = true;
        self
    }

    /// Workers get warm.
    fn with_warmth(mut self) -> Scenario {
        self.warms = true;
        self
    }

    /// Workers use up a limit.
    fn with_recycling(mut self, reason: RecycleReason) -> Scenario {
        self.recycles = Some(reason);
        self
    }

    /// One fault less, for scenarios with many states; `MODEL_FAULTS` has more.
    fn calmer(mut self) -> Scenario {
        self.faults = self.faults.saturating_sub(1);
        self
    }

    /// No fault.
    fn calm(mut self) -> Scenario {
        self.faults = 0;
        self
    }

    /// One command more, and one fault at most.
    fn twice(mut self) -> Scenario {
        self.asked += 1;
        self.faults = self.faults.min(1);
        self
    }
}

#[test]
fn nothing_is_forgotten_lost_or_stuck() {
    let (mut states, mut transitions, began) = (0, 0, Instant::now());
    for scenario in scenarios() {
        let mut search = Search::new(&scenario);
        let result = search.run();
        let (more, steps) = (search.states(), search.transitions);
        println!(
            "{}: {more} states, {steps} transitions, {:.1?}",
            scenario.title,
            began.elapsed()
        );
        if let Err(violation) = result {
            panic!("{}", violation.story(&scenario));
        }
        states += more;
        transitions += steps;
    }
    println!("{states} states, {transitions} transitions, {:.1?}", began.elapsed());
}

/// Limit of a search for a missing deadline: without the deadline, processes may be started for ever.
const SEEDED_STATES: usize = 200_000;

/// Deadlines, the scenario that needs each of them, and the number of faults to show it. `SpawnerRetry` is missing,
/// because every other event does the same; `Slow` only logs.
const SEEDED: [(Timer, &str, u8); 18] = [
    (Timer::Load, "phased restart", 1),
    (Timer::SpawnerSilence, "phased restart", 1),
    (Timer::Boot, "phased restart", 1),
    (Timer::Settle, "phased restart", 1),
    (Timer::Silence, "phased restart", 1),
    (Timer::WorkerEnd, "phased restart", 1),
    (Timer::Promotion, "stuck worker during an automatic refork", 0),
    (Timer::Adopt, "hot restart, 2 to 1", 1),
    (Timer::Reexecute, "another version, phased, 2 workers", 1),
    (Timer::Return, "another version, hot, 0 to 0", 2),
    (Timer::SpawnerEnd, "start and stop, 2 workers", 2),
    (Timer::SpawnerKill, "start and stop, 2 workers", 2),
    (Timer::Fork, "start and stop, 2 workers", 1),
    (Timer::WorkerKill, "start and stop, 2 workers", 2),
    (Timer::RecyclingRetry, "recycling, 2 workers", 1),
    (Timer::WorkerEnd, "stuck workers", 0),
    (Timer::WorkerEnd, "phased restarts, long drains", 0),
    (Timer::WorkerRetry, "start and stop, 2 workers", 2),
];

#[test]
fn a_missing_deadline_is_found() {
    for (timer, title, faults) in SEEDED {
        let scenario = scenarios().into_iter().find(|scenario| scenario.title == title);
        let scenario = scenario.map(|scenario| Scenario {
            without: Some(timer),
            faults,
            ..scenario
        });
        let scenario = scenario.unwrap_or_else(|| panic!("no scenario {title}"));
        match Search::with_most(&scenario, SEEDED_STATES).run() {
            Ok(()) => panic!("no rule is violated without {timer:?}"),
            Err(violation) => assert_ne!(violation.rule, TOO_MANY, "no violation is found without {timer:?}"),
        }
    }
}
