//! The commands that steer the server: status codes, types and texts are Puma's.

use crate::support::{access, answer, status, Answer, Builder};
use fairlead_supervisor::control::{Access, Asked, ControlServer, Kind};
use std::net::TcpListener;

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
    assert_eq!(answer(404, "text/plain", "Unsupported action"), server.get("/?token=t"));
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
fn other_rights_take_effect_at_the_same_address() {
    use crate::support::{FakeHost, Shared};
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = ControlServer::new(vec![listener.into()], &Kind::Control(access())).unwrap();
    let shared = std::sync::Arc::new(Shared::default());
    *shared.status.lock().unwrap() = Some(status(2));
    let mut host = FakeHost {
        shared,
        scoreboard: None,
        pipes: None,
    };
    let other = Access {
        token: Some("new".into()),
        ..access()
    };
    server.change(&Kind::Control(other));
    let codes = ["t", "new"].map(|token| {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        write!(client, "GET /stop?token={token} HTTP/1.1\r\n\r\n").unwrap();
        server.turn(std::time::Instant::now(), &mut host);
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text[9..12].to_owned()
    });

    assert_eq!(["403", "200"], codes.each_ref().map(String::as_str));
}
