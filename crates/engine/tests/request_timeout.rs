//! Requests that run longer than their timeout: the client gets a 504 at the deadline, and the late response is discarded.

mod support;

use fairlead_engine::{Config, Exchange, FilesConfig, Gone};
use std::io::Read;
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};
use support::http2::{get, Http2Client};
use support::*;

const MS: Duration = Duration::from_millis(1);

fn timeout(request_timeout: Duration) -> Config {
    Config {
        min_threads: 2,
        max_threads: 2,
        request_timeout,
        ..config()
    }
}

/// A server on which requests for `/hold` first wait until they are released, and then call `respond`.
struct Holding {
    release: mpsc::Sender<()>,
    server: Server,
}

impl Holding {
    fn start(config: Config, respond: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static) -> Holding {
        let (release, hold) = mpsc::channel::<()>();
        let hold = Mutex::new(hold);
        let server = Server::start(config, move |exchange| {
            if path(exchange) == "/hold" {
                let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            }
            respond(exchange);
        });
        Holding { release, server }
    }

    fn late(&self) -> u64 {
        self.server.engine.stats().timed_out_requests
    }
}

#[test]
fn the_client_gets_a_504_at_the_deadline_and_the_late_response_is_discarded() {
    let written = Arc::new(Mutex::new(None));
    let result = Arc::clone(&written);
    let holding = Holding::start(timeout(100 * MS), move |exchange| {
        exchange.start(200);
        exchange.end_head(Some(4));
        *result.lock().expect("no panic") = Some(exchange.write(b"late"));
        exchange.finish();
    });
    let mut client = holding.server.connect();
    let began = Instant::now();
    let response = client.get("/hold");
    assert_eq!(response.status, 504);
    assert!(began.elapsed() >= 100 * MS);
    assert!(response.head.contains("\r\nconnection: close\r\n"), "{}", response.head);
    assert!(client.is_closed());
    // The other thread serves meanwhile.
    assert_eq!(holding.server.connect().get("/").text(), "late");
    assert_eq!(*written.lock().expect("no panic"), Some(Ok(4)));
    let _ = holding.release.send(());
    eventually("the thread is free", || holding.server.engine.stats().busy_threads == 0);
    assert_eq!(*written.lock().expect("no panic"), Some(Err(Gone)));
    assert_eq!(holding.late(), 1);
    eventually("the connection is closed", || {
        holding.server.engine.stats().connections == 0
    });
}

#[test]
fn a_response_that_has_begun_in_time_may_take_longer() {
    let holding = Holding::start(timeout(50 * MS), |exchange| {
        exchange.start(200);
        exchange.end_head(None);
        let _ = exchange.write(b"first ");
        exchange.flush();
        std::thread::sleep(150 * MS);
        let _ = exchange.write(b"last");
    });
    let mut client = holding.server.connect();
    assert_eq!(client.get("/").text(), "first last");
    assert_eq!(client.get("/").text(), "first last");
    assert_eq!(holding.late(), 0);
}

#[test]
fn a_path_has_its_own_timeout() {
    let rules = [("/slow/*", 10_000 * MS), ("/free", Duration::ZERO), ("/quick", 20 * MS)];
    let config = Config {
        request_timeout_for: rules.map(|(path, time)| (path.to_string(), time)).to_vec(),
        ..timeout(50 * MS)
    };
    let holding = Holding::start(config, |exchange| {
        std::thread::sleep(120 * MS);
        reply(exchange, "served");
    });
    let statuses = ["/slow/1", "/free", "/quick", "/other"].map(|path| holding.server.connect().get(path).status);
    assert_eq!(statuses, [200, 200, 504, 504]);
}

#[test]
fn the_app_can_set_another_deadline_until_it_responds() {
    let set = Arc::new(Mutex::new(Vec::new()));
    let results = Arc::clone(&set);
    let holding = Holding::start(timeout(60 * MS), move |exchange| {
        let longer = exchange.set_timeout(Some(10_000 * MS)).is_some();
        std::thread::sleep(120 * MS);
        reply(exchange, "served");
        let after = exchange.set_timeout(Some(MS)).is_some();
        results.lock().expect("no panic").push((longer, after));
    });
    assert_eq!(holding.server.connect().get("/").text(), "served");
    assert_eq!(*set.lock().expect("no panic"), [(true, false)]);
    assert_eq!(holding.late(), 0);
}

#[test]
fn a_deadline_cannot_be_moved_once_it_has_expired() {
    let holding = Holding::start(timeout(30 * MS), |exchange| {
        std::thread::sleep(100 * MS);
        assert_eq!(exchange.set_timeout(Some(10_000 * MS)), None);
        assert!(exchange.is_client_gone());
        assert!(exchange.hijack().is_err());
    });
    assert_eq!(holding.server.connect().get("/").status, 504);
    eventually("the thread is free", || holding.server.engine.stats().busy_threads == 0);
}

#[test]
fn early_hints_do_not_count_as_a_response() {
    let config = Config {
        early_hints: true,
        ..timeout(60 * MS)
    };
    let holding = Holding::start(config, |exchange| {
        for _ in 0..20 {
            exchange.start_early_hints();
            let _ = exchange.field(b"link", b"</a.css>");
            exchange.end_early_hints();
            std::thread::sleep(10 * MS);
        }
        reply(exchange, "late");
    });
    let mut client = holding.server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let text = String::from_utf8(client.rest()).expect("a text");
    let hints = text.matches("HTTP/1.1 103 ").count();
    assert!((2..20).contains(&hints), "{text}");
    assert!(
        text.contains("\r\n\r\nHTTP/1.1 504 ") && !text.contains("late"),
        "{text}"
    );
}

/// A page that is larger than the window of the stream.
#[test]
fn a_client_that_takes_the_response_slowly_gets_all_of_it() {
    for ends_early in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("504.html"), "x".repeat(60_000)).expect("a file");
        let config = Config {
            files: FilesConfig {
                public_dir: Some(folder.path().into()),
                ..FilesConfig::default()
            },
            ..timeout(50 * MS)
        };
        let holding = Holding::start(config, |exchange| {
            exchange.start(200);
            exchange.end_head(None);
        });
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(10_000);
        let mut client = Http2Client::with(holding.server.address, &builder);
        let asked = client.ask(get("/hold"), false);
        eventually("the deadline", || {
            client.advance();
            holding.late() == 1
        });
        if ends_early {
            let _ = holding.release.send(());
            eventually("the thread is free", || holding.server.engine.stats().busy_threads == 0);
        }
        let response = client.response(asked).expect("a response");
        assert_eq!((response.status, response.body.len()), (504, 60_000));
    }
}

/// The client has a part of an interim response, which no other response can follow.
#[test]
fn a_half_sent_interim_response_ends_with_the_connection() {
    let config = Config {
        early_hints: true,
        ..timeout(300 * MS)
    };
    let holding = Holding::start(config, |exchange| {
        let value = [b'z'; 8_000];
        for _ in 0..2_000 {
            exchange.start_early_hints();
            let _ = exchange.field(b"link", &value);
            exchange.end_early_hints();
        }
        std::thread::sleep(600 * MS);
        reply(exchange, "late");
    });
    let mut client = holding.server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the deadline", || holding.late() == 1);
    let text = String::from_utf8(client.rest()).expect("a text");
    assert!(
        text.starts_with("HTTP/1.1 103 ") && !text.contains("504"),
        "{} bytes",
        text.len()
    );
}

#[test]
fn a_stream_of_http2_gets_its_504_and_the_others_go_on() {
    let holding = Holding::start(timeout(100 * MS), |exchange| reply(exchange, "served"));
    let mut client = Http2Client::connect(holding.server.address);
    let late = client.ask(get("/hold"), false);
    let other = client.ask(get("/"), false);
    assert_eq!(client.response(other).expect("a response").text(), "served");
    let response = client.response(late).expect("a response");
    assert_eq!(response.status, 504);
    assert!(response.text().contains("Gateway Timeout"), "{}", response.text());
    let _ = holding.release.send(());
    eventually("the thread is free", || holding.server.engine.stats().busy_threads == 0);
    let next = client.ask(get("/"), false);
    assert_eq!(client.response(next).expect("a response").text(), "served");
}

#[test]
fn a_head_request_gets_no_body() {
    let holding = Holding::start(timeout(50 * MS), |exchange| reply(exchange, "served"));
    let mut client = holding.server.connect();
    client.send("HEAD /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    let text = String::from_utf8(client.rest()).expect("a text");
    assert!(
        text.starts_with("HTTP/1.1 504 ") && text.ends_with("\r\n\r\n"),
        "{text}"
    );
}

#[test]
fn a_relayed_request_gets_its_504_through_the_worker_that_has_the_connection() {
    let (queues, _) = shared_queues();
    let (release, hold) = mpsc::channel::<()>();
    let hold = Arc::new(Mutex::new(hold));
    let worker = |slot| {
        let hold = Arc::clone(&hold);
        let call = move |exchange: &mut Exchange<'_>| {
            if path(exchange) == "/hold" {
                while hold
                    .try_lock()
                    .map_or(Err(mpsc::TryRecvError::Empty), |hold| hold.try_recv())
                    == Err(mpsc::TryRecvError::Empty)
                {
                    std::thread::sleep(MS);
                }
            }
            reply(exchange, "served");
        };
        let config = Config {
            max_threads: 1,
            min_threads: 1,
            ..timeout(300 * MS)
        };
        Server::with_tls(&listen(), config, Some((Arc::clone(&queues), slot)), Arc::new(call))
    };
    let workers = [worker(0), worker(1)];
    let mut first = tls::connect(&workers[0]);
    first.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it is busy", || workers[0].engine.stats().busy_threads == 1);
    let mut second = tls::connect(&workers[0]);
    second.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the other worker runs it", || {
        workers[1].engine.stats().busy_threads == 1
    });
    for client in [&mut first, &mut second] {
        assert_eq!(client.response().status, 504);
        assert!(client.is_closed());
    }
    drop(release);
    eventually("the threads are free", || {
        workers.iter().all(|worker| worker.engine.stats().busy_threads == 0)
    });
}

#[test]
fn requests_that_still_run_count_as_stuck_until_they_end() {
    let (queues, scoreboard) = shared_queues();
    let config = Config {
        stuck_after: 50 * MS,
        ..timeout(50 * MS)
    };
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let call = move |exchange: &mut Exchange<'_>| {
        let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        reply(exchange, "late");
    };
    let server = Server::on(&listen(), config, Some((queues, 3)), Arc::new(call));
    let stuck = || scoreboard.slot(3).stuck.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.connect().get("/").status, 504);
    eventually("it is stuck", || stuck() == 1);
    drop(release);
    eventually("it is not", || stuck() == 0);
}

#[test]
fn the_signal_reports_each_expired_deadline() {
    let holding = Holding::start(timeout(30 * MS), |exchange| {
        std::thread::sleep(60 * MS);
        assert!(exchange.deadline().expect("a deadline").take_expired());
        assert!(!exchange.deadline().expect("a deadline").take_expired());
        reply(exchange, "late");
    });
    let signal = holding.server.engine.deadline_signal().expect("a descriptor");
    assert_eq!(holding.server.connect().get("/").status, 504);
    // An eventfd is read like any other descriptor.
    let mut signal = std::fs::File::from(signal);
    eventually("it is signalled", || signal.read(&mut [0; 8]).is_ok());
}
