//! A retiring worker migrates its connections to the remaining workers: which connections migrate, their age
//! afterwards, and the connections that no worker takes.

#[path = "migration/responses.rs"]
mod responses;
mod support;

use fairlead_engine::{Config, Descriptors, Exchange, Scoreboard, SharedQueues};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};
use support::*;

/// Requests do not migrate, even on a slow machine.
fn settled() -> Config {
    Config {
        waiting_room: false,
        ..config()
    }
}

/// Workers of one server that name themselves in their responses.
struct Workers {
    queues: Arc<SharedQueues>,
    scoreboard: &'static Scoreboard,
}

impl Workers {
    fn new() -> Workers {
        let (queues, scoreboard) = shared_queues();
        Workers { queues, scoreboard }
    }

    fn start(&self, slot: usize, config: Config) -> Server {
        let call = move |exchange: &mut Exchange<'_>| reply(exchange, &format!("worker {slot}"));
        self.run(&listen(), slot, config, call)
    }

    fn run(
        &self,
        socket: &TcpListener,
        slot: usize,
        config: Config,
        call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static,
    ) -> Server {
        Server::on(socket, config, Some((Arc::clone(&self.queues), slot)), Arc::new(call))
    }

    /// A worker that reports when a request for `/hold` runs, and holds it until the test releases it.
    fn start_held(&self, slot: usize) -> (Server, Held) {
        self.run_held(&listen(), slot, settled())
    }

    fn run_held(&self, socket: &TcpListener, slot: usize, config: Config) -> (Server, Held) {
        let (release, hold) = mpsc::channel::<()>();
        let (enter, entered) = mpsc::channel::<()>();
        let gate = Mutex::new((enter, hold));
        let server = self.run(socket, slot, config, move |exchange| {
            if path(exchange) == "/hold" {
                let (enter, hold) = &*gate.lock().expect("no panic");
                enter.send(()).expect("the test waits");
                let _ = hold.recv_timeout(PATIENCE);
            }
            reply(exchange, &format!("worker {slot}"));
        });
        (server, Held { entered, release })
    }
}

/// The request that a worker holds.
struct Held {
    entered: mpsc::Receiver<()>,
    release: mpsc::Sender<()>,
}

impl Held {
    /// A client with a held request.
    fn client(&self, server: &Server) -> Client {
        let mut client = server.connect();
        client.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
        self.entered.recv_timeout(PATIENCE).expect("it runs");
        client
    }
}

/// Connections that have had a response.
fn idle(server: &Server, count: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| server.connect()).collect();
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.get("/").status, 200));
    clients
}

/// Number of descriptors of this process that stand for the socket.
fn descriptors_of(socket: &TcpListener) -> usize {
    let target = |entry: PathBuf| std::fs::read_link(entry).ok();
    let own = target(format!("/proc/self/fd/{}", socket.as_raw_fd()).into());
    let all = std::fs::read_dir("/proc/self/fd").expect("a folder");
    all.flatten().filter(|entry| target(entry.path()) == own).count()
}

fn says_close(response: &Response) -> bool {
    response.head.contains("connection: close\r\n")
}

/// Raises the limit of open descriptors as far as possible.
fn open_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, most).expect("it may be raised to that");
}

#[test]
fn thousands_of_connections_go_to_several_workers_and_none_is_lost() {
    open_limit();
    const COUNT: usize = 1_500;
    let roomy = || Config {
        max_connections: 2 * COUNT,
        descriptors: Descriptors::with(2 * COUNT, 100),
        ..settled()
    };
    let workers = Workers::new();
    let others = [workers.start(1, roomy()), workers.start(2, roomy())];
    let retiring = workers.start(0, roomy());
    let mut clients = idle(&retiring, COUNT);
    let mut fresh: Vec<Client> = (0..100).map(|_| retiring.connect()).collect();
    eventually("all are accepted", || {
        retiring.engine.stats().connections == COUNT as i64 + 100
    });
    retiring.engine.drain_and_migrate();
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    eventually("all are taken over", || workers.scoreboard.migrating() == 0);
    for client in clients.iter_mut().chain(&mut fresh) {
        let response = client.get("/");
        assert_ne!(response.text(), "worker 0");
        assert!(!says_close(&response));
    }
    let taken = others.each_ref().map(|server| server.engine.stats().taken_over);
    assert_eq!(
        (taken.iter().sum::<u64>(), retiring.engine.stats().handed_off),
        (COUNT as u64 + 100, COUNT as u64 + 100)
    );
    assert!(taken.iter().all(|count| *count > COUNT as u64 / 4), "{taken:?}");
}

#[test]
fn a_response_during_the_drain_keeps_the_connection_and_hands_it_over() {
    let workers = Workers::new();
    let _other = workers.start(1, settled());
    let (retiring, hold) = workers.start_held(0);
    let mut held = hold.client(&retiring);
    retiring.engine.drain_and_migrate();
    hold.release.send(()).expect("it waits");
    let response = held.response();
    assert_eq!((response.text(), says_close(&response)), ("worker 0".into(), false));
    assert_eq!(held.get("/").text(), "worker 1");
    assert!(retiring.engine.wait(Some(PATIENCE)));
}

/// Time until the server closes the connection.
fn lifetime(client: &mut Client, began: Instant) -> Duration {
    client.rest();
    began.elapsed()
}

#[test]
fn time_outs_go_on_where_they_were() {
    const TIMEOUT: Duration = Duration::from_millis(1_000);
    let impatient = || Config {
        keep_alive_timeout: TIMEOUT,
        head_timeout: TIMEOUT,
        ..settled()
    };
    for bytes in ["", "GET / HTTP/1.1\r\nHost: te"] {
        let workers = Workers::new();
        let (other, retiring) = (workers.start(1, impatient()), workers.start(0, impatient()));
        let mut clients = [idle(&other, 1).remove(0), idle(&retiring, 1).remove(0)];
        let began = Instant::now();
        clients.iter_mut().for_each(|client| _ = client.send(bytes));
        std::thread::sleep(TIMEOUT * 6 / 10);
        retiring.engine.drain_and_migrate();
        let [stayed, moved] = clients.map(|client| {
            std::thread::spawn(move || {
                let mut client = client;
                lifetime(&mut client, began)
            })
        });
        let [stayed, moved] = [stayed, moved].map(|thread| thread.join().expect("a time"));
        assert_eq!(other.engine.stats().taken_over, 1);
        assert!(
            moved < stayed * 14 / 10,
            "{moved:?} instead of {stayed:?} with {bytes:?}"
        );
    }
}

#[test]
fn the_limit_of_requests_counts_those_that_came_before() {
    let workers = Workers::new();
    let limited = || Config {
        max_keep_alive: 3,
        ..settled()
    };
    let (_other, retiring) = (workers.start(1, limited()), workers.start(0, limited()));
    let mut client = idle(&retiring, 2).remove(0);
    retiring.engine.drain_and_migrate();
    assert!(retiring.engine.wait(Some(PATIENCE)));
    assert!(!says_close(&client.get("/")));
    assert!(says_close(&client.get("/")));
}

#[test]
fn connections_wait_where_they_are_for_a_place_elsewhere() {
    let workers = Workers::new();
    let small = Config {
        max_connections: 1,
        ..settled()
    };
    let full = workers.start(1, small.clone());
    let guest = idle(&full, 1);
    let retiring = workers.start(0, small);
    let mut client = idle(&retiring, 1).remove(0);
    retiring.engine.drain_and_migrate();
    let response = client.get("/");
    assert!(says_close(&response), "no worker has a slot for it: {}", response.head);

    let retiring = workers.start(2, settled());
    let mut client = idle(&retiring, 1).remove(0);
    retiring.engine.drain_and_migrate();
    eventually("it drains", || workers.scoreboard.slot(2).serving.load(SeqCst) == 0);
    assert_eq!(full.engine.stats().taken_over, 0);
    drop(guest);
    eventually("it is taken over", || full.engine.stats().taken_over == 1);
    assert_eq!(client.get("/").text(), "worker 1");
}

#[test]
fn a_full_worker_that_drains_leaves_the_connections_that_wait() {
    let workers = Workers::new();
    let small = Config {
        max_connections: 1,
        ..settled()
    };
    let socket = listen();
    let (retiring, held) = workers.run_held(&socket, 0, small);
    let mut guest = held.client(&retiring);
    let roomy = workers.start(1, settled());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // So the full worker sees that the other one works, and refuses nobody.
        scope.spawn(|| {
            let began = Instant::now();
            while !is_over.load(SeqCst) && began.elapsed() < PATIENCE {
                assert_eq!(roomy.connect().get("/").status, 200);
            }
        });
        let _waiting = retiring.connect();
        retiring.engine.drain_and_migrate();
        eventually("it leaves the listener", || descriptors_of(&socket) == 1);
        socket.set_nonblocking(true).expect("a socket");
        eventually("the connection still waits", || socket.accept().is_ok());
        is_over.store(true, SeqCst);
    });
    held.release.send(()).expect("the request waits");
    assert_eq!(guest.response().status, 200);
}

#[test]
fn a_worker_that_ends_with_all_others_hands_nothing_over() {
    let workers = Workers::new();
    let (other, ending) = (workers.start(1, settled()), workers.start(0, settled()));
    let mut client = idle(&ending, 1).remove(0);
    ending.engine.drain();
    assert!(says_close(&client.get("/")));
    assert!(ending.engine.wait(Some(PATIENCE)));
    assert_eq!(
        (ending.engine.stats().handed_off, other.engine.stats().taken_over),
        (0, 0)
    );
}

/// As in a restart from workers to none: the new process has no waiting room, and uses none.
#[test]
fn a_process_that_serves_alone_gets_no_connections_of_workers() {
    let workers = Workers::new();
    let _alone = Server::alone((workers.scoreboard, 1), settled(), |exchange| reply(exchange, "alone"));
    let retiring = workers.start(0, settled());
    let mut client = idle(&retiring, 1).remove(0);
    retiring.engine.drain_and_migrate();
    let response = client.get("/");
    assert!(says_close(&response), "{}", response.head);
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    assert_eq!(workers.scoreboard.migrating(), 0);
}

#[test]
fn what_is_under_way_is_taken_back_when_nobody_is_left() {
    let workers = Workers::new();
    let (retiring, hold) = workers.start_held(0);
    let mut clients = idle(&retiring, 5);
    let mut held = hold.client(&retiring);
    // A serving worker that has hung.
    workers.scoreboard.slot(1).serving.store(1, SeqCst);
    retiring.engine.drain_and_migrate();
    eventually("they are under way", || workers.scoreboard.migrating() == 5);
    clients
        .iter_mut()
        .for_each(|client| _ = client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
    workers.scoreboard.slot(1).reset();
    hold.release.send(()).expect("it waits");
    for client in clients.iter_mut().chain([&mut held]) {
        assert_eq!(client.response().text(), "worker 0");
    }
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    assert_eq!(workers.scoreboard.migrating(), 0);
}

#[test]
fn a_client_that_leaves_meanwhile_is_forgotten() {
    let workers = Workers::new();
    let (other, retiring) = (workers.start(1, settled()), workers.start(0, settled()));
    let clients: Vec<TcpStream> = idle(&retiring, 20).into_iter().map(|client| client.stream).collect();
    retiring.engine.drain_and_migrate();
    drop(clients);
    assert!(retiring.engine.wait(Some(PATIENCE)));
    eventually("none is left", || {
        workers.scoreboard.migrating() == 0 && other.engine.stats().connections == 0
    });
}
