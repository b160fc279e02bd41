//! Specifics of HTTP/1: framing, pipelines, and ends of connections.

use super::cases::echo;
use super::{connect, half_close};
use crate::support::*;
use fairlead_engine::Config;
use std::sync::mpsc;

#[test]
fn a_chunked_body_arrives_whole() {
    let server = Server::start(config(), echo);
    let mut client = connect(&server);
    client.send("POST /b HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n");
    assert_eq!(client.response().text(), "/b memory abcde");
}

#[test]
fn a_pipeline_gets_one_turn_at_a_time() {
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&order);
    let (release, hold) = mpsc::channel::<()>();
    let hold = std::sync::Mutex::new(hold);
    let server = Server::start(config(), move |exchange| {
        let path = path(exchange);
        if path == "/first" {
            // While this request runs, the others arrive.
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        seen.lock().expect("no panic").push(path);
        reply(exchange, "ok");
    });
    let mut greedy = connect(&server);
    let mut modest = connect(&server);
    let pipeline: String = (0..50)
        .map(|n| format!("GET /greedy/{n} HTTP/1.1\r\nHost: test\r\n\r\n"))
        .collect();
    greedy.send(&format!("GET /first HTTP/1.1\r\nHost: test\r\n\r\n{pipeline}"));
    eventually("the first one runs", || server.engine.stats().busy_threads == 1);
    modest.send("GET /modest HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the modest one is queued", || server.engine.stats().queued == 1);
    release.send(()).expect("it waits");
    (0..51).for_each(|_| assert_eq!(greedy.response().status, 200));
    assert_eq!(modest.response().status, 200);
    let order = order.lock().expect("no panic");
    let place = order.iter().position(|path| path == "/modest").expect("it was served");
    assert!(place <= 3, "the modest client came {place}th: {order:?}");
}

#[test]
fn a_client_that_half_closes_is_answered() {
    let server = Server::start(config(), echo);
    let mut client = connect(&server);
    client.send("GET /last HTTP/1.1\r\nHost: test\r\n\r\n");
    half_close(&mut client);
    assert_eq!(client.response().text(), "/last nothing");
    assert!(client.is_closed());
}

#[test]
fn refusals_have_their_status_and_end_the_connection() {
    let server = Server::start(
        Config {
            body_max_bytes: 10,
            ..config()
        },
        echo,
    );
    for (request, status) in [
        ("GET / HTTP/1.1\nHost: test\r\n\r\n".to_string(), 400),
        ("\u{16}\u{3}\u{1}, a TLS handshake".to_string(), 400),
        ("GET / HTTP/2.0\r\nHost: test\r\n\r\n".to_string(), 505),
        (
            format!("GET /{} HTTP/1.1\r\nHost: test\r\n\r\n", "a".repeat(5_000)),
            414,
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: test\r\nA: {}\r\n\r\n", "a".repeat(20_000)),
            431,
        ),
        (
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 11\r\n\r\n".to_string(),
            413,
        ),
        (
            "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n"
                .to_string(),
            413,
        ),
        (
            "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: gzip\r\n\r\n".to_string(),
            501,
        ),
    ] {
        let mut client = connect(&server);
        client.send(&request);
        let response = client.response();
        assert_eq!(response.status, status, "{request:.60}");
        assert!(response.head.contains("connection: close\r\n"));
        assert!(client.rest().is_empty(), "nothing may follow");
    }
    assert_eq!(server.engine.stats().refused_requests, 8);
    assert_eq!(connect(&server).get("/still-here").status, 200);
}

#[test]
fn a_short_body_closes_the_connection_and_a_long_one_is_cut() {
    let server = Server::start(config(), |exchange| {
        let announced = if path(exchange) == "/short" { b"9" } else { b"3" };
        exchange.start(200);
        exchange.field(b"content-length", announced).expect("a number");
        exchange.end_head(None);
        let _ = exchange.write(b"hello");
    });
    let mut client = connect(&server);
    assert_eq!(client.get("/long").text(), "hel");
    client.send("GET /short HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(client.rest().ends_with(b"\r\n\r\nhello"));
}

#[test]
fn http_1_0_gets_no_chunks_and_closes_unless_asked() {
    let server = Server::start(config(), |exchange| {
        exchange.start(200);
        exchange.end_head(None);
        let _ = exchange.write(b"unknown length");
    });
    let mut client = connect(&server);
    client.send("GET / HTTP/1.0\r\n\r\n");
    let text = String::from_utf8(client.rest()).expect("text");
    assert!(
        text.contains("connection: close") && !text.contains("chunked") && text.ends_with("\r\n\r\nunknown length")
    );
    let mut modern = connect(&server);
    modern.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert!(modern.rest().ends_with(b"\r\n\r\ne\r\nunknown length\r\n0\r\n\r\n"));
}
