//! Concurrent requests and responses of one connection: bodies, refusals, resets, and a faulty app.

use crate::support::frames::*;
use crate::support::http2::{get as ask, request, Http2Client};
use crate::support::*;
use fairlead_engine::{Body, Config, Exchange};
use h2::Reason;
use std::io::Read;
use std::sync::{mpsc, Arc, Mutex};

/// Responds with the storage and the sum of the body.
fn measure(exchange: &mut Exchange<'_>) {
    let (kind, bytes) = match exchange.take_body() {
        Body::Empty => ("nothing", Vec::new()),
        Body::Memory(bytes) => ("memory", bytes),
        Body::File(mut file, _) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("a readable file");
            ("file", bytes)
        }
    };
    let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
    let text = format!("{} {kind} {} {sum}", path(exchange), bytes.len());
    reply(exchange, &text);
}

#[test]
fn hundreds_of_requests_at_once_get_their_own_responses() {
    let server = Server::start(config(), measure);
    let mut client = Http2Client::connect(server.address);
    // Now the client knows the maximum number of streams.
    assert_eq!(client.get("/").status, 200);
    let asked: Vec<_> = (0..300)
        .map(|number| client.ask(ask(&format!("/{number}")), false))
        .collect();
    for (number, asked) in asked.into_iter().enumerate() {
        let response = client.response(asked).expect("a response");
        assert_eq!(response.text(), format!("/{number} nothing 0 0"));
    }
    let stats = server.engine.stats();
    assert_eq!(
        (stats.http2_connections, stats.http2_requests, stats.requests),
        (1, 301, 301)
    );
}

#[test]
fn bodies_arrive_whole_in_memory_and_on_disk_with_a_length_or_without() {
    let server = Server::start(config(), measure);
    let mut client = Http2Client::connect(server.address);
    for (length, kind) in [(1, "memory"), (4_000, "memory"), (10_000, "file"), (1_000_000, "file")] {
        for tells_length in [false, true] {
            let mut request = request("POST", "/");
            if tells_length {
                let headers = request.headers_mut();
                headers.insert("content-length", length.into());
            }
            let mut asked = client.ask(request, true);
            client.upload(&mut asked.body, &vec![1; length], true).expect("windows");
            let response = client.response(asked).expect("a response");
            assert_eq!(response.text(), format!("/ {kind} {length} {length}"));
        }
    }
    // A separate end after the content, and trailers.
    for trailers in [false, true] {
        let mut asked = client.ask(request("POST", "/"), true);
        client.upload(&mut asked.body, b"\x05", false).expect("a window");
        match trailers {
            true => asked
                .body
                .send_trailers(http::HeaderMap::new())
                .expect("an open stream"),
            false => asked.body.send_data(bytes::Bytes::new(), true).expect("an open stream"),
        }
        assert_eq!(client.response(asked).expect("a response").text(), "/ memory 1 5");
    }
}

#[test]
fn content_that_is_not_as_long_as_announced_never_reaches_the_app() {
    let server = Server::start(config(), measure);
    let mut client = FrameClient::connect(server.address);
    for (stream, content) in [(1, &b"too much"[..]), (3, b"few"), (5, b"")] {
        let fields = [block("POST", "/"), field("content-length", "4")].concat();
        client.send(&frame(HEADERS, END_HEADERS, stream, &fields));
        client.send(&frame(DATA, END_STREAM, stream, content));
        assert_eq!(client.find_of(RST_STREAM, stream).code(), PROTOCOL_ERROR, "{stream}");
    }
    // No content follows the head, which announces some.
    let fields = [block("POST", "/"), field("content-length", "4")].concat();
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 7, &fields));
    assert_eq!(client.find_of(RST_STREAM, 7).code(), PROTOCOL_ERROR);
    client.send(&get(9, "/"));
    client.find_of(HEADERS, 9);
    assert_eq!(server.engine.stats().requests, 1);
}

#[test]
fn refusals_are_for_their_stream() {
    let config = Config {
        body_max_bytes: 10,
        ..config()
    };
    let server = Server::start(config, measure);
    let mut client = Http2Client::connect(server.address);
    let with = |name: &'static str, value: &str| {
        let mut request = request("POST", "/");
        request.headers_mut().insert(name, value.parse().expect("a value"));
        request
    };
    let refused = [
        (ask(&format!("/{}", "a".repeat(5_000))), false, 414),
        (with("content-length", "11"), true, 413),
        (with("host", "other"), false, 400),
        (with("x", &"y".repeat(15_000)), false, 200),
        (with("x", &"y".repeat(16_400)), false, 431),
        (request("BREW", "/"), false, 200),
    ];
    for (request, more, status) in refused {
        let mut asked = client.ask(request, more);
        assert_eq!(client.head(&mut asked).expect("a response").status(), status);
        assert_eq!(client.get("/next").status, 200, "after {status}");
    }
    let mut long = client.ask(request("POST", "/"), true);
    client.upload(&mut long.body, b"hello world", false).expect("a window");
    assert_eq!(client.head(&mut long).expect("a response").status(), 413);
    // RFC 9113 §8.1: the client is told to stop, without an error.
    let reset = client.wait("a reset", |context| long.body.poll_reset(context));
    assert_eq!(reset.expect("a reason"), Reason::NO_ERROR);
    assert_eq!(client.get("/next").status, 200);
    assert_eq!(server.engine.stats().connections, 1);
}

/// A server with requests for `/wait` that run until a message arrives, and the list of its requests.
fn waiting() -> (Server, mpsc::Sender<()>, Arc<Mutex<Vec<String>>>) {
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&paths);
    let server = Server::start(config(), move |exchange| {
        let path = path(exchange);
        seen.lock().expect("no panic").push(path.clone());
        if path == "/wait" {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        reply(exchange, &path);
    });
    (server, release, paths)
}

#[test]
fn a_request_that_is_reset_while_it_waits_never_reaches_the_app_and_is_forgotten_at_once() {
    let (server, release, paths) = waiting();
    let mut client = FrameClient::connect(server.address);
    client.send(&get(1, "/wait"));
    eventually("it runs", || server.engine.stats().busy_threads == 1);
    for stream in (3..43).step_by(2) {
        client.send(&get(stream, "/reset"));
    }
    client.send(&get(43, "/last"));
    eventually("they wait", || server.engine.stats().queued == 21);
    let held = server.totals.used().0;
    assert!(held > 0);
    for stream in (3..43).step_by(2) {
        client.send(&reset(stream, CANCEL));
    }
    client.ping();
    // The next one waits among the requests of other connections; the others are gone.
    eventually("they are gone", || server.totals.used().0 <= held / 5);
    release.send(()).expect("it waits");
    assert_eq!(client.find_of(DATA, 43).payload, b"/last");
    assert_eq!(*paths.lock().expect("no panic"), ["/wait", "/last"]);
    drop(client);
    eventually("nothing is left", || server.engine.stats().connections == 0);
    assert_eq!(server.totals.used(), (0, 0));
}

#[test]
fn the_app_learns_from_a_failed_write_that_its_stream_was_reset() {
    let (ended, ends) = mpsc::channel();
    let ended = Mutex::new(ended);
    let server = Server::start(config(), move |exchange| {
        if path(exchange) != "/long" {
            return reply(exchange, "short");
        }
        exchange.start(200);
        exchange.end_head(None);
        while exchange.write(&[b'x'; 10_000]).is_ok() {}
        ended.lock().expect("no panic").send(()).expect("the test waits");
    });
    let mut client = FrameClient::connect(server.address);
    client.send(&[window_update(0, 1 << 20), get(1, "/long")].concat());
    client.find_of(DATA, 1);
    client.send(&reset(1, CANCEL));
    ends.recv_timeout(PATIENCE).expect("a write fails");
    client.send(&get(3, "/short"));
    assert_eq!(client.find_of(DATA, 3).payload, b"short");
}

#[test]
fn a_response_to_a_stream_that_was_reset_may_be_sent_again() {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let (ended, ends) = mpsc::channel();
    let ended = Mutex::new(ended);
    let server = Server::start(config(), move |exchange| {
        if path(exchange) == "/reset" {
            released.lock().expect("no panic").recv().expect("the test releases it");
            exchange.start(200);
            exchange.end_head(None);
            let _ = exchange.write(b"a piece");
            // The first one finds out that the stream is reset; the second one is that at the end of the response.
            let flushed = [exchange.flush(), exchange.flush()];
            return ended.lock().expect("no panic").send(flushed).expect("the test waits");
        }
        reply(exchange, "short");
    });
    let mut client = FrameClient::connect(server.address);
    client.send(&get(1, "/reset"));
    eventually("it runs", || server.engine.stats().busy_threads == 1);
    client.send(&reset(1, CANCEL));
    client.ping();
    release.send(()).expect("it waits");
    let flushed = ends.recv_timeout(PATIENCE).expect("the app has not panicked");
    assert_eq!(flushed, [false, false]);
    client.send(&get(3, "/short"));
    assert_eq!(client.find_of(DATA, 3).payload, b"short");
}

#[test]
fn faults_of_the_app_are_for_their_stream() {
    let server = Server::start(config(), |exchange| match path(exchange).as_str() {
        "/panic" => panic!("asked for"),
        "/none" => {}
        "/late" => {
            exchange.start(200);
            exchange.end_head(None);
            let _ = exchange.write(b"some");
            panic!("asked for");
        }
        other => {
            let announced = if other == "/short" { b"9" } else { b"3" };
            exchange.start(200);
            exchange.field(b"content-length", announced).expect("a number");
            exchange.end_head(None);
            let _ = exchange.write(b"hello");
        }
    });
    let mut client = Http2Client::connect(server.address);
    assert_eq!(client.get("/panic").status, 500);
    assert_eq!(client.get("/none").status, 500);
    assert_eq!(client.get("/long").text(), "hel");
    for cut in ["/short", "/late"] {
        let asked = client.ask(ask(cut), false);
        let error = client.response(asked).expect_err("it is cut");
        assert!(error.is_reset(), "{cut}: {error}");
    }
    assert_eq!(client.get("/long").text(), "hel");
}

#[test]
fn a_body_that_has_not_come_is_asked_for() {
    let server = Server::start(config(), measure);
    let mut client = Http2Client::connect(server.address);
    let mut request = request("POST", "/");
    request
        .headers_mut()
        .insert("expect", "100-continue".parse().expect("a value"));
    let mut asked = client.ask(request, true);
    assert_eq!(client.interim(&mut asked), Some(http::StatusCode::CONTINUE));
    client.upload(&mut asked.body, b"\x02", true).expect("a window");
    assert_eq!(client.response(asked).expect("a response").text(), "/ memory 1 2");
}
