//! Responses that clients do not read, together more than the limit: the threads that write them wait, and other
//! requests are served.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use fairlead_engine::{Config, Exchange};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::frames::{get, setting, FrameClient, INITIAL_WINDOW};
use support::{config, eventually, path, Client, Server};

const LARGE: usize = 16_000_000;
const TOTAL: u64 = 1 << 20;

/// A server that responds with as many bytes as the path says, of which few may be queued. Counts the waits of a thread
/// in each response to `/counted`.
fn server() -> (Server, Arc<AtomicUsize>) {
    let waits: Arc<AtomicUsize> = Arc::default();
    let counter = Arc::clone(&waits);
    let body = vec![b'x'; LARGE];
    let config = Config {
        min_threads: 2,
        max_threads: 2,
        response_memory_total_bytes: TOTAL,
        response_disk_total_bytes: 0,
        ..config()
    };
    let server = Server::start(config, move |exchange| match &*path(exchange) {
        "/small" => respond(exchange, &body[..5], &AtomicUsize::default()),
        "/counted" => respond(exchange, &body, &counter),
        _ => respond(exchange, &body, &AtomicUsize::default()),
    });
    (server, waits)
}

fn respond(exchange: &mut Exchange<'_>, mut body: &[u8], waits: &AtomicUsize) {
    exchange.start(200);
    exchange.end_head(Some(body.len() as u64));
    while let Ok(taken) = exchange.write(body) {
        body = &body[taken..];
        if body.is_empty() {
            return;
        }
        waits.fetch_add(1, SeqCst);
        if exchange.wait_for_client().is_err() {
            return;
        }
    }
}

/// A client of HTTP/1.1 that sends a request and does not read.
fn ask(server: &Server, path: &str) -> Client {
    let mut client = server.connect();
    set_socket_recv_buffer_size(&client.stream, 4_096).expect("a small buffer");
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

/// A client of HTTP/2 that has sent this request on each stream, with closed windows.
fn ask_with_http2(server: &Server, path: &str, streams: u32) -> FrameClient {
    let mut client = FrameClient::connect(server.address);
    client.send(&setting(INITIAL_WINDOW, 0));
    for number in 0..streams {
        client.send(&get(2 * number + 1, path));
    }
    client
}

#[test]
fn a_crowd_that_does_not_read_keeps_no_thread() {
    let (server, _) = server();
    let clients: Vec<Client> = (0..30).map(|_| ask(&server, "/large")).collect();
    for _ in 0..5 {
        assert_eq!(server.connect().get("/small").body.len(), 5);
    }
    drop(clients);
}

#[test]
fn a_crowd_of_streams_whose_windows_stay_closed_keeps_no_thread() {
    let (server, _) = server();
    let clients: Vec<FrameClient> = (0..3).map(|_| ask_with_http2(&server, "/large", 30)).collect();
    for _ in 0..5 {
        assert_eq!(server.connect().get("/small").body.len(), 5);
    }
    drop(clients);
}

/// The first client uses all the memory, and no data is queued for the second one.
fn waits_patiently<C>(ask_second: impl Fn(&Server, &str) -> C) {
    let (server, waits) = server();
    let first = ask(&server, "/large");
    eventually("it has written what it can", || {
        std::thread::sleep(Duration::from_millis(50));
        server.engine.stats().busy_threads == 1
    });
    let second = ask_second(&server, "/counted");
    eventually("it waits", || waits.load(SeqCst) > 0);
    let (before, began) = (waits.load(SeqCst), Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    let count = waits.load(SeqCst) - before;
    assert!(
        count as u128 <= began.elapsed().as_millis(),
        "it has waited {count} times in {:?}",
        began.elapsed()
    );
    drop((first, second));
}

#[test]
fn a_thread_that_finds_no_memory_for_its_first_byte_waits_for_it() {
    waits_patiently(ask);
}

#[test]
fn so_does_one_whose_client_keeps_its_windows_closed() {
    waits_patiently(|server, path| ask_with_http2(server, path, 1));
}
