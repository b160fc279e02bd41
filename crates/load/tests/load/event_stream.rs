//! Server-sent events, published by POST.

use crate::support::{measure, Output, Peer, Server, PATIENT};
use serde_json::{json, Value};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nConnection: close\r\n\r\n";
const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

type Streams = Arc<Mutex<Vec<Output>>>;

/// A server that streams the posted messages: `head` responds to a subscriber, `made` makes the bytes of an event,
/// `answer` responds to the publisher.
fn streaming(head: &'static str, made: fn(&str) -> String, answer: &'static [u8]) -> Server {
    let streams = Streams::default();
    Server::start(move |peer| loop {
        let request = peer.request()?;
        if request.head.starts_with("GET ") {
            assert!(
                request.head.contains("\r\nAccept: text/event-stream\r\n"),
                "{}",
                request.head
            );
            let output = peer.output();
            // Both under one lock: a message published from here on comes after the head.
            let mut streams = streams.lock().expect("no panic");
            peer.send(head.as_bytes())?;
            streams.push(output);
            drop(streams);
            return peer.hold();
        }
        assert!(
            request.head.starts_with("POST /publish HTTP/1.1\r\n"),
            "{}",
            request.head
        );
        publish(&streams, made(&String::from_utf8_lossy(&request.body)).as_bytes());
        peer.send(answer)?;
    })
}

fn publish(streams: &Streams, bytes: &[u8]) {
    for stream in &*streams.lock().expect("no panic") {
        let _ = stream.lock().expect("no panic").write_all(bytes);
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn subscribe(status: i32, server: &Server, options: &[&str]) -> Value {
    let (events, publish) = (format!("{}events", server.url), format!("{}publish", server.url));
    measure(
        status,
        &[&[events.as_str(), "--sse", "--publish", &publish], options].concat(),
    )
}

/// Expected, received, lost.
fn counts(report: &Value) -> [u64; 3] {
    ["expected", "received", "lost"].map(|key| report["deliveries"][key].as_u64().expect("a number"))
}

#[test]
fn events_arrive_in_chunks_and_without() {
    let chunked = streaming(CHUNKED, |body| chunk(&format!("id: 1\ndata: {body}\n\n")), TAKEN);
    let report = subscribe(0, &chunked, &["-c", "4", "--messages", "30", "--size", "90"]);
    assert_eq!((counts(&report), &report["complete"]), ([120, 120, 0], &json!(4)));
    assert_eq!(
        (chunked.connections(), chunked.requests()),
        (5, 34),
        "one connection publishes all"
    );
    let until_close = streaming(UNTIL_CLOSE, |body| format!("data:{body}\r\n\r\n: ping\r\n\r\n"), TAKEN);
    let report = subscribe(0, &until_close, &["-c", "4", "--messages", "30"]);
    assert_eq!(counts(&report), [120, 120, 0]);
}

#[test]
fn an_event_may_be_spread_over_chunks_and_lines() {
    let server = streaming(
        CHUNKED,
        |body| {
            let text = format!("event: chat\rdata: {{\"text\":\rdata: \"{body}\"}}\r\r");
            text.chars().map(|character| chunk(&character.to_string())).collect()
        },
        TAKEN,
    );
    let report = subscribe(0, &server, &["-c", "2", "--messages", "10"]);
    assert_eq!(counts(&report), [20, 20, 0]);
}

#[test]
fn a_message_that_is_not_taken_is_rejected_and_not_lost() {
    let server = streaming(
        CHUNKED,
        |_| String::new(),
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    );
    let report = subscribe(2, &server, &["-c", "2", "--messages", "3"]);
    assert_eq!(
        (counts(&report), &report["messages"]),
        ([0, 0, 0], &json!({ "published": 0, "rejected": 3, "unsent": 0 }))
    );
    assert_eq!(report["gave_up"], false);
}

#[test]
fn a_publisher_goes_on_over_another_connection_when_one_is_closed() {
    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let server = streaming(CHUNKED, |body| chunk(&format!("data: {body}\n\n")), answer);
    let report = subscribe(0, &server, &["-c", "2", "--messages", "5"]);
    assert_eq!((counts(&report), server.connections()), ([10, 10, 0], 2 + 5));
}

#[test]
fn a_publisher_that_is_never_answered_leaves_its_messages() {
    let server = Server::start(|peer| {
        if peer.request()?.head.starts_with("GET ") {
            peer.send(CHUNKED.as_bytes())?;
            return peer.hold();
        }
        Ok(())
    });
    let report = subscribe(2, &server, &["-c", "2", "--messages", "5", "--timeout", PATIENT]);
    assert_eq!(
        (&report["messages"]["published"], &report["messages"]["unsent"]),
        (&json!(1), &json!(4))
    );
    assert_eq!(
        (counts(&report), server.connections()),
        ([2, 0, 2], 3),
        "and it is not tried for ever"
    );
}

#[test]
fn the_end_of_a_stream_and_its_loss_are_told_apart() {
    fn serve(peer: &mut Peer) -> io::Result<()> {
        if !peer.request()?.head.starts_with("GET ") {
            return peer.hold();
        }
        match peer.number {
            0 => peer.send(format!("{CHUNKED}0\r\n\r\n").as_bytes()),
            1 => peer.send(UNTIL_CLOSE.as_bytes()),
            _ => peer.send(format!("{CHUNKED}5\r\nda").as_bytes()),
        }
    }
    let server = Server::start(serve);
    let report = measure(2, &[&server.url, "--sse", "--idle", "-c", "3", "-d", "5"]);
    assert_eq!(
        (&report["closed_with"], &report["errors"]["closed"]),
        (&json!({ "end": 2, "1006": 1 }), &json!(3))
    );
}

#[test]
fn what_is_no_event_stream_is_refused() {
    let page = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n");
    let report = measure(2, &[&page.url, "--sse", "--idle", "-c", "2", "-d", "5"]);
    assert_eq!(
        (&report["errors"]["handshake"], &report["reasons"]),
        (&json!(2), &json!({ "not text/event-stream": 2 }))
    );
    let nowhere = Server::answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let report = measure(2, &[&nowhere.url, "--sse", "--idle", "-c", "2", "-d", "5"]);
    assert_eq!(report["refused_with"], json!({ "404": 2 }));
    let broken = Server::answering(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    );
    let report = measure(2, &[&broken.url, "--sse", "--idle", "-c", "2", "-d", "5"]);
    assert_eq!(report["reasons"], json!({ "an invalid chunk size": 2 }));
}
