//! `/status` and `/stats`, byte for byte as the Ruby server of version 0.1 wrote them.

use crate::support::{child, scoreboard, started_at, status, Builder, Server};
use fairlead_engine::Scoreboard;
use fairlead_supervisor::control::{RawValue, Restart, RestartState, ServerState, Status};
use fairlead_supervisor::machine::RestartKind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn count(scoreboard: &Scoreboard, slot: usize, queued: i64) {
    let slot = scoreboard.slot(slot);
    slot.beat();
    slot.connections.store(9, Relaxed);
    slot.requests.store(70, Relaxed);
    slot.queued.store(queued, Relaxed);
    slot.threads.store(4, Relaxed);
    slot.busy_threads.store(2, Relaxed);
    slot.clients.store(1, Relaxed);
}

fn serve(status: Status, scoreboard: Arc<Scoreboard>) -> (Server, Arc<Scoreboard>) {
    let server = Builder {
        status,
        scoreboard: Some(Arc::clone(&scoreboard)),
        ..Builder::default()
    };
    (server.start(), scoreboard)
}

/// A serving worker, an ending worker of the previous generation, and a worker that is being forked.
fn in_a_restart() -> Status {
    let mut children = [child(0), child(1), child(2)];
    (children[0].generation, children[1].generation, children[2].generation) = (3, 2, 3);
    children[1].ending = true;
    (children[2].booted, children[2].pid) = (false, None);
    Status {
        state: ServerState::Restarting,
        generation: 3,
        restart: Some(Restart {
            kind: RestartKind::Phased,
            state: RestartState::Failed,
            error: Some("config.ru:1: \"no\"\nluck".into()),
            at: started_at(),
        }),
        children: children.to_vec(),
        ..status(2)
    }
}

#[test]
fn workers_are_shown_as_ruby_showed_them() {
    let scoreboard = scoreboard();
    count(&scoreboard, 0, 3);
    count(&scoreboard, 1, 0);
    scoreboard.moved.store(4, Relaxed);
    scoreboard.refused.store(1, Relaxed);
    let (server, _) = serve(in_a_restart(), scoreboard);

    assert_eq!(
        include_str!("answers/status_of_workers.json").trim_end(),
        server.command("status").body
    );
    assert_eq!(
        include_str!("answers/stats_of_workers.json").trim_end(),
        server.command("stats").body
    );
}

#[test]
fn a_sole_process_is_shown_as_ruby_showed_it() {
    let scoreboard = scoreboard();
    count(&scoreboard, 0, 3);
    let times = r#""expires_at":"2026-01-02T03:04:05.678Z","next_attempt_at":null"#;
    let acme = format!(r#"[{{"hosts":["a.example"],"directory":"d",{times},"failures":0,"error":null}}]"#);
    let acme = RawValue::from_string(acme).unwrap();
    let (server, _) = serve(
        Status {
            acme: Some(acme),
            ..status(0)
        },
        scoreboard,
    );

    assert_eq!(
        include_str!("answers/status_of_sole.json").trim_end(),
        server.command("status").body
    );
    assert_eq!(
        include_str!("answers/stats_of_sole.json").trim_end(),
        server.command("stats").body
    );
}

#[test]
fn in_a_restart_without_workers_the_process_that_serves_is_shown() {
    let scoreboard = scoreboard();
    count(&scoreboard, 0, 3);
    count(&scoreboard, 1, 8);
    let mut both = status(0);
    both.children.push(child(1));
    both.children[1].generation = 2;
    both.children[1].booted = false;
    let (server, _) = serve(both, scoreboard);
    let backlog = || {
        let stats: serde_json::Value = serde_json::from_str(&server.command("stats").body).unwrap();
        stats["backlog"].as_i64().unwrap()
    };

    assert_eq!(3, backlog());
    server.change(|status| status.children[1].booted = true);
    assert_eq!(8, backlog());
}

#[test]
fn a_process_that_has_not_started_has_no_counters() {
    let (server, _) = serve(status(0), scoreboard());

    assert!(server.command("status").body.ends_with(r#""counters":null}"#));
    assert!(server
        .command("stats")
        .body
        .contains(r#""backlog":0,"running":0,"pool_capacity":5"#));
}

#[test]
fn a_worker_that_boots_has_no_pool_yet() {
    let scoreboard = scoreboard();
    count(&scoreboard, 0, 3);
    let (server, _) = serve(status(1), scoreboard);
    assert!(server.command("stats").body.contains(r#""booted":true"#));
    assert!(!server.command("stats").body.contains(r#""last_status":{}"#));
    server.change(|status| status.children[0].booted = false);

    assert!(server.command("stats").body.contains(r#""last_status":{}"#));
}

#[test]
fn without_shared_memory_there_is_still_an_answer() {
    let server = Builder {
        scoreboard: None,
        ..Builder::default()
    }
    .start();

    let status = server.command("status").body;
    assert!(
        status.contains(r#""waits":{}"#) && status.contains(r#""waiting_room":null"#),
        "{status}"
    );
    assert!(server.command("stats").body.contains(r#""last_status":{}"#));
}

#[test]
fn the_last_sign_of_life_has_a_time() {
    let mut one = status(1);
    one.children[0].heartbeat_age = Some(0.5);
    let (server, _) = serve(one, scoreboard());
    let before = humantime(SystemTime::now() - Duration::from_millis(500));
    let stats: serde_json::Value = serde_json::from_str(&server.command("stats").body).unwrap();
    let after = humantime(SystemTime::now() - Duration::from_millis(500));
    let checkin = stats["worker_status"][0]["last_checkin"].as_str().unwrap();

    assert!(
        before.as_str() <= checkin && checkin <= after.as_str(),
        "{before} {checkin} {after}"
    );
    assert!(server.command("status").body.contains(r#""heartbeat_age":0.5"#));
}

fn humantime(at: SystemTime) -> String {
    let at = time::OffsetDateTime::from(at);
    let (month, (hour, minute, second)) = (u8::from(at.month()), at.time().as_hms());
    format!(
        "{}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z",
        at.year(),
        at.day()
    )
}

#[test]
fn a_peak_between_two_reads_is_shown_once() {
    let scoreboard = scoreboard();
    count(&scoreboard, 0, 50);
    let (server, scoreboard) = serve(status(0), scoreboard);
    // The first turn has read the counters and responded to the probe.
    assert_eq!(200, server.get("/live").status);
    assert_eq!(200, server.get("/live").status);
    scoreboard.slot(0).queued.store(1, Relaxed);

    assert!(server.command("stats").body.contains(r#""backlog_max":50,"#));
    assert!(server.command("stats").body.contains(r#""backlog_max":1,"#));
}
