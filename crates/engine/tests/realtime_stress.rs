//! A mixed load: clients that connect, send, subscribe, close, stall or die at any moment, and concurrent publishers.
//! In the end no client may be left, and no thread may hang.

mod support;

use fairlead_engine::pubsub::{Delivery, Match, Scope};
use fairlead_engine::{App, Client as Peer, Config, Engine, Event, Exchange};
use fairlead_wire::websocket::Opcode;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::web_socket::{frame, Received, WebSocket};
use support::{config, eventually, listen, Server, PATIENCE};

/// Duration of the test.
const TIME: Duration = Duration::from_secs(5);

const HANDSHAKE_OF_STREAM: &[u8] = b"GET /events HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n";

/// Echoes messages, and checks the order of each client's events.
#[derive(Default)]
struct Echo {
    /// Clients between their first and their last event, by address; true while an event runs.
    present: Mutex<HashMap<usize, bool>>,
    opened: AtomicUsize,
    faults: Mutex<Vec<String>>,
    published: AtomicU64,
}

impl Echo {
    fn begin(&self, client: &Arc<Peer>, event: &Event) {
        let mut present = self.present.lock().expect("no panic");
        let before = present.insert(Arc::as_ptr(client) as usize, true);
        let expected = if matches!(event, Event::Open) {
            None
        } else {
            Some(false)
        };
        if before != expected {
            self.fault(format!("{event:?} while {before:?}"));
        }
    }

    fn end(&self, client: &Arc<Peer>, is_last: bool) {
        let mut present = self.present.lock().expect("no panic");
        let key = Arc::as_ptr(client) as usize;
        if is_last {
            present.remove(&key);
        } else {
            present.insert(key, false);
        }
    }

    fn fault(&self, what: String) {
        self.faults.lock().expect("no panic").push(what);
    }

    fn heard(&self, client: &Arc<Peer>, text: bool, data: &[u8]) {
        match data {
            b"close" => client.close(Some(1000), "as you wish"),
            b"leave" => _ = client.unsubscribe(b"all"),
            b"replace" => client.replaced(),
            b"blocks" => _ = client.subscribe(b"a*", Match::Glob, Delivery::Event(7)),
            _ => _ = client.write(data, text),
        }
    }
}

impl App for Echo {
    fn call(&self, exchange: &mut Exchange<'_>) {
        support::web_socket::accept(exchange);
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        self.begin(client, &event);
        let is_last = matches!(event, Event::Close);
        match event {
            Event::Open => {
                self.opened.fetch_add(1, SeqCst);
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                client.write(b"hello", true);
            }
            Event::Message { text, data } => self.heard(client, text, &data),
            Event::Published(7, publication) => _ = client.write(&publication.message, true),
            Event::Published(..) => self.fault("an event of no subscription".into()),
            Event::Close if client.write(b"late", true) => self.fault("a write to a client that is gone".into()),
            Event::Deferred(_) | Event::Drained | Event::Replaced | Event::Shutdown | Event::Close => {}
            Event::HandOver | Event::TakeOver(_) | Event::ContinueTakeover | Event::Departed => {}
        }
        self.end(client, is_last);
    }

    fn published(&self, _: u64, _: &fairlead_engine::pubsub::Publication) {
        self.published.fetch_add(1, SeqCst);
    }
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// The life of one client. The responses have the order of its messages, even while messages are published.
fn live(address: SocketAddr, dice: &mut Dice) {
    let mut client = WebSocket::connect_with(address, &frame(Opcode::Text, b"= 0"));
    let count = dice.throw(20);
    for number in 1..=count {
        client.send(Opcode::Text, format!("= {number}").as_bytes());
    }
    assert_eq!(next(&mut client), Received::Text("hello".into()));
    for number in 0..=count {
        assert_eq!(next(&mut client), Received::Text(format!("= {number}")));
    }
    // More than may be queued for the app: reading stops and continues again and again.
    let burst = dice.throw(30);
    let _ = client
        .stream
        .write_all(&frame(Opcode::Text, &[b'x'; 900]).repeat(burst as usize));
    for _ in 0..burst {
        assert_eq!(next(&mut client), Received::Text("x".repeat(900)));
    }
    for _ in 0..dice.throw(4) {
        let words: [&[u8]; 4] = [b"leave", b"replace", b"blocks", &[b'x'; 900]];
        let _ = client
            .stream
            .write_all(&frame(Opcode::Text, words[dice.throw(4) as usize]));
    }
    match dice.throw(6) {
        0 => {}
        1 => _ = client.stream.shutdown(Shutdown::Both),
        2 => {
            let _ = client.stream.write_all(&frame(Opcode::Text, b"close"));
            until_end(&mut client);
        }
        3 => {
            let _ = client.stream.write_all(&frame(Opcode::Close, &1000u16.to_be_bytes()));
            until_end(&mut client);
        }
        4 => {
            let _ = client.stream.write_all(&[0xff; 20]);
            until_end(&mut client);
        }
        _ => {
            _ = client
                .stream
                .write_all(&frame(Opcode::Binary, &[0; 2_000])[..dice.throw(2_000) as usize])
        }
    }
}

/// The next item, except for published messages.
fn next(client: &mut WebSocket) -> Received {
    loop {
        match client.receive() {
            Received::Text(text) if text.starts_with("news") => {}
            received => return received,
        }
    }
}

fn until_end(client: &mut WebSocket) {
    loop {
        match client.receive() {
            Received::End => return,
            Received::Close(_) => _ = client.stream.write_all(&frame(Opcode::Close, &[])),
            _ => {}
        }
    }
}

fn watch_events(address: SocketAddr, dice: &mut Dice) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.write_all(HANDSHAKE_OF_STREAM).expect("the server reads");
    for _ in 0..dice.throw(10) {
        assert!(stream.read(&mut [0; 4096]).expect("something comes") > 0);
    }
}

#[test]
fn nothing_is_left_of_many_clients() {
    let app = Arc::new(Echo::default());
    let config = Config {
        max_threads: 4,
        message_max_bytes: 1_000,
        client_pending_bytes: 4 << 20,
        ..config()
    };
    let server = Server::run(&listen(), config, None, Arc::clone(&app));
    let own = server.engine.new_subscription();
    let own_id = own.id();
    server.hub.subscribe(own, b"all", Match::Exact, Delivery::Event(own_id));
    let is_over = AtomicBool::new(false);
    let lives = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for seed in 1..=8u64 {
            let (lives, address) = (&lives, server.address);
            scope.spawn(move || {
                let until = Instant::now() + TIME;
                let mut dice = Dice(seed * 0x9e37_79b9);
                while Instant::now() < until {
                    match dice.throw(5) {
                        0 => watch_events(address, &mut dice),
                        _ => live(address, &mut dice),
                    }
                    lives.fetch_add(1, SeqCst);
                }
            });
        }
        let (hub, is_over) = (&server.hub, &is_over);
        for name in ["all", "a", "b"] {
            scope.spawn(move || {
                while !is_over.load(SeqCst) {
                    let message = format!("news of {name}");
                    hub.publish(name.as_bytes(), message.as_bytes(), Scope::Process, &mut |wait| wait());
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        scope.spawn(move || {
            std::thread::sleep(TIME + Duration::from_secs(1));
            is_over.store(true, SeqCst);
        });
    });
    assert!(lives.load(SeqCst) > 100);
    eventually("no client to be left", || nobody_is_left(&server.engine));
    assert_eq!(*app.faults.lock().expect("no panic"), Vec::<String>::new());
    assert!(app.present.lock().expect("no panic").is_empty());
    assert_eq!(server.hub.stats().subscriptions, 1, "the process's own");
    assert_eq!((server.hub.stats().panics, server.engine.stats().queued), (0, 0));
    assert!(app.opened.load(SeqCst) > 0 && app.published.load(SeqCst) > 0);
    assert_eq!(server.connect().get("/").status, 200);
}

fn nobody_is_left(engine: &Engine) -> bool {
    engine.stats().connections == 0 && engine.stats().clients == 0
}
