//! The probes.

use crate::support::{answer, child, status, Answer, Builder};
use fairlead_supervisor::control::{Kind, Paused, ServerState};
use std::time::Duration;

fn verdict(status: u16, word: &str) -> Answer {
    answer(status, "application/json", &format!(r#"{{"status":"{word}"}}"#))
}

#[test]
fn it_is_ready_from_the_end_of_the_start_until_the_drain() {
    let states = [
        (ServerState::Starting, 503, "starting"),
        (ServerState::Ready, 200, "ready"),
        (ServerState::Restarting, 200, "restarting"),
        (ServerState::Draining, 503, "draining"),
    ];
    for workers in [0, 2] {
        let server = Builder {
            kind: Kind::Health,
            status: status(workers),
            ..Builder::default()
        }
        .start();
        for (state, code, word) in states {
            server.change(|status| status.state = state);

            assert_eq!(verdict(code, word), server.get("/ready"));
            assert_eq!(verdict(200, "live"), server.get("/live"));
        }
    }
}

#[test]
fn a_paused_server_is_ready_and_says_so() {
    let server = Builder {
        kind: Kind::Health,
        ..Builder::default()
    }
    .start();
    let (timeout, left) = (Duration::from_secs(30), Duration::from_secs(60));
    server.change(|status| status.pause = Some(Paused { timeout, left }));

    assert_eq!(verdict(200, "paused"), server.get("/ready"));
    server.change(|status| status.state = ServerState::Draining);
    assert_eq!(verdict(503, "draining"), server.get("/ready"));
}

#[test]
fn it_is_not_ready_while_no_process_serves() {
    let server = Builder {
        kind: Kind::Health,
        ..Builder::default()
    }
    .start();
    let (mut fresh, mut ending) = (child(0), child(1));
    (fresh.booted, ending.ending) = (false, true);
    server.change(|status| status.children = vec![fresh, ending]);

    assert_eq!(verdict(503, "no worker serves"), server.get("/ready"));
    server.change(|status| status.children.clear());
    assert_eq!(verdict(503, "no worker serves"), server.get("/ready"));
    server.change(|status| status.workers = 0);
    assert_eq!(verdict(503, "no worker serves"), server.get("/ready"));
}

#[test]
fn there_is_nothing_else_at_the_health_endpoints() {
    let server = Builder {
        kind: Kind::Health,
        ..Builder::default()
    }
    .start();

    assert_eq!(
        answer(404, "text/plain", "Unsupported action"),
        server.get("/stats?token=t")
    );
}

#[test]
fn the_control_server_has_the_probes_without_a_token() {
    let server = Builder::default().start();

    assert_eq!(verdict(200, "ready"), server.get("/ready"));
    assert_eq!(verdict(200, "live"), server.get("/live"));
}
