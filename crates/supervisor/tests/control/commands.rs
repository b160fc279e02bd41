//! The commands that control the server: status codes, types and texts are the same as Puma's.

use crate::support::{access, answer, scoreboard, status, Answer, Builder, Client, FakeHost};
use fairlead_supervisor::control::{Access, Asked, ControlServer, Kind};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn ok() -> Answer {
    answer(200, "application/json", r#"{ "status": "ok" }"#)
}

#[test]
fn the_server_is_asked_for_each_command() {
    let commands = [
        ("stop", Asked::Stop),
        ("halt", Asked::Halt),
        ("restart", Asked::Restart),
        ("phased-restart", Asked::PhasedRestart),
        ("refork", Asked::Refork),
        ("reopen-log", Asked::ReopenLogs),
        ("reload-certificates", Asked::ReloadCertificates),
        ("worker-count-up", Asked::AddWorker),
        ("worker-count-down", Asked::RemoveWorker),
        ("info", Asked::Backtraces),
    ];
    let server = Builder::default().start();
    for (name, asked) in commands {
        assert_eq!(ok(), server.command(name));
        assert_eq!(Some(&asked), server.asked().last());
    }
    assert_eq!(ok(), server.get("/puma/stop?x=y&token=t"));
}

#[test]
fn a_pause_has_a_timeout_and_needs_post() {
    let server = Builder::default().start();
    let post = |target: &str| {
        let mut client = server.connect();
        client.write(format!("POST /{target} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        client.answer()
    };
    assert_eq!(ok(), post("pause?token=t"));
    assert_eq!(ok(), post("pause?token=t&timeout=1.5"));
    assert_eq!(ok(), post("resume?token=t"));
    let asked = [
        Asked::Pause(None),
        Asked::Pause(Some(Duration::from_millis(1500))),
        Asked::Resume,
    ];
    assert_eq!(asked[..], server.asked());
    for timeout in ["soon", "-1", "inf", "NaN", "1e10", ""] {
        assert_eq!(
            400,
            post(&format!("pause?token=t&timeout={timeout}")).status,
            "{timeout}"
        );
    }
    for command in ["pause", "resume"] {
        assert_eq!(answer(405, "text/plain", "Use POST"), server.command(command));
    }
    assert_eq!(403, post("pause").status);
    assert_eq!(asked[..], server.asked());
}

#[test]
fn a_command_that_is_refused_gets_the_reason() {
    let server = Builder::default().start();
    *server.shared.refusal.lock().unwrap() = Some("the server is ending".into());

    assert_eq!(
        answer(409, "text/plain", "the server is ending"),
        server.command("restart")
    );
}

#[test]
fn a_wrong_token_is_refused_before_anything_else() {
    let server = Builder::default().start();
    for target in ["/stop", "/stop?token=x", "/nothing", "/stats", "/backtraces"] {
        assert_eq!(answer(403, "text/plain", "Invalid auth token"), server.get(target));
    }
    assert!(server.asked().is_empty());
}

#[test]
fn without_a_token_a_web_page_is_refused() {
    let open = Access {
        token: None,
        ..access()
    };
    let server = Builder {
        kind: Kind::Control(open),
        ..Builder::default()
    }
    .start();
    let mut page = server.connect();
    page.write("GET /stop HTTP/1.1\r\nhost: evil.example:9293\r\n\r\n");

    assert_eq!(
        answer(
            403,
            "text/plain",
            "The request comes from a web page, or is for another host"
        ),
        page.answer()
    );
    assert!(server.asked().is_empty());
    assert_eq!(ok(), server.get("/stop"));
}

#[test]
fn an_unknown_command_is_refused() {
    let server = Builder::default().start();

    assert_eq!(
        answer(404, "text/plain", "Unsupported action"),
        server.command("nothing")
    );
    assert_eq!(
        answer(404, "text/plain", "Unsupported action"),
        server.get("//?token=t")
    );
}

#[test]
fn with_data_only_nothing_is_changed() {
    let data_only = Access {
        data_only: true,
        ..access()
    };
    let server = Builder {
        kind: Kind::Control(data_only),
        answers: false,
        ..Builder::default()
    }
    .start();

    assert_eq!(
        answer(404, "text/plain", r#"Command "stop" unavailable"#),
        server.command("stop")
    );
    assert_eq!(answer(404, "text/plain", r#"Command "\xC3\e" unavailable"#), {
        let mut client = server.connect();
        client.write(b"GET /\xc3\x1b?token=t HTTP/1.1\r\n\r\n");
        client.answer()
    });
    assert!(server.asked().is_empty());
    assert_eq!(
        [200, 503, 200],
        ["stats", "gc-stats", "status"].map(|name| server.command(name).status)
    );
}

#[test]
fn commands_for_workers_are_not_available_without_them() {
    let server = Builder {
        status: status(0),
        ..Builder::default()
    }
    .start();

    assert_eq!(
        answer(404, "application/json", r#"{ "error": "refork not available" }"#),
        server.command("refork")
    );
    assert_eq!(
        answer(
            404,
            "application/json",
            r#"{ "error": "reload_worker_directory not available" }"#
        ),
        server.command("reload-worker-directory")
    );
    assert!(server.asked().is_empty());
    server.change(|status| status.workers = 2);
    assert_eq!(ok(), server.command("reload-worker-directory"));
}

#[test]
fn the_next_server_at_the_same_address_has_other_rights_and_keeps_the_peaks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let copy = listener.try_clone().unwrap();
    let mut former = ControlServer::new(vec![copy.into()], &Kind::Control(access())).unwrap();
    let scoreboard = scoreboard();
    let mut host = FakeHost::new(status(0), Some(Arc::clone(&scoreboard)));
    scoreboard.slot(0).beat();
    scoreboard.slot(0).queued.store(50, Relaxed);
    former.turn(Instant::now(), &mut host);
    scoreboard.slot(0).queued.store(1, Relaxed);
    let other = Access {
        token: Some("new".into()),
        ..access()
    };
    let mut server = ControlServer::new(vec![listener.into()], &Kind::Control(other)).unwrap();
    server.succeed(&mut former);
    former.close_gracefully(Instant::now());
    let [refused, taken] = ["t", "new"].map(|token| {
        let mut client = Client(TcpStream::connect(address).unwrap());
        client.write(format!("GET /stats?token={token} HTTP/1.1\r\n\r\n"));
        server.turn(Instant::now(), &mut host);
        client.answer()
    });

    assert_eq!((403, 200), (refused.status, taken.status));
    assert!(taken.body.contains(r#""backlog_max":50,"#), "{}", taken.body);
}
