//! Clients that send many frames because they receive many, or because their messages are small. None of them is
//! disconnected; `attacks.rs` tests clients that are.

use crate::support::frames::*;
use crate::support::*;
use fairlead_engine::{Body, Config, Descriptors, Exchange};
use std::io::Read;

/// Responds with the body of the request.
fn echo(exchange: &mut Exchange<'_>) {
    let bytes = match exchange.take_body() {
        Body::Empty => path(exchange).into_bytes(),
        Body::Memory(bytes) => bytes,
        Body::File(mut file, _) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("a readable file");
            bytes
        }
    };
    exchange.start(200);
    exchange.end_head(Some(bytes.len() as u64));
    let _ = exchange.write(&bytes);
}

/// The body of the response on a stream.
fn body(client: &mut FrameClient, stream: u32) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let frame = client.find(|frame| frame.stream == stream && matches!(frame.kind, DATA | RST_STREAM));
        assert_eq!(frame.kind, DATA, "a reset with code {}", frame.code());
        body.extend_from_slice(&frame.payload);
        if frame.flags & END_STREAM != 0 {
            return body;
        }
    }
}

/// The number of the client's stream.
fn stream(count: usize) -> u32 {
    2 * count as u32 + 1
}

#[test]
fn content_may_come_in_frames_of_any_size() {
    let server = Server::start(config(), echo);
    for size in [1, 5, 28, 200] {
        let mut client = FrameClient::connect(server.address);
        client.send(&[setting(INITIAL_WINDOW, 1 << 20), window_update(0, 1 << 20)].concat());
        // As much as the window of a stream allows, in one piece.
        let content: Vec<u8> = (0..60_000_u32).map(|number| (number % 251) as u8).collect();
        let frames = content.chunks(size).flat_map(|piece| frame(DATA, 0, 1, piece));
        let upload: Vec<u8> = post(1, "/").into_iter().chain(frames).collect();
        client.send(&[&upload[..], &frame(DATA, END_STREAM, 1, b"")].concat());
        assert!(body(&mut client, 1) == content, "pieces of {size}");
    }
    assert_eq!(server.engine.stats().http2_empty_data_floods, 0);
}

#[test]
fn content_in_small_frames_may_wait_for_the_server() {
    let config = Config {
        descriptors: Descriptors::with(100, 1),
        ..config()
    };
    let server = Server::start(config, echo);
    // Another upload has the only file.
    let mut holder = server.connect();
    holder.send(&format!(
        "POST /held HTTP/1.1\r\nHost: test\r\nContent-Length: 80000\r\n\r\n{}",
        "x".repeat(40_000)
    ));
    eventually("it has a file", || server.descriptors.used().1 == 1);
    let mut client = FrameClient::connect(server.address);
    client.send(&[setting(INITIAL_WINDOW, 1 << 20), window_update(0, 1 << 20)].concat());
    client.send(&[post(1, "/"), frame(DATA, 0, 1, b"x").repeat(60_000)].concat());
    client.send(&frame(DATA, END_STREAM, 1, b""));
    eventually("it waits", || server.totals.waiting() == 1);
    client.ping();
    assert_eq!(holder.send(&"x".repeat(40_000)).response().body.len(), 80_000);
    assert_eq!(body(&mut client, 1).len(), 60_000);
    assert_eq!(server.engine.stats().http2_empty_data_floods, 0);
}

#[test]
fn windows_may_be_updated_twice_for_each_piece_of_content() {
    let server = Server::start(config(), echo);
    let mut client = FrameClient::connect(server.address);
    for count in 0..2_000 {
        client.send(&get(stream(count), "/"));
        let length = body(&mut client, stream(count)).len() as u32;
        client.send(&[window_update(0, length), window_update(stream(count), length)].concat());
    }
    client.ping();
    assert_eq!(server.engine.stats().http2_window_floods, 0);
}

#[test]
fn windows_may_be_updated_long_after_the_content_was_sent() {
    let server = Server::start(config(), echo);
    let mut client = FrameClient::connect(server.address);
    for count in 0..2_000 {
        client.send(&get(stream(count), "/"));
        body(&mut client, stream(count));
    }
    let updates = (0..2_000).flat_map(|count| [window_update(0, 1), window_update(stream(count), 1)].concat());
    client.send(&updates.collect::<Vec<u8>>());
    client.ping();
    assert_eq!(server.engine.stats().http2_window_floods, 0);
}

#[test]
fn each_response_may_be_measured_with_a_ping() {
    let server = Server::start(config(), echo);
    let mut client = FrameClient::connect(server.address);
    for count in 0..500 {
        client.send(&get(stream(count), "/"));
        body(&mut client, stream(count));
        client.ping();
    }
    assert_eq!(server.engine.stats().http2_ping_floods, 0);
}

#[test]
fn each_request_may_come_with_priorities() {
    let server = Server::start(config(), echo);
    let mut client = FrameClient::connect(server.address);
    for count in 0..1_000 {
        let priority = frame(PRIORITY, 0, stream(count), &[0, 0, 0, 0, 1]);
        client.send(&[get(stream(count), "/"), priority.repeat(5)].concat());
        body(&mut client, stream(count));
    }
    client.ping();
    assert_eq!(server.engine.stats().http2_priority_floods, 0);
}

#[test]
fn all_requests_may_be_cancelled_at_once() {
    let server = Server::start(config(), echo);
    let mut client = FrameClient::connect(server.address);
    client.ping();
    let requests: Vec<u8> = (0..90).flat_map(|count| get(stream(count), "/")).collect();
    let resets: Vec<u8> = (0..90).flat_map(|count| reset(stream(count), CANCEL)).collect();
    client.send(&[requests, resets].concat());
    client.ping();
    client.send(&get(stream(90), "/next"));
    assert_eq!(body(&mut client, stream(90)), b"/next");
    assert_eq!(server.engine.stats().http2_reset_floods, 0);
}

#[test]
fn as_many_requests_may_be_cancelled_as_are_answered() {
    let server = Server::start(config(), echo);
    let mut client = FrameClient::connect(server.address);
    for count in 0..1_000 {
        let (answered, cancelled) = (stream(2 * count), stream(2 * count + 1));
        client.send(&get(answered, "/"));
        body(&mut client, answered);
        client.send(&[get(cancelled, "/"), reset(cancelled, CANCEL)].concat());
    }
    client.ping();
    assert_eq!(server.engine.stats().http2_reset_floods, 0);
}
