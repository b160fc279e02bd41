//! Scheduling: waking the next thread, the monitor's help, threads, and the waiting room between workers.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;
use support::*;

#[test]
fn requests_that_wait_run_at_the_same_time() {
    let crowd = Arc::new(Crowd::default());
    let inside = Arc::clone(&crowd);
    let mut config = config();
    (config.min_threads, config.max_threads) = (5, 5);
    let server = Server::start(config, move |exchange| {
        inside.enter();
        let until = std::time::Instant::now() + PATIENCE;
        // No request returns before all are running: only five threads can do that.
        while inside.most.load(SeqCst) < 5 && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        inside.leave();
        reply(exchange, "ok");
    });
    let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    clients
        .iter_mut()
        .for_each(|client| _ = client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.response().status, 200));
    assert_eq!(crowd.most.load(SeqCst), 5);
}

#[test]
fn a_busy_app_does_not_stop_refusals_and_reads() {
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let server = Server::start(config(), move |exchange| {
        if path(exchange) == "/hold" {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        reply(exchange, "ok");
    });
    let mut held = server.connect();
    held.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the only thread is busy", || server.engine.stats().busy_threads == 1);
    let mut bad = server.connect();
    bad.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_eq!(bad.response().status, 400);
    let mut next = server.connect();
    next.send("GET /next HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the next request is queued", || server.engine.stats().queued == 1);
    release.send(()).expect("it waits");
    assert_eq!(held.response().status, 200);
    assert_eq!(next.response().status, 200);
}

#[test]
fn what_waits_in_a_busy_worker_is_served_by_a_free_one() {
    let (queues, scoreboard) = shared_queues();
    let socket = listen();
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let busy_calls = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&busy_calls);
    let busy = Server::on(
        &socket,
        config(),
        Some((Arc::clone(&queues), 0)),
        Arc::new(move |exchange| {
            calls.fetch_add(1, SeqCst);
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            reply(exchange, "busy");
        }),
    );
    let mut first = busy.connect();
    first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the first worker is busy", || busy_calls.load(SeqCst) == 1);
    let mut waiting: Vec<Client> = (0..3).map(|_| busy.connect()).collect();
    for (number, client) in waiting.iter_mut().enumerate() {
        let body = "x".repeat([0, 100, 20_000][number]);
        client.send(&format!(
            "POST /{number} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }
    eventually("three wait in the room", || scoreboard.waiting() == 3);
    // Only now another worker starts, and serves the waiting room.
    let free = Server::on(
        &listen(),
        config(),
        Some((Arc::clone(&queues), 1)),
        Arc::new(|exchange| {
            let length = exchange.take_body().len();
            reply(exchange, &format!("free {} {length}", path(exchange)));
        }),
    );
    for (number, client) in waiting.iter_mut().enumerate() {
        assert_eq!(
            client.response().text(),
            format!("free /{number} {}", [0, 100, 20_000][number])
        );
        assert_eq!(
            client.get("/again").text(),
            "free /again 0",
            "the connection lives on where it was served"
        );
    }
    assert_eq!(scoreboard.waiting(), 0);
    assert_eq!((busy.engine.stats().moved_out, free.engine.stats().moved_in), (3, 3));
    release.send(()).expect("it waits");
    assert_eq!(first.response().text(), "busy");
}

#[test]
fn with_the_room_switched_off_requests_stay() {
    let (queues, scoreboard) = shared_queues();
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let mut config = config();
    config.waiting_room = false;
    let call = Arc::new(move |exchange: &mut fairlead_engine::Exchange<'_>| {
        let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        reply(exchange, "stayed");
    });
    let server = Server::on(&listen(), config, Some((queues, 0)), call);
    let mut clients = [server.connect(), server.connect()];
    clients
        .iter_mut()
        .for_each(|client| _ = client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
    eventually("one runs and one waits", || server.engine.stats().queued == 1);
    release.send(()).expect("it waits");
    release.send(()).expect("it waits");
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.response().text(), "stayed"));
    assert_eq!(scoreboard.moved.load(SeqCst), 0);
}
