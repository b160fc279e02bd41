//! Commands that only Ruby can answer.

use crate::support::{answer, status, Answer, Builder, Server, PATIENCE};
use fairlead_supervisor::control::Question;
use std::io::Write;
use std::time::{Duration, Instant};

fn silence() -> Answer {
    answer(503, "text/plain", "Ruby does not answer")
}

/// A server that waits this long for Ruby.
fn patient(patience: Duration) -> Server {
    let mut builder = Builder::default();
    builder.limits.ruby = patience;
    builder.start()
}

#[test]
fn the_answer_of_ruby_is_passed_on() {
    let server = Builder::default().start();
    let questions = [
        ("gc", Question::Gc, r#"{ "status": "ok" }"#),
        ("gc-stats", Question::GcStats, r#"{"count":1}"#),
        ("thread-backtraces", Question::ThreadBacktraces, r#"{"count":1}"#),
    ];
    for (name, question, body) in questions {
        let mut client = server.send(&format!("/{name}?token=t"));
        let (asked, mut pipes) = server.question();
        assert_eq!((Some(question), name), (asked, question.name()));
        pipes[0].write_all(br#"{"count":1}"#).unwrap();
        drop(pipes);

        assert_eq!(answer(200, "application/json", body), client.answer());
    }
}

#[test]
fn a_long_answer_comes_whole() {
    let server = Builder::default().start();
    let mut client = server.send("/thread-backtraces?token=t");
    let (_, mut pipes) = server.question();
    let json = format!("[\"{}\"]", "x".repeat(1_000_000));
    pipes[0].write_all(json.as_bytes()).unwrap();
    drop(pipes);

    assert_eq!(json, client.answer().body);
}

#[test]
fn while_ruby_hangs_everything_else_is_answered() {
    let server = patient(PATIENCE);
    let mut clients = ["gc", "gc-stats", "thread-backtraces"].map(|name| server.send(&format!("/{name}?token=t")));
    let pipes = [server.question(), server.question(), server.question()];

    assert_eq!([200, 200], ["stats", "status"].map(|name| server.command(name).status));
    assert_eq!([200, 200], ["/ready", "/live"].map(|path| server.get(path).status));
    assert!(clients.iter().all(|client| client.is_silent()));
    drop(pipes);
    assert_eq!(
        [silence(), silence(), silence()],
        clients.each_mut().map(|client| client.answer())
    );
}

#[test]
fn ruby_has_a_limited_time() {
    let server = patient(Duration::from_millis(50));
    let asked_at = Instant::now();
    let mut client = server.send("/gc?token=t");
    let (_, pipes) = server.question();

    assert_eq!(silence(), client.answer());
    assert!(asked_at.elapsed() >= Duration::from_millis(50));
    drop(pipes);
}

#[test]
fn an_answer_that_is_not_complete_is_none() {
    let server = patient(Duration::from_secs(1));
    for text in ["", r#"{"count":"#, "no JSON"] {
        let mut client = server.send("/gc-stats?token=t");
        let (_, mut pipes) = server.question();
        pipes[0].write_all(text.as_bytes()).unwrap();
        drop(pipes);

        assert_eq!(silence(), client.answer(), "{text:?}");
    }
    let mut client = server.send("/gc?token=t");
    let (_, mut open) = server.question();
    open[0].write_all(b"true").unwrap();

    assert_eq!(silence(), client.answer());
}

#[test]
fn where_ruby_cannot_be_asked_the_response_comes_at_once() {
    let server = Builder {
        answers: false,
        ..Builder::default()
    }
    .start();

    assert_eq!(silence(), server.command("gc-stats"));
}

#[test]
fn a_worker_that_hangs_has_no_backtraces() {
    let server = patient(Duration::from_secs(1));
    let mut client = server.send("/backtraces?token=t");
    let (question, mut pipes) = server.question();
    assert_eq!((None, 2), (question, pipes.len()));
    let threads = r#"[{"name":"main","status":"run","request":null,"backtrace":["a:1"]}]"#;
    pipes[0].write_all(threads.as_bytes()).unwrap();
    let hanging = pipes.pop();
    drop(pipes);

    let body = format!(r#"[{{"worker":0,"pid":200,"threads":{threads}}},{{"worker":1,"pid":201,"threads":null}}]"#);
    assert_eq!(answer(200, "application/json", &body), client.answer());
    drop(hanging);
}

#[test]
fn a_server_without_children_has_no_backtraces() {
    let server = Builder {
        status: status(2),
        ..Builder::default()
    }
    .start();
    server.change(|status| status.children.clear());

    assert_eq!("[]", server.command("backtraces").body);
}

#[test]
fn requests_for_the_same_share_a_question_and_too_many_are_refused() {
    let server = Builder::default().start();
    let mut clients: Vec<_> = (0..32).map(|_| server.send("/gc-stats?token=t")).collect();
    let (_, mut pipes) = server.question();
    assert_eq!(200, server.get("/live").status); // so all requests have been read

    assert_eq!(
        answer(503, "text/plain", "Too many commands at once"),
        server.command("gc")
    );
    assert!(server.pipes.try_recv().is_err());
    pipes[0].write_all(b"{}").unwrap();
    drop(pipes);
    assert!(clients.iter_mut().all(|client| client.answer().body == "{}"));
}
