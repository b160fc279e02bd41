//! Flow control (RFC 9113 §5.2): clients that read little, late or nothing, and the server's memory for them.

use crate::support::frames::*;
use crate::support::http2::{request, Http2Client};
use crate::support::*;
use fairlead_engine::Config;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(400);

/// A server with a response of this many bytes at each path that is a number.
fn server(config: Config) -> Server {
    let config = Config {
        min_threads: 2,
        max_threads: 2,
        ..config
    };
    Server::start(config, |exchange| {
        let length: usize = path(exchange)[1..].parse().expect("a number");
        exchange.start(200);
        exchange.end_head(Some(length as u64));
        let piece = [b'x'; 10_000];
        let mut left = length;
        while left > 0 {
            let now = left.min(piece.len());
            if exchange.write(&piece[..now]).is_err() {
                return;
            }
            left -= now;
        }
    })
}

/// Number of bytes for a stream until its end.
fn content(client: &mut FrameClient, stream: u32) -> usize {
    let mut length = 0;
    loop {
        let frame = client.find_of(DATA, stream);
        length += frame.payload.len();
        if frame.flags & END_STREAM != 0 {
            return length;
        }
    }
}

#[test]
fn a_window_may_be_opened_late_and_a_byte_at_a_time() {
    let server = server(config());
    let mut client = FrameClient::connect(server.address);
    client.send(&[setting(INITIAL_WINDOW, 0), get(1, "/300"), get(3, "/0")].concat());
    client.find_of(HEADERS, 3);
    for _ in 0..200 {
        client.send(&window_update(1, 1));
        assert_eq!(client.find_of(DATA, 1).payload.len(), 1);
    }
    client.send(&setting(INITIAL_WINDOW, 1_000));
    assert_eq!(content(&mut client, 1), 100);
}

#[test]
fn a_stream_that_takes_nothing_does_not_hold_up_another_one() {
    let server = server(config());
    let mut client = FrameClient::connect(server.address);
    client.send(&[setting(INITIAL_WINDOW, 0), window_update(0, 1 << 30)].concat());
    // More than the memory for responses.
    client.send(&get(1, "/500000"));
    client.find_of(HEADERS, 1);
    for stream in (3..43).step_by(2) {
        client.send(&[get(stream, "/100000"), window_update(stream, 100_000)].concat());
        assert_eq!(content(&mut client, stream), 100_000);
    }
    eventually("no thread waits for the slow one", || {
        server.engine.stats().busy_threads == 0
    });
    client.send(&window_update(1, 1 << 20));
    assert_eq!(content(&mut client, 1), 500_000);
}

#[test]
fn a_stream_that_takes_nothing_for_too_long_is_cancelled_alone() {
    let server = server(Config {
        write_timeout: SHORT,
        ..config()
    });
    let mut client = FrameClient::connect(server.address);
    client.send(&[setting(INITIAL_WINDOW, 0), get(1, "/500000"), get(3, "/5")].concat());
    let mut cancelled = [1, 3].map(|_| {
        let mut other = Http2Client::connect(server.address);
        assert_eq!(other.get("/9").body.len(), 9);
        let reset = client.find(|frame| frame.kind == RST_STREAM);
        assert_eq!(reset.code(), CANCEL);
        reset.stream
    });
    cancelled.sort_unstable();
    assert_eq!(cancelled, [1, 3]);
    client.send(&[get(5, "/7"), window_update(5, 7)].concat());
    assert_eq!(content(&mut client, 5), 7);
    drop(client);
    eventually("all are gone", || server.engine.stats().connections == 0);
    assert_eq!(server.totals.used(), (0, 0));
}

/// Data that was taken while the windows were open is sent, or the connection ends. The result depends on the order:
/// the server may read the closed windows before or after the sockets have room. In both cases no memory is left.
#[test]
fn windows_that_are_opened_and_closed_again_do_not_make_the_server_keep_more() {
    const ATTEMPTS: usize = 30;
    let server = server(Config {
        write_timeout: SHORT,
        ..config()
    });
    let has_ended = (0..ATTEMPTS).any(|_| open_and_close_windows(&server));
    assert!(has_ended, "nothing was kept by windows that are closed");
    assert_eq!(server.engine.stats().http2_slow, 1);
}

/// Returns true if the HTTP/2 connection has ended because the client does not take its data.
fn open_and_close_windows(server: &Server) -> bool {
    let before = server.engine.stats().requests;
    let mut client = FrameClient::connect(server.address);
    let most = 0x7000_0000;
    client.send(&[setting(INITIAL_WINDOW, most), window_update(0, most)].concat());
    // The socket is full, and the HTTP/2 connection has some complete responses.
    for stream in (1..199).step_by(2) {
        client.send(&get(stream, "/60000"));
    }
    eventually("all have run", || server.engine.stats().requests == before + 99);
    // Now this data may not be sent any more.
    client.send(&setting(INITIAL_WINDOW, 0));
    let mut over = 0;
    let last = client.find(|frame| {
        over += usize::from(frame.kind == RST_STREAM || frame.kind == DATA && frame.flags == 1);
        frame.kind == GOAWAY || over == 99
    });
    let has_ended = last.kind == GOAWAY;
    if has_ended {
        assert_eq!(last.code(), ENHANCE_YOUR_CALM);
    }
    drop(client);
    eventually("all are gone", || server.engine.stats().connections == 0);
    assert_eq!(server.totals.used(), (0, 0));
    has_ended
}

#[test]
fn large_bodies_go_both_ways_at_once() {
    let server = Server::start(config(), |exchange| {
        let body = exchange.take_body();
        reply(exchange, &body.len().to_string());
    });
    let mut client = Http2Client::connect(server.address);
    let mut uploads: Vec<_> = (0..8).map(|_| client.ask(request("POST", "/"), true)).collect();
    for round in 0..10 {
        for upload in &mut uploads {
            client
                .upload(&mut upload.body, &[b'x'; 50_000], round == 9)
                .expect("windows");
        }
    }
    for upload in uploads {
        assert_eq!(client.response(upload).expect("a response").text(), "500000");
    }
    assert_eq!(client.get("/").text(), "0");
}

#[test]
fn requests_that_are_received_while_nothing_can_be_sent_are_not_lost() {
    const ROUNDS: u32 = 30;
    const EACH: u32 = 12;
    let server = server(config());
    let mut client = FrameClient::connect(server.address);
    let most = 0x7000_0000;
    client.send(&[setting(INITIAL_WINDOW, most), window_update(0, most)].concat());
    let mut ended = 0;
    for round in 0..ROUNDS {
        // The server must answer a PING before it reads the frames after it. Then threads of the app send, too.
        let requests = (0..EACH).map(|number| get(2 * (round * EACH + number) + 1, "/400000"));
        let requests: Vec<_> = requests.collect();
        let (some, rest) = requests.split_at(2);
        client.send(&[some.concat(), frame(PING, 0, 0, b"12345678"), rest.concat()].concat());
        // Reads less than the server sends, so that the socket stays full.
        while ended + 2 * EACH < (round + 1) * EACH {
            ended += u32::from(ends_stream(&client.next().expect("an open connection")));
        }
    }
    while ended < ROUNDS * EACH {
        ended += u32::from(ends_stream(&client.next().expect("an open connection")));
    }
    assert_eq!(server.engine.stats().http2_requests, u64::from(ROUNDS * EACH));
}

fn ends_stream(frame: &Frame) -> bool {
    frame.kind == DATA && frame.flags & END_STREAM != 0
}
