//! Requests that may enter the waiting room, and the workers that take them.

mod support;

use fairlead_engine::{Config, Exchange, Scoreboard, SharedQueues};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex, OnceLock};
use support::http2::{get, Http2Client};
use support::*;

/// A worker with only one thread, which is held until the end of the test, or until it is released.
struct Busy {
    server: Server,
    scoreboard: &'static Scoreboard,
    queues: Arc<SharedQueues>,
    _first: Client,
    release: mpsc::Sender<()>,
}

impl Busy {
    fn start(config: Config) -> Busy {
        let (queues, scoreboard) = shared_queues();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Mutex::new(hold);
        let call = move |exchange: &mut Exchange<'_>| {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            reply(exchange, "busy");
        };
        let server = Server::on(&listen(), config, Some((Arc::clone(&queues), 0)), Arc::new(call));
        let mut first = server.connect();
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("it is busy", || server.engine.stats().busy_threads == 1);
        Busy {
            server,
            scoreboard,
            queues,
            _first: first,
            release,
        }
    }

    /// A client that has sent one request and waits.
    fn client(&self, request: &str) -> Client {
        let mut client = self.server.connect();
        client.send(request);
        client
    }

    /// Another worker, which responds with its path and the length of the body.
    fn sibling(&self, config: Config) -> Server {
        let call = |exchange: &mut Exchange<'_>| {
            let length = exchange.take_body().len();
            reply(exchange, &format!("{} {length}", path(exchange)));
        };
        Server::on(&listen(), config, Some((Arc::clone(&self.queues), 1)), Arc::new(call))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        (0..100).for_each(|_| _ = self.release.send(()));
    }
}

fn post(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{}",
        "x".repeat(length)
    )
}

const CLOSE: &str = "GET /close HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

fn roomy(max_connections: usize) -> Config {
    Config {
        max_connections,
        body_memory_bytes: 1 << 20,
        ..config()
    }
}

#[test]
fn requests_of_every_size_move_and_none_keeps_the_next_one_back() {
    let busy = Busy::start(roomy(100));
    let sizes = [60_000, 5, 900_000, 112 * 1024, 0];
    let mut clients: Vec<Client> = sizes
        .iter()
        .map(|size| busy.client(&post(&format!("/{size}"), *size)))
        .collect();
    eventually("all of them are in the room", || busy.scoreboard.waiting() == 5);
    let _sibling = busy.sibling(roomy(100));
    for (client, size) in clients.iter_mut().zip(sizes) {
        assert_eq!(client.response().text(), format!("/{size} {size}"));
    }
}

#[test]
fn what_is_pipelined_behind_a_long_request_moves_with_it() {
    let busy = Busy::start(roomy(100));
    let mut client = busy.client(&[post("/long", 100_000), post("/next", 50_000), CLOSE.into()].concat());
    eventually("it is in the room", || busy.scoreboard.waiting() == 1);
    let _sibling = busy.sibling(roomy(100));
    let responses = [client.response(), client.response(), client.response()];
    assert_eq!(
        responses.map(|one| one.text()),
        ["/long 100000", "/next 50000", "/close 0"]
    );
}

#[test]
fn a_full_worker_leaves_transfers_until_a_connection_closes() {
    let busy = Busy::start(roomy(100));
    static ENGINE: OnceLock<Arc<fairlead_engine::Engine>> = OnceLock::new();
    static MOST: AtomicI64 = AtomicI64::new(0);
    let call = |exchange: &mut Exchange<'_>| {
        if let Some(engine) = ENGINE.get() {
            MOST.fetch_max(engine.stats().connections, SeqCst);
        }
        reply(exchange, "full");
    };
    let full = Server::on(&listen(), roomy(2), Some((Arc::clone(&busy.queues), 1)), Arc::new(call));
    let _ = ENGINE.set(Arc::clone(&full.engine));
    let mut idle = [full.connect(), full.connect()];
    idle.iter_mut()
        .for_each(|client| assert_eq!(client.get("/").status, 200));
    let mut waiting = [busy.client(CLOSE), busy.client(CLOSE), busy.client(CLOSE)];
    eventually("all of them wait", || busy.scoreboard.moved.load(SeqCst) == 3);
    // It has had time to take one in by now: it runs requests, and checks the waiting room each time.
    for _ in 0..20 {
        idle.iter_mut()
            .for_each(|client| assert_eq!(client.get("/").status, 200));
    }
    assert_eq!((busy.scoreboard.waiting(), full.engine.stats().moved_in), (3, 0));
    drop(idle);
    for client in &mut waiting {
        assert_eq!(client.response().text(), "full");
    }
    assert_eq!(MOST.load(SeqCst), 2, "connections at a time");
}

#[test]
fn strangers_leave_those_who_wait_their_places() {
    let busy = Busy::start(roomy(2));
    let full = busy.sibling(roomy(2));
    let mut idle = [full.connect(), full.connect()];
    idle.iter_mut()
        .for_each(|client| assert_eq!(client.get("/").status, 200));
    let mut waiting = busy.client(CLOSE);
    eventually("it waits", || busy.scoreboard.waiting() == 1);
    assert_eq!(busy.server.engine.stats().connections, 1, "there is one place left");
    let mut stranger = busy.server.connect();
    stranger.send(CLOSE);
    assert_eq!(stranger.response().status, 503);
    drop(idle);
    assert_eq!(waiting.response().text(), "/close 0");
    let mut stranger = busy.server.connect();
    stranger.send(CLOSE);
    assert_eq!(stranger.response().status, 200);
}

/// Their connections count already. One request at a time can run in the only worker, so one place is left for them.
#[test]
fn streams_in_the_room_take_no_places_of_connections_but_one_for_each_thread() {
    let busy = Busy::start(roomy(10));
    let stats = || busy.server.engine.stats();
    let mut clients = [(); 3].map(|()| Http2Client::connect(busy.server.address));
    let asked = clients.each_mut().map(|client| {
        client.wait_for_settings();
        [(); 2].map(|()| client.ask(get("/stream"), false))
    });
    eventually("all of them wait", || busy.scoreboard.waiting() == 6);
    assert_eq!(stats().connections, 4, "with the first one");
    let mut strangers = Vec::new();
    for open in 5..=9 {
        strangers.push(busy.server.connect());
        eventually("it is accepted", || {
            stats().connections == open || stats().refused_connections > 0
        });
    }
    assert_eq!(stats().refused_connections, 0);
    assert_eq!(busy.client(CLOSE).response().status, 503, "the last place is theirs");
    // A connection that waits in the room is counted there.
    strangers[0].send("GET /moved HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it waits", || {
        (busy.scoreboard.waiting(), stats().connections) == (7, 8)
    });
    assert_eq!(busy.client(CLOSE).response().status, 503, "it has its place");
    let _sibling = busy.sibling(roomy(10));
    for (client, asked) in clients.iter_mut().zip(asked) {
        for one in asked {
            assert_eq!(client.response(one).expect("a response").text(), "/stream 0");
        }
    }
    assert_eq!(strangers[0].response().text(), "/moved 0");
}
