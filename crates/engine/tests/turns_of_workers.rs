//! The order in which a worker runs its own events and tasks, and the requests in the waiting room.

mod support;

use fairlead_engine::{App, Client as Peer, Config, Event, Exchange, Protocol, Scoreboard, SharedQueues};
use fairlead_wire::websocket::Opcode;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;
use support::http2::{get, Http2Client};
use support::web_socket::{text, WebSocket};
use support::*;

/// Records the jobs that run. A request for `/hold` runs until it is released.
struct Diary {
    lines: Mutex<Vec<String>>,
    hold: Mutex<mpsc::Receiver<()>>,
}

impl Diary {
    fn note(&self, line: String) {
        self.lines.lock().expect("no panic").push(line);
    }
}

impl App for Diary {
    fn call(&self, exchange: &mut Exchange<'_>) {
        if exchange.start_upgrade() {
            let _ = exchange.field(b"sec-websocket-protocol", b"chat");
            exchange.end_upgrade();
            return;
        }
        let path = path(exchange);
        if path == "/hold" {
            let _ = self.hold.lock().expect("no panic").recv_timeout(PATIENCE);
        } else if path == "/slow" {
            std::thread::sleep(Duration::from_millis(3));
        } else {
            self.note(path);
        }
        reply(exchange, "ok");
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        match event {
            Event::Open if matches!(client.protocol(), Protocol::EventStream { .. }) => self.note("open".into()),
            Event::Message { text, data } => {
                self.note(String::from_utf8_lossy(&data).into_owned());
                client.write(&data, text);
            }
            _ => {}
        }
    }

    fn task(&self) {
        self.note("task".into());
    }
}

/// A worker with one thread, which is busy until it is released, and a waiting room that no other worker serves.
struct Worker {
    server: Server,
    diary: Arc<Diary>,
    scoreboard: &'static Scoreboard,
    queues: Arc<SharedQueues>,
    release: mpsc::Sender<()>,
    held: Client,
}

impl Worker {
    fn start(config: Config) -> Worker {
        let (queues, scoreboard) = shared_queues();
        let (release, hold) = mpsc::channel();
        let diary = Arc::new(Diary {
            lines: Mutex::default(),
            hold: Mutex::new(hold),
        });
        let shared = Some((Arc::clone(&queues), 0));
        let server = Server::run(&listen(), config, shared, Arc::clone(&diary));
        let held = server.connect();
        Worker {
            server,
            diary,
            scoreboard,
            queues,
            release,
            held,
        }
    }

    fn hold(&mut self) {
        self.held.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("it is busy", || self.server.engine.stats().busy_threads == 1);
    }

    /// Sends requests, one at a time, until they are in the waiting room.
    fn fill(&self, names: &[&str]) -> Vec<Client> {
        let mut clients = Vec::new();
        for name in names {
            let before = self.scoreboard.waiting();
            let mut client = self.server.connect();
            client.send(&format!("GET {name} HTTP/1.1\r\nHost: test\r\n\r\n"));
            eventually("it is in the room", || self.scoreboard.waiting() == before + 1);
            clients.push(client);
        }
        clients
    }

    fn let_go(&mut self) {
        self.release.send(()).expect("it waits");
        assert_eq!(self.held.response().status, 200);
    }

    fn queued(&self, count: i64) {
        eventually("its own jobs wait", || self.server.engine.stats().queued == count);
    }

    fn lines(&self, count: usize) -> Vec<String> {
        let lines = || self.diary.lines.lock().expect("no panic").clone();
        eventually("all have run", || lines().len() == count);
        lines()
    }
}

#[test]
fn messages_and_tasks_take_turns_with_the_waiting_room_in_the_order_of_arrival() {
    let mut worker = Worker::start(config());
    let mut socket = WebSocket::connect(worker.server.address);
    // Its event `Open` has run when it gets the response to a message.
    socket.send(Opcode::Text, b"first");
    assert_eq!(socket.receive(), text("first"));
    worker.hold();
    let mut clients = worker.fill(&["/1", "/2"]);
    socket.send(Opcode::Text, b"message");
    worker.queued(1);
    worker.server.engine.defer();
    clients.extend(worker.fill(&["/3", "/4"]));
    worker.let_go();
    let lines = worker.lines(7);
    assert_eq!(lines[1..], ["/1", "/2", "message", "task", "/3", "/4"]);
    assert_eq!(socket.receive(), text("message"));
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.response().status, 200));
}

#[test]
fn requests_of_one_connection_do_not_overtake_by_having_waited_for_each_other() {
    let mut worker = Worker::start(config());
    worker.hold();
    let mut client = Http2Client::connect(worker.server.address);
    client.wait_for_settings();
    // For a connection that cannot migrate, two requests are in the waiting room, one is in the ready queue, and the
    // others are in the connection's own queue.
    let asked: Vec<_> = (1..=6)
        .map(|number| client.ask(get(&format!("/many/{number}")), false))
        .collect();
    eventually("two are in the room", || worker.scoreboard.waiting() == 2);
    let mut single = worker.fill(&["/single"]);
    worker.let_go();
    let lines = worker.lines(7);
    let place = lines.iter().position(|line| line == "/single").expect("it has run");
    assert!(place <= 3, "{lines:?}");
    assert_eq!(single[0].response().status, 200);
    asked
        .into_iter()
        .for_each(|asked| assert_eq!(client.response(asked).expect("a response").status, 200));
}

#[test]
fn events_are_seen_while_the_waiting_room_is_never_empty() {
    let mut config = config();
    (config.min_threads, config.max_threads) = (2, 2);
    let worker = Worker::start(config.clone());
    let shared = Some((Arc::clone(&worker.queues), 1));
    let sibling = Server::run(&listen(), config, shared, Arc::clone(&worker.diary));
    let is_over = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..40)
        .map(|number| {
            let address = [worker.server.address, sibling.address][number % 2];
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut served = 0;
                while !is_over.load(SeqCst) {
                    assert_eq!(client.get("/slow").status, 200);
                    served += 1;
                }
                served
            })
        })
        .collect();
    let mut socket = WebSocket::connect(worker.server.address);
    eventually("the room is in use", || worker.scoreboard.moved.load(SeqCst) > 50);
    let served = || {
        [&worker.server, &sibling]
            .map(|one| one.engine.stats().requests)
            .iter()
            .sum::<u64>()
    };
    let mut most = 0;
    for number in 0..20 {
        let before = served();
        let message = number.to_string();
        socket.send(Opcode::Text, message.as_bytes());
        assert_eq!(socket.receive(), text(&message));
        let mut stream = worker.server.connect();
        stream.send("GET /events HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n");
        worker.lines(2 * (number + 1));
        most = most.max(served() - before);
    }
    is_over.store(true, SeqCst);
    let all: u64 = load.into_iter().map(|one| one.join().expect("no failure")).sum();
    assert!(all > 0);
    // Forty requests are queued at a time, so a message waits for only a few rounds of them.
    assert!(most < 400, "a message waited for {most} requests");
}
