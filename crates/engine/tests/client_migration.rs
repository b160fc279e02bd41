//! WebSockets that migrate to another worker, because theirs ends: the peer notices nothing, and gets each message once.

mod support;

use fairlead_engine::pubsub::{Bus, Delivery, Hub, Match, Publication, Scope, Subscriber};
use fairlead_engine::{App, Client as Peer, Config, Event, Exchange, Handover, Scoreboard, SharedQueues};
use fairlead_wire::websocket::{masked_frame, Context, Deflater, Opcode};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;
use support::web_socket::{frame, text, Received, WebSocket};
use support::*;

/// Answers messages with its slot. Subscribes each client to `all`, and to `block` with a block.
struct Chat {
    slot: usize,
    hands_over: bool,
    log: Mutex<Vec<String>>,
}

impl App for Chat {
    fn call(&self, exchange: &mut Exchange<'_>) {
        support::web_socket::accept(exchange);
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        let line = match event {
            Event::Open => {
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                client.subscribe(b"p*", Match::Glob, Delivery::Text);
                client.subscribe(b"block", Match::Exact, Delivery::Event(7));
                "open".to_string()
            }
            Event::Message { text, data } => {
                let answer = format!("{}: {}", self.slot, String::from_utf8_lossy(&data));
                client.write(answer.as_bytes(), text);
                return;
            }
            Event::Published(id, publication) => {
                let message = String::from_utf8_lossy(&publication.message).into_owned();
                client.write(format!("block {id}: {message}").as_bytes(), true);
                return;
            }
            Event::HandOver if self.hands_over => {
                client.hand_over(Handover::State(format!("from {}", self.slot).into_bytes()));
                assert!(!client.is_here() && !client.write(b"too late", true));
                "hand over".into()
            }
            Event::HandOver => {
                client.hand_over(Handover::Refused);
                "refused".into()
            }
            Event::TakeOver(state) => {
                assert_eq!(client.largest_block(), 7);
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                client.subscribe(b"block", Match::Exact, Delivery::Event(8));
                client.taken_over();
                format!("take over {}", String::from_utf8_lossy(&state))
            }
            Event::Departed => "departed".into(),
            Event::Shutdown => "shutdown".into(),
            Event::Close => "close".into(),
            Event::Drained | Event::Deferred(_) | Event::Replaced | Event::ContinueTakeover => return,
        };
        self.log.lock().expect("no panic").push(line);
    }
}

/// A server with several workers in this process.
struct Workers {
    queues: Arc<SharedQueues>,
    bus: Arc<Bus>,
}

struct Worker {
    server: Server,
    hub: Arc<Hub>,
    app: Arc<Chat>,
}

impl Workers {
    fn new() -> Workers {
        let scoreboard: &'static Scoreboard = Box::leak(Box::default());
        Workers {
            queues: Arc::new(SharedQueues::new(scoreboard).expect("queues")),
            bus: Arc::new(Bus::new(scoreboard, 8).expect("mailboxes")),
        }
    }

    fn start(&self, slot: usize, config: Config) -> Worker {
        self.start_app(slot, config, true)
    }

    fn start_app(&self, slot: usize, config: Config, hands_over: bool) -> Worker {
        let hub = Hub::new(Some((Arc::clone(&self.bus), slot))).expect("a hub");
        let app = Arc::new(Chat {
            slot,
            hands_over,
            log: Mutex::default(),
        });
        let shared = (Arc::clone(&self.queues), slot);
        // Each has a socket of its own, so that a test decides which worker accepts.
        let server = Server::publishing(&listen(), config, shared, Arc::clone(&app), Arc::clone(&hub));
        Worker { server, hub, app }
    }
}

impl Worker {
    fn connect(&self) -> WebSocket {
        connect_to(self, 1).remove(0)
    }

    fn log(&self) -> Vec<String> {
        self.app.log.lock().expect("no panic").clone()
    }

    fn publish(&self, channel: &str, message: &str) {
        let posted = self
            .hub
            .publish(channel.as_bytes(), message.as_bytes(), Scope::Cluster, &mut |wait| {
                wait()
            });
        assert_eq!(posted.undelivered, 0);
    }

    fn retire(&self) {
        self.server.engine.drain_and_migrate();
    }

    fn has_ended(&self) -> bool {
        self.server.engine.wait(Some(Duration::ZERO))
    }
}

#[test]
fn a_client_continues_in_the_middle_of_a_frame() {
    let workers = Workers::new();
    let old = workers.start(0, config());
    let mut client = old.connect();
    client.send(Opcode::Text, b"one");
    assert_eq!(client.receive(), text("0: one"));
    let two = frame(Opcode::Text, b"two");
    let (begun, rest) = two.split_at(5);
    client.stream.write_all(begun).expect("the server reads");
    old.publish("all", "before");
    assert_eq!(client.receive(), text("before"));
    old.publish("page", "by a pattern");
    assert_eq!(client.receive(), text("by a pattern"));
    let new = workers.start(1, config());
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    client.stream.write_all(rest).expect("the server reads");
    assert_eq!(client.receive(), text("1: two"));
    eventually("the app has resumed the client", || !new.log().is_empty());
    new.publish("page", "the app has not asked for this pattern again");
    new.publish("all", "after");
    assert_eq!(client.receive(), text("after"));
    new.publish("block", "to a block");
    assert_eq!(client.receive(), text("block 7: to a block"));
    assert_eq!(old.log(), ["open", "hand over", "departed"]);
    assert_eq!(new.log(), ["take over from 0"]);
    client.send(Opcode::Close, &[3, 0xe8]);
    assert_eq!(client.receive(), Received::Close(Some(1000)));
    eventually("the app is told", || new.log().len() == 2);
}

#[test]
fn a_client_that_cannot_migrate_is_closed_for_the_restart() {
    let workers = Workers::new();
    let old = workers.start_app(0, config(), false);
    let mut client = old.connect();
    let _new = workers.start(1, config());
    old.retire();
    assert_eq!(client.receive(), Received::Close(Some(1012)));
    client.send(Opcode::Close, &[3, 0xf4]);
    eventually("the old worker ends", || old.has_ended());
    assert_eq!(old.log(), ["open", "refused", "shutdown", "close"]);
}

#[test]
fn clients_close_when_no_other_worker_serves() {
    let workers = Workers::new();
    let only = workers.start(0, config());
    let mut client = only.connect();
    only.retire();
    assert!(matches!(client.receive(), Received::Close(Some(1001 | 1012))));
}

#[test]
fn the_last_worker_tells_clients_on_their_way_that_the_server_ends() {
    let workers = Workers::new();
    let old = workers.start(0, config());
    let mut clients = connect_to(&old, 50);
    let last = workers.start(1, config());
    old.retire();
    for worker in [&last, &old] {
        worker.server.engine.drain();
    }
    for client in &mut clients {
        assert!(matches!(client.receive(), Received::Close(Some(1001 | 1012))));
        client.send(Opcode::Close, &[3, 0xe9]);
    }
    eventually("both workers end", || old.has_ended() && last.has_ended());
}

#[test]
fn clients_go_to_the_newest_code() {
    let workers = Workers::new();
    let of = |generation| Config { generation, ..config() };
    let old = workers.start(0, of(1));
    let clients = connect_to(&old, 20);
    let other_old = workers.start(1, of(1));
    let new = workers.start(2, of(2));
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    eventually("the new code has all", || new.log().len() == 20);
    assert!(other_old.log().is_empty());
    drop(clients);
}

/// Requests do not migrate, even on a slow machine.
fn settled() -> Config {
    Config {
        waiting_room: false,
        ..config()
    }
}

#[test]
fn clients_do_not_wait_for_a_worker_that_hangs() {
    let workers = Workers::new();
    let full = workers.start(0, settled());
    let there = connect_to(&full, 20);
    let without_threads = Config {
        max_threads: 0,
        ..settled()
    };
    let shared = (Arc::clone(&workers.queues), 2);
    let _hung = Server::without_monitor(&listen(), without_threads, Some(shared), Arc::clone(&full.app));
    let old = workers.start(1, settled());
    let clients = connect_to(&old, 100);
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    eventually("it has all", || full.server.engine.stats().connections == 120);
    drop((there, clients));
}

/// Holds the dispatcher for each message until the test lets it go on.
struct Gate(Mutex<mpsc::Receiver<()>>);

impl Subscriber for Gate {
    fn id(&self) -> u64 {
        u64::MAX
    }

    fn deliver(&self, _: &Arc<Publication>, _: Delivery) -> bool {
        let _ = self.0.lock().expect("no panic").recv_timeout(PATIENCE);
        false
    }

    fn flush(&self) {}

    fn is_open(&self) -> bool {
        true
    }
}

#[test]
fn a_worker_that_begins_during_a_drain_takes_clients() {
    let workers = Workers::new();
    let publish = |channel: &[u8], message: &[u8]| workers.bus.publish(channel, message, &mut |wait| wait());
    let old = workers.start(0, config());
    let mut client = old.connect();
    let (open, gate) = mpsc::channel();
    let gate = Arc::new(Gate(Mutex::new(gate)));
    old.hub.subscribe(gate, b"gate", Match::Exact, Delivery::Text);
    let before = workers.start(1, config());
    publish(b"gate", b"before the drain");
    let targets = old.hub.targets();
    old.retire();
    publish(b"gate", b"before the start of the next worker");
    publish(b"all", b"not handed out yet");
    let next = workers.start(2, config());
    before.retire();
    eventually("it has no clients", || before.has_ended());
    open.send(()).expect("the dispatcher waits");
    eventually("everything from before the drain is handed out", || {
        old.hub.has_reached(&targets)
    });
    for _ in 0..5 {
        client.send(Opcode::Text, b"still");
        assert_eq!(
            client.receive(),
            text("0: still"),
            "the next worker does not have all messages for it"
        );
    }
    open.send(()).expect("the dispatcher waits");
    assert_eq!(client.receive(), text("not handed out yet"));
    eventually("the next worker has the client", || !next.log().is_empty());
    client.send(Opcode::Text, b"now");
    assert_eq!(client.receive(), text("2: now"));
    eventually("the old worker ends", || old.has_ended());
}

#[test]
fn a_client_that_was_not_resumed_takes_the_state_of_its_app_along() {
    let workers = Workers::new();
    let first = workers.start(0, config());
    let mut clients = connect_to(&first, 3);
    let slow = Config {
        resume_rate: 1,
        ..config()
    };
    let second = workers.start(1, slow);
    first.retire();
    eventually("all have arrived", || second.server.engine.stats().clients == 3);
    eventually("one is resumed", || second.log().len() == 1);
    second.publish("all", "not resumed yet");
    for client in &mut clients {
        assert_eq!(client.receive(), text("not resumed yet"));
        client.send(Opcode::Text, b"early");
    }
    eventually("their messages have arrived", || {
        second.server.engine.stats().messages_received == 3
    });
    let third = workers.start(2, config());
    second.retire();
    eventually("the second worker ends", || second.has_ended());
    eventually("all are resumed", || third.log().len() == 3);
    let mut log = third.log();
    log.sort();
    assert_eq!(log, ["take over from 0", "take over from 0", "take over from 1"]);
    let early: Vec<Received> = clients.iter_mut().map(|client| client.receive()).collect();
    assert!(early.contains(&text("2: early")), "{early:?}");
    for client in &mut clients {
        client.send(Opcode::Text, b"still here");
        assert_eq!(client.receive(), text("2: still here"));
    }
}

#[test]
fn unsent_bytes_arrive_after_the_migration() {
    const LARGE: usize = 12 << 20;
    let roomy = || Config {
        client_pending_bytes: 2 * LARGE,
        message_max_bytes: 2 * LARGE,
        ..config()
    };
    let workers = Workers::new();
    let old = workers.start(0, roomy());
    let mut client = old.connect();
    old.publish("all", &"x".repeat(LARGE));
    old.publish("all", "the last");
    eventually("a part waits", || old.server.engine.stats().delivered >= 2);
    let new = workers.start(1, roomy());
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    new.publish("all", "one more");
    match client.receive() {
        Received::Text(all) => assert!(all.len() == LARGE && all.bytes().all(|byte| byte == b'x')),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.receive(), text("the last"));
    assert_eq!(client.receive(), text("one more"));
}

#[test]
fn a_compressed_message_refers_to_one_in_the_old_process() {
    let with_context = || Config {
        deflate: Some(Context::Kept),
        deflate_min_bytes: 0,
        ..config()
    };
    let workers = Workers::new();
    let old = workers.start(0, with_context());
    let mut client = WebSocket::connect_inflating(old.server.address);
    eventually("the app has the client", || !old.log().is_empty());
    let mut deflater = Deflater::new(15);
    let mut send = |client: &mut WebSocket, message: &str| {
        let (mut compressed, mut bytes) = (Vec::new(), Vec::new());
        deflater.message(message.as_bytes(), true, &mut compressed);
        masked_frame(&mut bytes, Opcode::Text, true, [9, 8, 7, 6], &compressed);
        client.stream.write_all(&bytes).expect("the server reads");
        compressed.len()
    };
    let message = "the quick brown fox jumps over the lazy dog";
    let first = send(&mut client, message);
    assert_eq!(client.receive(), text(&format!("0: {message}")));
    let _new = workers.start(1, with_context());
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    assert!(send(&mut client, message) < first / 2, "it refers to the first one");
    assert_eq!(client.receive(), text(&format!("1: {message}")));
}

/// Clients subscribe to a channel that several threads publish to, while their workers are replaced one after the other. Each
/// client gets each message once, and the answers to its own messages in order.
#[test]
fn each_publication_arrives_once_through_many_restarts() {
    const RESTARTS: usize = 12;
    const PUBLISHERS: usize = 3;
    let workers = Workers::new();
    let many = || Config {
        max_connections: 1000,
        ..settled()
    };
    let mut serving = vec![workers.start(0, many()), workers.start(1, many())];
    let clients: Vec<WebSocket> = (0..30).flat_map(|_| connect_to(&serving[0], 1)).collect();
    let is_over = AtomicBool::new(false);
    let sent: Vec<AtomicUsize> = (0..PUBLISHERS).map(|_| AtomicUsize::new(0)).collect();
    let received = std::thread::scope(|scope| {
        let readers: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| read_all(client)))
            .collect();
        let publishers: Vec<_> = sent
            .iter()
            .enumerate()
            .map(|(number, count)| {
                let (bus, is_over) = (&workers.bus, &is_over);
                scope.spawn(move || {
                    while !is_over.load(SeqCst) {
                        let message = format!("{number} {}", count.fetch_add(1, SeqCst));
                        bus.publish(b"all", message.as_bytes(), &mut |wait| wait());
                        std::thread::sleep(Duration::from_micros(300));
                    }
                })
            })
            .collect();
        for restart in 0..RESTARTS {
            let slot = 2 + restart % 6;
            serving.push(workers.start(slot, many()));
            let old = serving.remove(0);
            old.retire();
            eventually("the old worker ends", || old.has_ended());
            old.hub.stop();
            workers.bus.scoreboard().reset(old.app.slot);
        }
        is_over.store(true, SeqCst);
        publishers
            .into_iter()
            .for_each(|publisher| publisher.join().expect("no panic"));
        workers.bus.publish(b"all", b"end", &mut |wait| wait());
        readers
            .into_iter()
            .map(|reader| reader.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    for messages in received {
        for (number, count) in sent.iter().enumerate() {
            let own = messages
                .iter()
                .filter_map(|message| message.split_once(' '))
                .filter(|(of, _)| *of == number.to_string());
            let numbers: Vec<usize> = own.map(|(_, message)| message.parse().expect("a number")).collect();
            let expected: Vec<usize> = (0..count.load(SeqCst)).collect();
            assert!(
                numbers == expected,
                "{} of {} messages, in order or twice",
                numbers.len(),
                expected.len()
            );
        }
    }
}

/// Everything that a client receives until the end, and its own messages in between.
fn read_all(mut client: WebSocket) -> Vec<String> {
    let (mut all, mut asked, mut answered) = (Vec::new(), 0, 0);
    loop {
        if asked == answered && all.len() >= 50 * asked {
            client.send(Opcode::Text, asked.to_string().as_bytes());
            asked += 1;
        }
        match client.receive() {
            Received::Text(message) if message == "end" => return all,
            Received::Text(message) => match message.split_once(": ") {
                Some((_, answer)) => {
                    assert_eq!(answer, answered.to_string());
                    answered += 1;
                }
                None => all.push(message),
            },
            other => panic!("{other:?} after {} messages", all.len()),
        }
    }
}

fn connect_to(worker: &Worker, count: usize) -> Vec<WebSocket> {
    let before = worker.log().len();
    let clients = (0..count).map(|_| WebSocket::connect(worker.server.address)).collect();
    eventually("the app has the clients", || worker.log().len() == before + count);
    clients
}

#[test]
fn a_close_frame_follows_a_frame_that_the_old_worker_has_begun() {
    const LARGE: usize = 12 << 20;
    let roomy = || Config {
        client_pending_bytes: LARGE,
        message_max_bytes: 100,
        ..config()
    };
    let workers = Workers::new();
    let old = workers.start(0, roomy());
    let mut client = old.connect();
    old.publish("all", &"x".repeat(LARGE));
    eventually("a part waits", || old.server.engine.stats().delivered >= 1);
    let _new = workers.start(1, roomy());
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    client.send(Opcode::Text, &[b'y'; 200]);
    assert!(matches!(client.receive(), Received::Text(all) if all.len() == LARGE));
    assert_eq!(client.receive(), Received::Close(Some(1009)));
}
