//! Requests that wait in the waiting room, and are refused or dropped instead of run.

mod support;

use fairlead_engine::{Config, Exchange, FairBy, Scoreboard, SharedQueues};
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;
use support::*;

const MS: Duration = Duration::from_millis(1);

/// Two workers with a waiting room. Each has one thread, which is held.
struct HeldWorkers<S> {
    hold: Hold,
    workers: [Server; 2],
    firsts: Vec<Client<S>>,
    scoreboard: &'static Scoreboard,
}

/// Threads are held while it is true. Dropped before the servers: their threads wait for it.
struct Hold(Arc<AtomicBool>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

type Serve = fn(
    &TcpListener,
    Config,
    Option<(Arc<SharedQueues>, usize)>,
    Arc<dyn Fn(&mut Exchange<'_>) + Send + Sync>,
) -> Server;

impl<S: Read + Write> HeldWorkers<S> {
    fn start(config: &Config, serve: Serve, connect: fn(&Server) -> Client<S>) -> HeldWorkers<S> {
        let (queues, scoreboard) = shared_queues();
        let is_held = Arc::new(AtomicBool::new(true));
        let worker = |slot| {
            let is_held = Arc::clone(&is_held);
            let call = move |exchange: &mut Exchange<'_>| {
                while path(exchange) == "/first" && is_held.load(SeqCst) {
                    std::thread::sleep(MS);
                }
                reply(exchange, "served");
            };
            let shared = Some((Arc::clone(&queues), slot));
            serve(&listen(), config.clone(), shared, Arc::new(call))
        };
        let workers = [worker(0), worker(1)];
        let mut held = HeldWorkers {
            hold: Hold(is_held),
            firsts: workers.iter().map(connect).collect(),
            workers,
            scoreboard,
        };
        held.hold();
        held
    }

    fn hold(&mut self) {
        self.hold.0.store(true, SeqCst);
        for (worker, first) in self.workers.iter().zip(&mut self.firsts) {
            ask(first, "/first");
            eventually("it is busy", || worker.engine.stats().busy_threads == 1);
        }
    }

    fn await_waiting(&self, count: u64) {
        eventually("the requests are in the room", || self.scoreboard.waiting() == count);
    }

    fn refused(&self) -> u64 {
        self.workers
            .iter()
            .map(|worker| worker.engine.stats().refused_requests)
            .sum()
    }

    /// Ends the hold.
    fn release(&mut self) {
        self.hold.0.store(false, SeqCst);
        for first in &mut self.firsts {
            assert_eq!(first.response().status, 200);
        }
        eventually("the room is empty", || self.scoreboard.waiting() == 0);
    }
}

/// The client has sent a request.
fn asking<S: Read + Write>(mut client: Client<S>, path: &str) -> Client<S> {
    ask(&mut client, path);
    client
}

/// The client has sent a request of this flow.
fn asking_as(mut client: Client, name: &str) -> Client {
    client.send(&format!("GET / HTTP/1.1\r\nHost: test\r\nX-Client: {name}\r\n\r\n"));
    client
}

fn ask<S: Read + Write>(client: &mut Client<S>, path: &str) {
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
}

fn reset(client: &TcpStream) {
    set_socket_linger(client, Some(Duration::ZERO)).expect("a socket");
}

#[test]
fn a_request_in_the_waiting_room_is_refused_while_every_worker_is_busy() {
    let mut held = HeldWorkers::start(
        &Config {
            queue_timeout: 300 * MS,
            ..config()
        },
        Server::on,
        Server::connect,
    );
    let mut client = asking(held.workers[0].connect(), "/late");
    held.await_waiting(1);
    assert_eq!(client.response().status, 503);
    assert_eq!(held.scoreboard.waiting(), 0);
    held.release();
}

fn limit(queue_limit: usize) -> Config {
    Config {
        queue_limit,
        ..config()
    }
}

/// The clients of other workers leave, too.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "nothing reports the end of a socket in the room")]
fn requests_in_the_waiting_room_do_not_count_for_the_limit_once_their_clients_have_reset_their_connections() {
    let mut held = HeldWorkers::start(&limit(4), Server::on, Server::connect);
    let gone: Vec<Client> = (0..4)
        .map(|number| asking(held.workers[number % 2].connect(), "/gone"))
        .collect();
    held.await_waiting(4);
    assert_eq!(asking(held.workers[0].connect(), "/full").response().status, 503);
    gone.iter().for_each(|client| reset(&client.stream));
    drop(gone);
    let mut there: Vec<Client> = Vec::new();
    for count in 1..=4 {
        there.push(asking(held.workers[0].connect(), "/there"));
        eventually("it waits", || {
            held.scoreboard.waiting() == 4 + count || held.refused() > 1
        });
    }
    assert_eq!(held.refused(), 1);
    assert_eq!(asking(held.workers[1].connect(), "/full").response().status, 503);
    held.release();
    for client in &mut there {
        assert_eq!(client.response().text(), "served");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "nothing reports the end of a socket in the room")]
fn relayed_requests_in_the_waiting_room_do_not_count_for_the_limit_once_their_clients_have_left() {
    let mut held = HeldWorkers::start(&limit(3), Server::with_tls, tls::connect);
    let gone: Vec<_> = (0..3)
        .map(|_| asking(tls::connect(&held.workers[0]), "/gone"))
        .collect();
    held.await_waiting(3);
    gone.iter().for_each(|client| reset(&client.stream.sock));
    drop(gone);
    eventually("the worker has closed their connections", || {
        held.workers[0].engine.stats().connections == 1
    });
    let mut there = asking(tls::connect(&held.workers[0]), "/there");
    eventually("it waits", || held.scoreboard.waiting() == 4 || held.refused() > 0);
    assert_eq!(held.refused(), 0);
    held.release();
    assert_eq!(there.response().text(), "served");
}

/// Their connections stay in their workers, and count there.
#[test]
fn relayed_requests_in_the_waiting_room_take_no_places_of_connections() {
    let roomy = Config {
        max_connections: 6,
        ..config()
    };
    let mut held = HeldWorkers::start(&roomy, Server::with_tls, tls::connect);
    let mut clients: Vec<_> = (0..7)
        .map(|number| {
            let client = asking(tls::connect(&held.workers[number % 2]), "/relayed");
            held.await_waiting(number as u64 + 1);
            client
        })
        .collect();
    held.release();
    for client in &mut clients {
        assert_eq!(client.response().text(), "served");
    }
}

/// Nobody can take them out of the room when another client comes.
#[test]
fn with_turns_by_client_the_requests_in_the_waiting_room_do_not_count_for_the_limit() {
    let by_client = Config {
        fair_by: FairBy::Field((*b"x-client").into()),
        ..limit(4)
    };
    let mut held = HeldWorkers::start(&by_client, Server::on, Server::connect);
    let mut heavy: Vec<Client> = Vec::new();
    for count in 1..=4 {
        heavy.push(asking_as(held.workers[0].connect(), "heavy"));
        held.await_waiting(count);
    }
    let queued = || held.workers[0].engine.stats().queued;
    let mut light = vec![asking_as(held.workers[0].connect(), "light")];
    eventually("it waits", || queued() == 1 || held.refused() > 0);
    assert_eq!(held.refused(), 0);
    for count in 2..=4 {
        heavy.push(asking_as(held.workers[0].connect(), "heavy"));
        eventually("it waits, too", || queued() == count);
    }
    assert_eq!(asking_as(held.workers[0].connect(), "heavy").response().status, 503);
    light.push(asking_as(held.workers[0].connect(), "other"));
    eventually("the client with most requests loses one", || held.refused() == 2);
    assert_eq!((queued(), held.scoreboard.waiting()), (4, 4));
    held.release();
    for client in &mut light {
        assert_eq!(client.response().text(), "served");
    }
    let statuses = heavy.iter_mut().map(|client| client.response().status);
    assert_eq!(statuses.filter(|status| *status == 200).count(), 6);
}

/// A worker hears of the ends of clients after another worker has served their requests.
#[test]
fn clients_that_leave_after_their_response_make_no_place_in_the_waiting_room() {
    let mut held = HeldWorkers::start(&limit(3), Server::on, Server::connect);
    let mut served: Vec<Client> = (0..3).map(|_| asking(held.workers[0].connect(), "/served")).collect();
    held.await_waiting(3);
    held.release();
    for client in &mut served {
        assert_eq!(client.response().text(), "served");
    }
    held.hold();
    let mut there: Vec<Client> = (0..3).map(|_| asking(held.workers[0].connect(), "/there")).collect();
    held.await_waiting(3);
    served.iter().for_each(|client| reset(&client.stream));
    drop(served);
    assert_eq!(asking(held.workers[0].connect(), "/full").response().status, 503);
    held.release();
    for client in &mut there {
        assert_eq!(client.response().text(), "served");
    }
}
