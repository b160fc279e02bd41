//! Turns: a client's share does not depend on its number of concurrent requests.

use crate::support::http2::{get, Http2Client};
use crate::support::*;
use fairlead_engine::Config;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

/// Sends as many requests as the server allows, and the next one after each response, until `stop` is set.
fn keep_asking(address: std::net::SocketAddr, path: &str, streams: usize, stop: &AtomicBool) {
    let mut client = Http2Client::connect(address);
    let mut asked: std::collections::VecDeque<_> = (0..streams).map(|_| client.ask(get(path), false)).collect();
    while let Some(first) = asked.pop_front() {
        assert_eq!(client.response(first).expect("a response").status, 200);
        if !stop.load(SeqCst) {
            asked.push_back(client.ask(get(path), false));
        }
    }
}

#[test]
fn a_connection_with_a_hundred_streams_gets_as_much_as_one_with_one() {
    const CLIENTS: usize = 11;
    const REQUESTS: usize = 550;
    let served: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&served);
    let config = Config {
        min_threads: 5,
        max_threads: 5,
        ..config()
    };
    let server = Server::start(config, move |exchange| {
        let path = path(exchange);
        // The work of the app: long compared with the time in which a client sends its next request.
        std::thread::sleep(Duration::from_millis(10));
        seen.lock().expect("no panic").push(path);
        reply(exchange, "ok");
    });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (address, stop) = (server.address, &stop);
            let streams = if number == 0 { 100 } else { 1 };
            scope.spawn(move || keep_asking(address, &format!("/{number}"), streams, stop));
        }
        eventually("enough were served", || {
            served.lock().expect("no panic").len() >= REQUESTS + 200
        });
        stop.store(true, SeqCst);
    });
    // Without the time of their start.
    let mut counts: HashMap<String, usize> = HashMap::new();
    for path in &served.lock().expect("no panic")[100..100 + REQUESTS] {
        *counts.entry(path.clone()).or_default() += 1;
    }
    let least = (0..CLIENTS).map(|number| counts.get(&format!("/{number}")).copied().unwrap_or(0));
    let least = least.min().expect("clients");
    assert!(least * 10 >= REQUESTS / CLIENTS * 8, "{counts:?}");
}

#[test]
fn urgency_orders_the_requests_of_one_connection_only() {
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let served: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&served);
    let server = Server::start(config(), move |exchange| {
        let path = path(exchange);
        if path == "/first" {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        seen.lock().expect("no panic").push(path);
        reply(exchange, "ok");
    });
    let mut holder = server.connect();
    holder.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it runs", || server.engine.stats().busy_threads == 1);
    let mut client = Http2Client::connect(server.address);
    let mut asked = Vec::new();
    for (path, priority) in [
        ("/a", "u=3"),
        ("/last", "u=7"),
        ("/b", "u=3"),
        ("/urgent", "u=0"),
        ("/c", "i"),
    ] {
        let mut request = get(path);
        request
            .headers_mut()
            .insert("priority", priority.parse().expect("a value"));
        asked.push(client.ask(request, false));
    }
    client.wait("all are there", |_| match server.engine.stats().http2_requests {
        5 => std::task::Poll::Ready(()),
        _ => std::task::Poll::Pending,
    });
    let mut other = server.connect();
    other.send("GET /other HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it waits, too", || server.engine.stats().queued == 6);
    release.send(()).expect("it waits");
    for asked in asked {
        client.response(asked).expect("a response");
    }
    other.response();
    // The first one had its turn before the others arrived.
    let order = ["/first", "/a", "/other", "/urgent", "/b", "/c", "/last"];
    assert_eq!(*served.lock().expect("no panic"), order);
}
