//! Ends of HTTP/2 connections: by timeouts, by the server's end, and by their clients; nothing of them is left.

use crate::support::frames::*;
use crate::support::http2::{get, request, Http2Client};
use crate::support::*;
use fairlead_engine::Config;
use std::sync::{mpsc, Mutex};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);

/// All connections are closed, and no memory of their requests is left.
fn nothing_is_left(server: &Server) {
    eventually("all are gone", || server.engine.stats().connections == 0);
    eventually("nothing of their requests is kept", || server.totals.used() == (0, 0));
}

#[test]
fn an_upload_that_comes_in_other_pieces_than_its_frames_takes_its_time() {
    let config = Config {
        head_timeout: SHORT,
        ..config()
    };
    let server = Server::start(config, |exchange| {
        let length = exchange.take_body().len();
        reply(exchange, &length.to_string());
    });
    let mut client = FrameClient::connect(server.address);
    let content = frame(DATA, 0, 1, &[b'x'; 300]);
    client.send(&[&post(1, "/"), &content[..100]].concat());
    let (begun, mut frames) = (Instant::now(), 1);
    while begun.elapsed() < 3 * SHORT {
        // At each check of the server, a frame is incomplete.
        client.send(&[&content[100..], &content[..100]].concat());
        frames += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    client.send(&[&content[100..], &frame(DATA, END_STREAM, 1, b"")].concat());
    assert_eq!(client.find_of(DATA, 1).payload, (300 * frames).to_string().as_bytes());
}

#[test]
fn a_session_without_requests_is_closed_whatever_else_it_sends() {
    let config = Config {
        keep_alive_timeout: SHORT,
        ..config()
    };
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    let mut client = FrameClient::connect(server.address);
    client.send(&get_frame(1));
    client.find_of(HEADERS, 1);
    let mut silent = FrameClient::connect(server.address);
    let pings = client.flood(PATIENCE, true, |_| {
        std::thread::sleep(Duration::from_millis(30));
        frame(PING, 0, 0, &[1; 8])
    });
    assert!(pings < 100, "{pings}");
    assert_eq!((client.goaway(), silent.goaway()), (Some(NO_ERROR), Some(NO_ERROR)));
    drop((client, silent));
    nothing_is_left(&server);
    let stats = server.engine.stats();
    assert_eq!(
        (stats.http2_slow, stats.http2_violations, stats.http2_ping_floods),
        (0, 0, 0)
    );
}

fn get_frame(stream: u32) -> Vec<u8> {
    crate::support::frames::get(stream, "/")
}

#[test]
fn streams_learn_that_their_session_has_ended_even_if_the_client_stays() {
    let config = Config {
        head_timeout: SHORT,
        ..config()
    };
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    let mut client = FrameClient::connect(server.address);
    client.send(&post(1, "/"));
    client.send(&post(3, "/"));
    client.ping();
    eventually("they are there", || server.totals.used().0 > 0);
    // Inside of a frame, which stays incomplete.
    client.send(&get_frame(5)[..20]);
    assert_eq!(client.find(|frame| frame.kind == GOAWAY).code(), ENHANCE_YOUR_CALM);
    nothing_is_left(&server);
    assert_eq!(server.engine.stats().http2_slow, 1);
}

#[test]
fn whatever_a_client_was_doing_nothing_is_left_when_it_goes() {
    let (begun, begins) = mpsc::channel();
    let begun = Mutex::new(begun);
    let server = Server::start(config(), move |exchange| {
        let _ = begun.lock().expect("no panic").send(());
        exchange.start(200);
        exchange.end_head(None);
        while exchange.write(&[b'x'; 50_000]).is_ok() {}
    });
    for _ in 0..3 {
        let mut client = FrameClient::connect(server.address);
        client.send(&[get_frame(1), get_frame(3), post(5, "/"), post(7, "/")].concat());
        client.send(&[frame(DATA, 0, 7, &[b'x'; 9_000]), get_frame(9)].concat());
        begins.recv_timeout(PATIENCE).expect("it runs");
        drop(client);
        nothing_is_left(&server);
    }
    eventually("no thread runs any more", || server.engine.stats().busy_threads == 0);
}

#[test]
fn a_server_that_ends_says_so_and_finishes_what_has_begun() {
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let server = Server::start(config(), move |exchange| {
        let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        let text = path(exchange);
        reply(exchange, &text);
    });
    let mut client = Http2Client::connect(server.address);
    let first = client.ask(get("/first"), false);
    let second = client.ask(get("/second"), false);
    client.wait("both are there", |_| match server.engine.stats().http2_requests {
        2 => std::task::Poll::Ready(()),
        _ => std::task::Poll::Pending,
    });
    let mut idle = FrameClient::connect(server.address);
    idle.ping();
    server.engine.drain();
    assert_eq!(idle.goaway(), Some(NO_ERROR));
    (0..2).for_each(|_| release.send(()).expect("it waits"));
    assert_eq!(client.response(first).expect("a response").text(), "/first");
    assert_eq!(client.response(second).expect("a response").text(), "/second");
    assert_eq!(client.ended(), None);
    nothing_is_left(&server);
}

#[test]
fn a_body_that_stops_is_refused_and_other_streams_go_on() {
    let config = Config {
        body_timeout: SHORT,
        body_min_rate: 1_000_000,
        ..config()
    };
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    let mut client = Http2Client::connect(server.address);
    let mut slow = client.ask(request("POST", "/"), true);
    client.upload(&mut slow.body, b"some", false).expect("a window");
    let response = client.head(&mut slow).expect("a response");
    assert_eq!(response.status(), 408);
    assert_eq!(client.get("/next").text(), "ok");
    drop((slow, response, client));
    nothing_is_left(&server);
}
