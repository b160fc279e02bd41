//! The format of the hot restart state between versions of the supervisor is frozen.

use fairlead_supervisor::hot_restart_state::{HotRestartState, News};
use fairlead_supervisor::machine::saved::Returned;
use fairlead_supervisor::machine::{
    Action, Command, End, Event, FirstSpawner, Machine, Moment, ProcessId, RestartKind,
};
use fairlead_supervisor::settings::{Limits, Settings};
use serde_json::{json, Value};
use std::time::Duration;

fn text() -> String {
    include_str!("format-1.json").replace("SETTINGS", include_str!("settings.json"))
}

fn hot_restart_state() -> HotRestartState {
    serde_json::from_str(&text()).expect("a handover of format 1")
}

fn limits() -> Limits {
    let settings: Settings = serde_json::from_str(include_str!("settings.json")).expect("settings");
    Limits {
        workers: 1,
        ..settings.limits
    }
}

const NOW: Moment = Duration::from_secs(100);

/// A server with one worker (2) that waits for another program because of spawner 3.
fn waiting() -> Machine {
    let mut machine = Machine::new(limits(), FirstSpawner { started: NOW });
    for event in [
        Event::SpawnerReady(1, limits()),
        Event::Booted(2),
        Event::Asked(Command::Restart(RestartKind::Hot)),
        Event::SpawnerStarted(3),
    ] {
        machine.step(NOW, event);
    }
    let actions = machine.step(NOW, Event::OtherVersionReady(3, "2".into()));
    assert!(actions.contains(&Action::Reexecute(3)), "{actions:?}");
    machine
}

fn ended(machine: &Machine, process: ProcessId) -> bool {
    machine.workers().all(|one| one.id != process) && machine.spawners().all(|one| one.id != process)
}

#[test]
fn a_handover_of_format_1_is_read_and_written_unchanged() {
    let written: Value = serde_json::to_value(hot_restart_state()).expect("JSON");
    let expected: Value = serde_json::from_str(&text()).expect("JSON");
    assert_eq!(written, expected);
}

#[test]
fn what_a_later_version_adds_is_passed_over() {
    let mut later: Value = serde_json::from_str(&text()).expect("JSON");
    for path in [
        "",
        "/machine",
        "/machine/workers/0",
        "/machine/spawners/0",
        "/settings",
        "/settings/limits",
        "/children/0",
    ] {
        later.pointer_mut(path).expect("an object")["new"] = json!([1]);
    }
    let read: HotRestartState = serde_json::from_value(later).expect("a handover");
    assert_eq!(read.machine, hot_restart_state().machine);
}

#[test]
fn a_machine_that_waits_for_another_program_is_saved_in_format_1() {
    assert_eq!(waiting().save(), hot_restart_state().machine);
}

#[test]
fn the_news_of_the_way_back_are_read_as_they_were_written() {
    let news = News {
        returned: Returned {
            wanted: Some(2),
            announced: true,
            pending: Some(RestartKind::Phased),
            ending: vec![2],
        },
        present: Some(vec![1]),
        resumed: false,
        reload_waits: false,
    };
    let mut written = json!({"wanted": 2, "announced": true, "pending": "Phased", "ending": [2], "present": [1]});
    assert_eq!(serde_json::to_value(&news).expect("JSON"), written);
    let nothing: News = serde_json::from_str("{}").expect("news");
    assert_eq!(
        (nothing.present, nothing.reload_waits, nothing.resumed),
        (None, false, false)
    );
    written["reload_waits"] = json!(true);
    written["resumed"] = json!(true);
    let waits: News = serde_json::from_value(written).expect("news");
    assert!(waits.reload_waits && waits.resumed);
}

#[test]
fn a_worker_that_was_lost_meanwhile_is_replaced_by_the_former_program() {
    let mut machine = waiting();
    let returned = Returned {
        ending: vec![2],
        ..Returned::default()
    };
    machine.resume(NOW, &returned);
    let mut actions = machine.step(NOW, Event::NotReexecuted(3, "broken".into()));
    actions.extend(machine.step(NOW, Event::Ended(2, End::Unknown)));
    assert!(ended(&machine, 2));
    let forks = actions
        .iter()
        .any(|action| matches!(action, Action::Fork { spawner: 1, .. }));
    assert!(forks, "{actions:?}");
}

#[test]
fn the_other_program_forks_nothing_for_the_generation_that_it_borrows() {
    let mut machine = Machine::take_over(&hot_restart_state().machine.expect("a restart"), limits(), NOW);
    let actions = machine.step(NOW, Event::Ended(2, End::Killed(9)));
    assert!(
        !actions.iter().any(|action| matches!(action, Action::Fork { .. })),
        "{actions:?}"
    );
    let actions = machine.step(NOW, Event::SpawnerReady(3, limits()));
    assert!(actions.contains(&Action::Adopt(2)), "{actions:?}");
    let actions = machine.step(NOW, Event::Adopted(2, Ok(())));
    let forks = actions
        .iter()
        .any(|action| matches!(action, Action::Fork { spawner: 3, .. }));
    assert!(forks, "{actions:?}");
}
