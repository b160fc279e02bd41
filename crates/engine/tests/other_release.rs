//! Connections and clients that go on in workers of another release. It has a scoreboard and queues of its own, and shares the
//! history.

mod support;

use fairlead_engine::pubsub::{Bus, Delivery, History, Hub, Match, Scope};
use fairlead_engine::{
    App, Client as Peer, Config, Event, Exchange, Handover, Heirs, Retirement, Scoreboard, SharedQueues,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::web_socket::{text, Received, WebSocket};
use support::*;

/// Says its name, and subscribes each client to `all`.
struct Chat {
    name: &'static str,
    log: Mutex<Vec<&'static str>>,
}

impl App for Chat {
    fn call(&self, exchange: &mut Exchange<'_>) {
        support::web_socket::accept(exchange);
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        let line = match event {
            Event::Open => {
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                "open"
            }
            Event::Message { .. } => {
                client.write(self.name.as_bytes(), true);
                return;
            }
            Event::HandOver => {
                client.hand_over(Handover::State(b"state".to_vec()));
                "hand over"
            }
            Event::TakeOver(state) => {
                assert_eq!(state, b"state");
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                client.taken_over();
                "take over"
            }
            _ => return,
        };
        self.log.lock().expect("no panic").push(line);
    }
}

/// The workers of one release.
struct Release {
    name: &'static str,
    queues: Arc<SharedQueues>,
    bus: Arc<Bus>,
}

struct Worker {
    server: Server,
    hub: Arc<Hub>,
    app: Arc<Chat>,
}

impl Release {
    fn new(name: &'static str, history: Option<&Arc<History>>) -> Release {
        let scoreboard: &'static Scoreboard = Box::leak(Box::default());
        let bus = Bus::new(scoreboard, 4).expect("mailboxes");
        Release {
            name,
            queues: Arc::new(SharedQueues::new(scoreboard).expect("queues")),
            bus: Arc::new(bus.with_history(history.cloned())),
        }
    }

    fn start(&self, slot: usize, generation: u64) -> Worker {
        let hub = Hub::new(Some((Arc::clone(&self.bus), slot))).expect("a hub");
        let app = Arc::new(Chat {
            name: self.name,
            log: Mutex::default(),
        });
        // A request stays with the worker that has accepted it.
        let config = Config {
            generation,
            waiting_room: false,
            ..config()
        };
        let shared = (Arc::clone(&self.queues), slot);
        let server = Server::publishing(&listen(), config, shared, Arc::clone(&app), Arc::clone(&hub));
        Worker { server, hub, app }
    }

    /// The queues of this release, for a worker of the previous one.
    fn heirs(&self) -> Heirs {
        self.queues.scoreboard().set_predecessors(true);
        let copy = |outlet: std::os::fd::BorrowedFd<'_>| outlet.try_clone_to_owned().expect("a descriptor");
        Heirs::new(self.queues.outlets().map(copy))
    }
}

impl Worker {
    fn connect(&self, count: usize) -> Vec<WebSocket> {
        let before = self.log().len();
        let clients = (0..count).map(|_| WebSocket::connect(self.server.address)).collect();
        eventually("the app has the clients", || self.log().len() == before + count);
        clients
    }

    fn log(&self) -> Vec<&'static str> {
        self.app.log.lock().expect("no panic").clone()
    }

    fn publish(&self, message: &str) {
        let posted = self
            .hub
            .publish(b"all", message.as_bytes(), Scope::Cluster, &mut |wait| wait());
        assert_eq!(posted.undelivered, 0);
    }

    fn retire_to(&self, release: &Release) {
        self.server.engine.set_heirs(release.heirs());
        self.server.engine.retire(Retirement::default());
    }

    fn has_ended(&self) -> bool {
        self.server.engine.wait(Some(Duration::ZERO))
    }
}

fn history() -> Arc<History> {
    let words = (0..128 * 1024).map(|_| Default::default()).collect::<Vec<_>>().leak();
    Arc::new(History::create(words, None).expect("memory"))
}

#[test]
fn clients_of_all_workers_go_on_in_another_release_and_get_each_publication_once() {
    let history = history();
    let (old, new) = (Release::new("old", Some(&history)), Release::new("new", Some(&history)));
    let retiring = [old.start(0, 1), old.start(1, 1)];
    let mut clients: Vec<WebSocket> = retiring.iter().flat_map(|worker| worker.connect(15)).collect();
    retiring[1].publish("by mail");
    history.set_joint(true);
    let heir = new.start(0, 2);
    let is_over = AtomicBool::new(false);
    let count = std::thread::scope(|threads| {
        let publisher = threads.spawn(|| {
            let mut count = 0;
            while !is_over.load(SeqCst) {
                [&heir, &retiring[0], &retiring[1]][count % 3].publish(&count.to_string());
                count += 1;
                std::thread::sleep(Duration::from_micros(300));
            }
            count
        });
        for worker in &retiring {
            worker.retire_to(&new);
            eventually("the old worker ends", || worker.has_ended());
        }
        is_over.store(true, SeqCst);
        publisher.join().expect("no panic")
    });
    retiring.iter().for_each(|worker| worker.hub.stop());
    history.set_joint(false);
    heir.publish("the end");
    eventually("the app has all", || heir.log().len() == 30);
    for client in &mut clients {
        assert_eq!(client.receive(), text("by mail"));
        for number in 0..count {
            assert_eq!(client.receive(), text(&number.to_string()));
        }
        assert_eq!(client.receive(), text("the end"));
        client.send(fairlead_wire::websocket::Opcode::Text, b"who");
        assert_eq!(client.receive(), text("new"));
    }
}

#[test]
fn a_client_with_subscriptions_closes_if_the_other_release_shares_no_history() {
    let (old, new) = (Release::new("old", None), Release::new("new", None));
    let retiring = old.start(0, 1);
    let mut client = retiring.connect(1).remove(0);
    let heir = new.start(0, 2);
    retiring.retire_to(&new);
    assert_eq!(client.receive(), Received::Close(Some(1012)));
    assert!(heir.log().is_empty());
}

#[test]
fn idle_connections_go_on_in_another_release() {
    let (old, new) = (Release::new("old", None), Release::new("new", None));
    let retiring = old.start(0, 1);
    let mut clients: Vec<Client> = (0..200).map(|_| Client::connect(retiring.server.address)).collect();
    let ask = |client: &mut Client| assert_eq!(client.get("/").status, 200);
    clients.iter_mut().for_each(ask);
    let heir = new.start(0, 2);
    retiring.retire_to(&new);
    eventually("the old worker ends", || retiring.has_ended());
    eventually("the new one has all", || heir.server.engine.stats().connections == 200);
    clients.iter_mut().for_each(ask);
}

#[test]
fn clients_with_a_state_of_newer_code_do_not_go_back_to_older_code() {
    let release = Release::new("one", None);
    let newer = release.start(0, 2);
    let mut client = newer.connect(1).remove(0);
    let older = release.start(1, 1);
    newer.server.engine.drain_and_migrate();
    assert_eq!(client.receive(), Received::Close(Some(1012)));
    assert!(older.log().is_empty());
}
