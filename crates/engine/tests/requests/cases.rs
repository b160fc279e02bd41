//! Requests and responses over any transport, HTTP/1 or HTTP/2: order, bodies, and a faulty app. `http1.rs` tests the
//! specifics of HTTP/1.

use super::connect;
use crate::support::*;
use fairlead_engine::{Body, Exchange};
use std::io::Read;

pub(super) fn echo(exchange: &mut Exchange<'_>) {
    let text = match exchange.take_body() {
        Body::Empty => format!("{} nothing", path(exchange)),
        Body::Memory(bytes) => format!("{} memory {}", path(exchange), String::from_utf8_lossy(&bytes)),
        Body::File(mut file, length) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("a readable file");
            format!(
                "{} file {length} {}",
                path(exchange),
                bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>()
            )
        }
    };
    reply(exchange, &text);
}

/// Responds with the body.
#[allow(dead_code, reason = "not every file that includes this one has such a test")]
pub(super) fn echo_body(exchange: &mut Exchange<'_>) {
    let body = match exchange.take_body() {
        Body::Empty => Vec::new(),
        Body::Memory(bytes) => bytes,
        Body::File(mut file, _) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("a readable file");
            bytes
        }
    };
    exchange.start(200);
    exchange.end_head(Some(body.len() as u64));
    exchange.write(&body).expect("the client is there");
}

#[test]
fn a_connection_carries_many_requests() {
    let server = Server::start(config(), echo);
    let mut client = connect(&server);
    for number in 0..100 {
        assert_eq!(client.get(&format!("/{number}")).text(), format!("/{number} nothing"));
    }
    assert_eq!(server.engine.stats().requests, 100);
    assert_eq!(server.engine.stats().connections, 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(config(), echo);
    let mut client = connect(&server);
    let requests: String = (0..200)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: test\r\n\r\n"))
        .collect();
    client.send(&requests);
    for number in 0..200 {
        assert_eq!(client.response().text(), format!("/{number} nothing"));
    }
}

#[test]
fn bodies_arrive_whole_in_memory_and_on_disk() {
    let server = Server::start(config(), echo);
    let mut client = connect(&server);
    client
        .send("POST /a HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhel")
        .send("lo");
    assert_eq!(client.response().text(), "/a memory hello");
    let large = "\u{1}".repeat(10_000);
    client.send(&format!(
        "POST /c HTTP/1.1\r\nHost: test\r\nContent-Length: 10000\r\n\r\n{large}"
    ));
    assert_eq!(client.response().text(), "/c file 10000 10000");
    assert_eq!(client.get("/d").text(), "/d nothing");
}

#[test]
fn a_body_that_has_not_come_is_asked_for() {
    let server = Server::start(config(), echo);
    let mut client = connect(&server);
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!(client.response().status, 100);
        client.send("hi");
        assert_eq!(client.response().text(), "/ memory hi");
    }
}

#[test]
fn a_panic_is_answered_and_the_connection_lives_on() {
    let server = Server::start(config(), |exchange| {
        assert!(path(exchange) != "/panic", "asked for");
        reply(exchange, "fine");
    });
    let mut client = connect(&server);
    assert_eq!(client.get("/panic").status, 500);
    assert_eq!(client.get("/").text(), "fine");
}

#[test]
fn an_app_without_an_answer_is_a_500() {
    let server = Server::start(config(), |_| {});
    assert_eq!(connect(&server).get("/").status, 500);
}

#[test]
fn a_field_that_would_split_the_answer_is_left_out() {
    let server = Server::start(config(), |exchange| {
        exchange.start(200);
        assert!(exchange.field(b"x-a", b"1\r\nset-cookie: evil").is_err());
        assert!(exchange.field(b"x b", b"1").is_err());
        assert!(exchange.field(b"content-length", b"1, 2").is_err());
        exchange.end_head(Some(0));
    });
    let response = connect(&server).get("/");
    assert!(
        !response.head.contains("evil") && !response.head.contains("x b"),
        "{}",
        response.head
    );
}
