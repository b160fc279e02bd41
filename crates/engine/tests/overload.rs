//! Requests that wait for a thread, and are refused or dropped instead of run.

mod support;

use fairlead_engine::{Config, Exchange, FairBy};
use h2::Reason;
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};
use support::http2::{get, request, Http2Client};
use support::*;

const MS: Duration = Duration::from_millis(1);

/// A worker with a thread that is held until it is released. It notes the paths that it has served.
struct Held {
    /// Dropped before the server: a thread of the server waits for it.
    release: mpsc::Sender<()>,
    server: Server,
    served: Arc<Mutex<Vec<String>>>,
    first: Client,
}

impl Held {
    fn start(config: Config) -> Held {
        let (release, hold) = mpsc::channel::<()>();
        let (hold, served) = (Mutex::new(hold), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&served);
        let server = Server::start(config, move |exchange| {
            let path = path(exchange);
            if path == "/first" {
                let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            }
            seen.lock().expect("no panic").push(path);
            reply(exchange, "served");
        });
        let mut first = server.connect();
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("it is held", || server.engine.stats().busy_threads == 1);
        Held {
            server,
            served,
            release,
            first,
        }
    }

    /// A client that has sent a request and waits.
    fn client(&self, path: &str, fields: &str) -> Client {
        let mut client = self.server.connect();
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        client
    }

    fn await_waiting(&self, count: i64) {
        eventually("the requests wait", || self.server.engine.stats().queued == count);
    }

    /// Ends the hold, and returns the paths that are served then.
    fn release(&mut self) -> Vec<String> {
        let _ = self.release.send(());
        assert_eq!(self.first.response().status, 200);
        self.served.lock().expect("no panic").clone()
    }
}

fn timeout(queue_timeout: Duration) -> Config {
    Config {
        queue_timeout,
        ..config()
    }
}

#[test]
fn a_request_that_no_thread_takes_in_time_is_refused_and_keeps_its_connection() {
    let mut held = Held::start(timeout(100 * MS));
    let mut client = held.client("/late", "");
    let response = client.response();
    assert_eq!(response.status, 503);
    assert!(response.head.contains("\r\nretry-after: 1\r\n"), "{}", response.head);
    assert!(!response.head.contains("connection: close"), "{}", response.head);
    assert_eq!(held.release(), ["/first"]);
    assert_eq!(client.get("/again").text(), "served");
    let stats = held.server.engine.stats();
    assert_eq!((stats.refused_requests, stats.requests), (1, 2));
}

#[test]
fn pipelined_requests_are_refused_in_order() {
    let held = Held::start(timeout(50 * MS));
    let mut client = held.server.connect();
    let one = "GET /late HTTP/1.1\r\nHost: test\r\n\r\n";
    client.send(&[one, one, "GET /end HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"].concat());
    assert_eq!([(); 3].map(|()| client.response().status), [503; 3]);
    assert!(client.is_closed());
}

#[test]
fn requests_with_priority_are_never_refused() {
    let mut held = Held::start(Config {
        priority_paths: vec!["/up".into()],
        queue_limit: 1,
        ..timeout(20 * MS)
    });
    let mut urgent = held.client("/up", "");
    held.await_waiting(1);
    assert_eq!(held.client("/late", "").response().status, 503);
    held.await_waiting(1);
    held.release();
    assert_eq!(urgent.response().text(), "served");
    assert_eq!(*held.served.lock().expect("no panic"), ["/first", "/up"]);
}

#[test]
fn all_streams_of_a_connection_are_refused_although_only_one_of_them_is_in_the_queue() {
    let held = Held::start(timeout(100 * MS));
    let mut client = Http2Client::connect(held.server.address);
    let asked: Vec<_> = (0..50).map(|_| client.ask(get("/late"), false)).collect();
    let began = Instant::now();
    for one in asked {
        assert_eq!(client.response(one).expect("a response").status, 503);
    }
    assert!(began.elapsed() < 20 * 100 * MS, "{:?}", began.elapsed());
}

/// A client may not repeat a POST unless it knows that the request was not run.
#[test]
fn a_stream_that_may_not_be_repeated_is_refused_so_that_it_may() {
    let held = Held::start(timeout(50 * MS));
    let mut client = Http2Client::connect(held.server.address);
    let asked = client.ask(request("POST", "/late"), false);
    let error = client.response(asked).expect_err("no response");
    assert_eq!(error.reason(), Some(Reason::REFUSED_STREAM));
    let asked = client.ask(request("DELETE", "/late"), false);
    assert_eq!(client.response(asked).expect("a response").status, 503);
}

#[test]
fn a_full_queue_refuses_the_last_request_at_once() {
    let mut held = Held::start(Config {
        queue_limit: 2,
        ..config()
    });
    let mut waiting = [held.client("/1", ""), held.client("/2", "")];
    held.await_waiting(2);
    assert_eq!(held.client("/3", "").response().status, 503);
    held.release();
    for client in &mut waiting {
        assert_eq!(client.response().text(), "served");
    }
}

#[test]
fn a_full_queue_refuses_the_client_with_most_requests() {
    let mut held = Held::start(Config {
        queue_limit: 3,
        fair_by: FairBy::Field((*b"x-client").into()),
        ..config()
    });
    // The heavy client has used a thread before.
    let heavy: Vec<Client> = (0..3).map(|_| held.client("/heavy", "x-client: heavy\r\n")).collect();
    held.await_waiting(3);
    let mut light = held.client("/light", "x-client: light\r\n");
    let refused = |client: &mut Client| {
        client.stream.set_nonblocking(true).expect("a socket");
        client.stream.peek(&mut [0; 1]).is_ok()
    };
    let mut heavy = heavy;
    eventually("one of the heavy client's is refused", || heavy.iter_mut().any(refused));
    held.await_waiting(3);
    held.release();
    assert_eq!(light.response().text(), "served");
}

/// Only one stream of each connection is in the queue. A refused stream makes room for the next one.
#[test]
fn streams_of_the_client_with_most_requests_do_not_make_a_full_queue_longer() {
    let mut held = Held::start(Config {
        queue_limit: 3,
        fair_by: FairBy::Field((*b"x-client").into()),
        ..config()
    });
    let mut heavy: Vec<Http2Client> = (0..3).map(|_| Http2Client::connect(held.server.address)).collect();
    let ask = |client: &mut Http2Client| {
        let mut heavy = get("/heavy");
        heavy
            .headers_mut()
            .insert("x-client", http::HeaderValue::from_static("heavy"));
        client.ask(heavy, false)
    };
    let asked: Vec<Vec<_>> = heavy
        .iter_mut()
        .map(|client| (0..5).map(|_| ask(client)).collect())
        .collect();
    held.await_waiting(15);
    let mut light: Vec<Client> = Vec::new();
    for (number, waiting) in [(1, 11), (2, 7)] {
        light.push(held.client("/light", &format!("x-client: {number}\r\n")));
        held.await_waiting(waiting);
    }
    assert_eq!(held.client("/late", "x-client: 3\r\n").response().status, 503);
    held.release();
    for client in &mut light {
        assert_eq!(client.response().text(), "served");
    }
    let mut statuses = Vec::new();
    for (client, asked) in heavy.iter_mut().zip(asked) {
        statuses.extend(
            asked
                .into_iter()
                .map(|one| client.response(one).expect("a response").status),
        );
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 5], [503; 5], [503; 5]].concat());
}

#[test]
fn a_client_that_resets_its_connection_while_it_waits_is_dropped() {
    let mut held = Held::start(config());
    let gone = held.client("/gone", "");
    let mut client = held.client("/there", "");
    held.await_waiting(2);
    set_socket_linger(&gone.stream, Some(Duration::ZERO)).expect("a socket");
    drop(gone);
    eventually("it is dropped", || held.server.engine.stats().abandoned_requests == 1);
    held.release();
    assert_eq!(client.response().text(), "served");
    assert_eq!(*held.served.lock().expect("no panic"), ["/first", "/there"]);
    assert_eq!(held.server.engine.stats().refused_requests, 0);
}

#[test]
fn a_client_that_closes_its_connection_while_it_waits_is_asked_and_dropped() {
    let mut held = Held::start(config());
    drop(held.client("/gone", ""));
    eventually("it is dropped", || held.server.engine.stats().abandoned_requests == 1);
    assert_eq!(held.release(), ["/first"]);
}

#[test]
fn a_client_that_closes_its_half_gets_its_response() {
    let mut held = Held::start(config());
    let mut client = held.client("/half", "connection: close\r\n");
    held.await_waiting(1);
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    let mut interim = [0; 25];
    client.stream.read_exact(&mut interim).expect("the question");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    held.release();
    let response = client.rest();
    assert!(
        response.starts_with(b"HTTP/1.1 200 "),
        "{:?}",
        String::from_utf8_lossy(&response)
    );
}

/// A client of HTTP/1.0 does not know interim responses.
#[test]
fn an_old_client_is_not_asked() {
    let mut held = Held::start(config());
    let mut client = held.server.connect();
    client.send("GET /old HTTP/1.0\r\n\r\n");
    held.await_waiting(1);
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    let mut later = held.client("/later", "");
    // The second one is asked after the first one has been looked at.
    later.stream.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(later.response().status, 100);
    held.release();
    let response = client.rest();
    assert!(
        response.starts_with(b"HTTP/1.1 200 "),
        "{:?}",
        String::from_utf8_lossy(&response)
    );
}

#[test]
fn a_stream_that_is_reset_while_it_waits_is_dropped() {
    let mut held = Held::start(config());
    let mut client = Http2Client::connect(held.server.address);
    let gone = client.ask(get("/gone"), false);
    client.advance();
    held.await_waiting(1);
    drop(gone);
    eventually("it is dropped", || {
        client.advance();
        held.server.engine.stats().queued == 0
    });
    assert_eq!(held.release(), ["/first"]);
}

/// Sends requests at a rate, from a connection each; returns the statuses and the times.
fn flood(server: &Server, count: usize, pause: Duration) -> Vec<(u16, Duration)> {
    let threads: Vec<_> = (0..count)
        .map(|_| {
            std::thread::sleep(pause);
            let address = server.address;
            std::thread::spawn(move || {
                let began = Instant::now();
                let mut client = Client::connect(address);
                (client.get("/").status, began.elapsed())
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("a response"))
        .collect()
}

#[test]
fn while_overloaded_some_are_served_in_time_and_the_rest_is_refused() {
    let overload = Config {
        queue_target: 100 * MS,
        queue_interval: 100 * MS,
        ..config()
    };
    let server = Server::start(overload, |exchange| {
        std::thread::sleep(20 * MS);
        reply(exchange, "served");
    });
    // A quarter of what a thread can do.
    let before = flood(&server, 15, 80 * MS);
    assert!(before.iter().all(|(status, _)| *status == 200), "{before:?}");
    // Four times as much, for two seconds.
    let responses = flood(&server, 400, 5 * MS);
    let served = responses.iter().filter(|(status, _)| *status == 200).count();
    let refused = responses.iter().filter(|(status, _)| *status == 503).count();
    assert_eq!(served + refused, 400);
    // The thread is never idle meanwhile: it serves as many as it can.
    assert!(refused >= 100 && served >= 40, "{served} served, {refused} refused");
    let mut times: Vec<Duration> = responses
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, time)| *time)
        .collect();
    times.sort_unstable();
    // Without the limit, the last one would wait for six seconds.
    assert!(times[times.len() / 2] < 1_000 * MS, "{times:?}");
    assert_eq!(server.connect().get("/").status, 200);
}

/// Health checks overtake the queue, so their short waits do not hide that it stands.
#[test]
fn urgent_requests_do_not_hide_an_overload() {
    let overload = Config {
        queue_target: 50 * MS,
        queue_interval: 100 * MS,
        priority_paths: vec!["/up".into()],
        ..config()
    };
    let server = Server::start(overload, |exchange| {
        std::thread::sleep(20 * MS);
        reply(exchange, "served");
    });
    let (address, stop) = (server.address, std::sync::atomic::AtomicBool::new(false));
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(address);
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                assert_eq!(client.get("/up").status, 200);
            }
        });
        let responses = flood(&server, 200, 5 * MS);
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        responses.iter().filter(|(status, _)| *status == 503).count()
    });
    assert!(refused >= 50, "{refused}");
}

#[test]
fn streams_that_wait_in_line_are_refused_in_time_by_workers_too() {
    let (queues, _) = shared_queues();
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let call = move |exchange: &mut Exchange<'_>| {
        if path(exchange) == "/first" {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        reply(exchange, "served");
    };
    let server = Server::on(&listen(), timeout(200 * MS), Some((queues, 0)), Arc::new(call));
    let mut first = server.connect();
    first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it is held", || server.engine.stats().busy_threads == 1);
    let mut client = Http2Client::connect(server.address);
    let began = Instant::now();
    let asked: Vec<_> = (0..30).map(|_| client.ask(get("/late"), false)).collect();
    for one in asked {
        assert_eq!(client.response(one).expect("a response").status, 503);
    }
    // Two at a time, they would take 15 times as long as the timeout.
    assert!(began.elapsed() < 7 * 200 * MS, "{:?}", began.elapsed());
    drop(release);
    assert_eq!(first.response().status, 200);
}

#[test]
fn while_every_thread_hangs_the_overload_is_noticed_too() {
    let mut held = Held::start(Config {
        queue_target: 50 * MS,
        queue_interval: 50 * MS,
        ..config()
    });
    let mut client = held.client("/late", "");
    assert_eq!(client.response().status, 503);
    assert_eq!(held.release(), ["/first"]);
    client.stream.flush().expect("a socket");
}
