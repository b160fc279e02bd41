//! One queue for all workers, with TLS: a queued request runs in another worker, and its own worker relays the
//! response.

use crate::support::*;
use crate::workers::Workers;
use fairlead_engine::Exchange;
use std::io::{Read, Write};
use std::sync::mpsc;

fn describe(exchange: &mut Exchange<'_>) {
    let version = exchange.session().map(|session| session.version.clone());
    let is_secure = exchange.is_secure();
    let length = exchange.take_body().len();
    reply(
        exchange,
        &format!(
            "{} {length} {is_secure} {}",
            path(exchange),
            version.unwrap_or_default()
        ),
    );
}

#[test]
fn requests_of_one_connection_run_in_another_worker_and_it_stays_open() {
    let workers = Workers::start(describe);
    let mut client = workers.connect();
    for number in 1..=20 {
        let path = format!("/{number}");
        assert_eq!(client.get(&path).text(), format!("{path} 0 true TLSv1.3"));
    }
    assert_eq!(workers.moved(), (20, 20));
    eventually("no request waits", || workers.scoreboard.waiting() == 0);
    eventually("nothing is left there", || workers.free.engine.stats().connections == 0);
    assert_eq!(workers.busy.engine.stats().connections, 2);
    workers.release.send(()).expect("it waits");
    eventually("it is free", || workers.busy.engine.stats().busy_threads == 0);
    workers.release.send(()).expect("it will wait");
    assert_eq!(client.get("/here").text(), "busy");
}

#[test]
fn bodies_travel_and_pipelined_requests_wait_where_they_are() {
    let workers = Workers::start(describe);
    let mut client = workers.connect();
    for length in [5, 100_000] {
        let body = "x".repeat(length);
        let post = format!("POST /post HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}");
        client.send(&format!("{post}GET /next HTTP/1.1\r\nHost: test\r\n\r\n"));
        assert_eq!(client.response().text(), format!("/post {length} true TLSv1.3"));
        assert_eq!(client.response().text(), "/next 0 true TLSv1.3");
    }
}

#[test]
fn a_connection_ends_when_the_response_says_so() {
    let workers = Workers::start(describe);
    let mut client = workers.connect();
    client.send("GET /last HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().text(), "/last 0 true TLSv1.3");
    assert_eq!(client.stream.read(&mut [0]).expect("close_notify"), 0);
}

#[test]
fn a_long_response_comes_whole_at_the_pace_of_its_client() {
    let workers = Workers::start(|exchange| {
        exchange.start(200);
        exchange.end_head(None);
        for number in 0..2_000u32 {
            let bytes = number.to_le_bytes().repeat(1_000);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let taken = exchange.write(rest).expect("the client is there");
                rest = &rest[taken..];
                if !rest.is_empty() {
                    exchange.wait_for_client().expect("the client is there");
                }
            }
        }
    });
    let mut client = workers.connect();
    client.send("GET / HTTP/1.0\r\nHost: test\r\n\r\n");
    eventually("it runs", || workers.moved() == (1, 1));
    let received = client.rest();
    let body = received.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    let expected: Vec<u8> = (0..2_000u32)
        .flat_map(|number| number.to_le_bytes().repeat(1_000))
        .collect();
    assert!(received[body..] == expected, "{} bytes", received.len());
}

#[test]
fn a_response_that_breaks_off_has_no_proper_end() {
    let workers = Workers::start(|exchange| {
        exchange.start(200);
        exchange.end_head(None);
        exchange.write(b"half of it").expect("the client is there");
        exchange.flush();
        exchange.abort();
    });
    let mut client = workers.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut received = Vec::new();
    let error = client.stream.read_to_end(&mut received).expect_err("no proper end");
    assert!(!received.ends_with(b"0\r\n\r\n"), "{error}");
    eventually("it is closed", || workers.busy.engine.stats().connections == 1);
}

#[test]
fn a_connection_that_the_app_takes_over_is_relayed_both_ways() {
    let workers = Workers::start(|exchange| {
        let mut socket = std::os::unix::net::UnixStream::from(exchange.hijack().expect("a socket"));
        std::thread::spawn(move || {
            socket.set_nonblocking(false).expect("a socket");
            let mut space = vec![0; 300_000];
            socket.read_exact(&mut space).expect("what follows the request");
            socket.write_all(&space).expect("an open relay");
        });
    });
    let mut client = workers.connect();
    let bytes: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.stream.write_all(&bytes).expect("it is read");
    assert!(client.rest() == bytes);
}

#[test]
fn a_client_that_goes_ends_the_request_of_the_other_worker() {
    let (gone, is_gone) = mpsc::channel();
    let workers = Workers::start(move |exchange| {
        exchange.start(200);
        exchange.end_head(None);
        while let Ok(taken) = exchange.write(&[b'x'; 10_000]) {
            if taken < 10_000 && exchange.wait_for_client().is_err() {
                break;
            }
        }
        let _ = gone.send(());
    });
    let mut client = workers.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.stream.read_exact(&mut [0; 100]).expect("the beginning");
    drop(client);
    is_gone.recv_timeout(PATIENCE).expect("it notices");
    eventually("nothing is left", || {
        (
            workers.busy.engine.stats().connections,
            workers.free.engine.stats().connections,
        ) == (1, 0)
    });
}

#[test]
fn what_may_stay_begins_where_its_connection_is() {
    let workers = Workers::start(describe);
    let mut web_socket = workers.connect();
    web_socket.send(
        "GET /ws HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    let mut events = workers.connect();
    events.send("GET /events HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n");
    eventually("both wait", || workers.busy.engine.stats().queued == 2);
    // A later request is not queued behind them.
    assert_eq!(workers.connect().get("/later").text(), "/later 0 true TLSv1.3");
    assert_eq!(workers.moved(), (1, 1));
    (0..3).for_each(|_| workers.release.send(()).expect("it waits"));
    assert_eq!(
        (web_socket.response().text(), events.response().text()),
        ("busy".into(), "busy".into())
    );
}

/// Number of open descriptors for clients besides their connections.
fn relays(worker: &crate::workers::Worker) -> usize {
    worker.descriptors.used().1
}

#[test]
fn what_the_app_has_taken_over_is_counted_until_it_or_the_client_closes_it() {
    let (give, given) = mpsc::channel();
    let workers = Workers::start(move |exchange| _ = give.send(exchange.hijack().expect("a socket")));
    for app_closes in [true, false] {
        let mut client = workers.connect();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut socket = std::os::unix::net::UnixStream::from(given.recv_timeout(PATIENCE).expect("it is taken over"));
        socket.set_nonblocking(false).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        client.send("hello");
        socket.read_exact(&mut [0; 5]).expect("a relay");
        eventually("it is no connection any more", || {
            workers.busy.engine.stats().connections == 1
        });
        assert_eq!(relays(&workers.busy), 1);
        if app_closes {
            drop(socket);
            assert_eq!(client.stream.read(&mut [0]).expect("close_notify"), 0);
            eventually("nothing is left, although the client is there", || {
                relays(&workers.busy) == 0
            });
        } else {
            drop(client);
            assert_eq!(socket.read(&mut [0]).expect("the end"), 0);
            drop(socket);
            eventually("nothing is left", || relays(&workers.busy) == 0);
        }
    }
}

#[test]
fn what_a_client_gets_of_a_response_that_its_worker_abandons_has_no_proper_end() {
    let (ended, has_ended) = mpsc::channel();
    let workers = Workers::start(move |exchange| {
        exchange.start(200);
        exchange.end_head(None);
        exchange.write(b"half of it").expect("the client is there");
        exchange.flush();
        while exchange.write(b" and more").is_ok() && exchange.flush() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let _ = ended.send(());
    });
    let mut client = workers.connect();
    // Only the end of the connection shows the end of this response.
    client.send("GET / HTTP/1.0\r\n\r\n");
    client.stream.read_exact(&mut [0; 40]).expect("the beginning");
    workers.busy.engine.stop();
    client.stream.read_to_end(&mut Vec::new()).expect_err("no proper end");
    has_ended.recv_timeout(PATIENCE).expect("the other worker hears of it");
    eventually("nothing is left", || workers.free.engine.stats().connections == 0);
}

#[test]
fn a_worker_that_leaves_has_others_end_its_connections() {
    let workers = Workers::start(describe);
    let mut client = workers.connect();
    assert_eq!(client.get("/before").text(), "/before 0 true TLSv1.3");
    workers.busy.engine.leave();
    let response = client.get("/after");
    assert!(response.head.contains("connection: close"), "{}", response.head);
    assert_eq!(client.stream.read(&mut [0]).expect("close_notify"), 0);
    assert_eq!(workers.moved(), (2, 2));
}

#[test]
fn interim_responses_and_responses_without_a_body_are_relayed() {
    let early_hints = |config: &mut fairlead_engine::Config| config.early_hints = true;
    let workers = Workers::with(early_hints, |exchange| {
        assert!(exchange.start_early_hints());
        exchange.field(b"link", b"</style.css>").expect("a field");
        exchange.end_early_hints();
        reply(exchange, "body");
    });
    let mut client = workers.connect();
    for method in ["HEAD", "GET", "HEAD"] {
        client.send(&format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n"));
        assert_eq!(client.response_to("HEAD").status, 103);
        let response = client.response_to(method);
        let body = if method == "HEAD" { "" } else { "body" };
        assert_eq!((response.status, response.text().as_str()), (200, body));
    }
    assert_eq!(workers.moved(), (3, 3));
}
