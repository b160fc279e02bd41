//! WebSockets that migrate to another worker, because theirs ends: the peer notices nothing, and gets each message once.

mod support;

use fairlead_engine::pubsub::{Bus, Delivery, Hub, Match, Scope};
use fairlead_engine::{App, Client as Peer, Config, Event, Exchange, Handover, Scoreboard, SharedQueues};
use fairlead_wire::websocket::Opcode;
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
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
        if exchange.start_upgrade() {
            let _ = exchange.field(b"sec-websocket-protocol", b"chat");
            exchange.end_upgrade();
        } else {
            exchange.respond_plainly(200);
        }
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
                assert_eq!(client.taken_over(), [Box::from(&b"p*"[..])]);
                format!("take over {}", String::from_utf8_lossy(&state))
            }
            Event::Departed => "departed".into(),
            Event::Shutdown => "shutdown".into(),
            Event::Close => "close".into(),
            Event::Drained | Event::Deferred(_) | Event::Replaced => return,
        };
        self.log.lock().expect("no panic").push(line);
    }
}

/// A server with several workers in this process.
struct Workers {
    queues: Arc<SharedQueues>,
    bus: Arc<Bus>,
    socket: TcpListener,
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
            socket: listen(),
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
        let server = Server::publishing(&self.socket, config, shared, Arc::clone(&app), Arc::clone(&hub));
        Worker { server, hub, app }
    }
}

impl Worker {
    fn connect(&self) -> WebSocket {
        let client = WebSocket::connect(self.server.address);
        eventually("the app has the client", || !self.log().is_empty());
        client
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
    let new = workers.start(1, config());
    old.retire();
    eventually("the old worker ends", || old.has_ended());
    client.stream.write_all(rest).expect("the server reads");
    assert_eq!(client.receive(), text("1: two"));
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
