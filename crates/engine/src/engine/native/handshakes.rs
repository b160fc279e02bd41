//! TLS handshakes: one native thread of each worker computes them, one step of each connection in turn, so that neither
//! the app nor other connections wait for it.
//!
//! Networks take turns, so a network that begins thousands of handshakes delays only its own. When `max_handshakes` are
//! in progress and one more begins, one handshake is dropped: see [`Seats`].

use crate::clock::Millis;
use crate::config::fair_by::network;
use crate::connection::connections::Connections;
use crate::connection::seats::Seats;
use crate::connection::{Connection, Next};
use crate::engine::sink::{Move, Sink};
use crate::observe::excess::About;
use crate::transport::listener::refuse;
use crate::transport::HandshakeError;
use crate::work_queue::{Item, Line, WorkQueue, LOOK};
use crate::worker::Worker;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// Response to HTTP without TLS.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 71\r\n\
    connection: close\r\n\r\nThis port speaks HTTPS, and the request came without TLS. Use https://\n";

/// Reason for a handshake that has to give way.
const TOO_MANY: &str = "there are too many at a time";

/// See the head of this file.
pub(in crate::engine) struct Handshakes {
    worker: Arc<Worker>,
    connections: Arc<Connections>,
    /// The connections that wait for a step.
    queue: Arc<Queue>,
    seats: Arc<Seats>,
    sink: Weak<dyn Sink>,
}

type Queue = WorkQueue<Box<Connection>, Rounds>;

/// Takes one connection of each network in turn.
#[derive(Default)]
struct Rounds {
    networks: HashMap<Option<u64>, VecDeque<Box<Connection>>>,
    /// Networks with waiting connections.
    turns: VecDeque<Option<u64>>,
}

impl Line<Box<Connection>> for Rounds {
    fn push(&mut self, connection: Box<Connection>) {
        let network = connection.stream.peer().map(|peer| network(peer.ip()));
        let waiting = self.networks.entry(network).or_default();
        if waiting.is_empty() {
            self.turns.push_back(network);
        }
        waiting.push_back(connection);
    }

    fn pop(&mut self) -> Option<Box<Connection>> {
        let network = self.turns.pop_front()?;
        let waiting = self.networks.get_mut(&network)?;
        let next = waiting.pop_front();
        match waiting.is_empty() {
            true => _ = self.networks.remove(&network),
            false => self.turns.push_back(network),
        }
        next
    }

    fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

impl Handshakes {
    pub(in crate::engine) fn new(
        worker: &Arc<Worker>,
        connections: &Arc<Connections>,
        sink: Weak<dyn Sink>,
    ) -> Arc<Handshakes> {
        Arc::new(Handshakes {
            worker: Arc::clone(worker),
            connections: Arc::clone(connections),
            queue: Arc::default(),
            seats: Arc::default(),
            sink,
        })
    }

    /// Starts the thread, which does not keep the engine alive.
    pub(in crate::engine) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let (queue, me) = (Arc::clone(&self.queue), Arc::downgrade(self));
        std::thread::Builder::new()
            .name("fairlead tls".into())
            .spawn(move || run(&queue, &me))?;
        Ok(())
    }

    /// Ends the thread; returns the connections that are left.
    pub(in crate::engine) fn stop(&self) -> VecDeque<Box<Connection>> {
        self.queue.stop()
    }

    /// Begins the handshake of a new connection, if it uses TLS.
    pub(in crate::engine) fn await_handshake(&self, connection: &mut Connection, now: Millis) {
        if !connection.stream.transport().awaits_handshake() {
            return;
        }
        if let Some(key) = self.seats.displace(self.worker.config.max_handshakes, now) {
            // If the thread for handshakes has the connection, that thread ends it.
            let parked = self
                .connections
                .parked()
                .take_if(key, |one| one.in_handshake_since().is_some());
            if let Some(displaced) = parked {
                self.give_up(displaced, TOO_MANY);
            }
        }
        connection.await_handshake(&self.seats, now);
    }

    /// Queues a connection for the thread. If the thread has ended, the connection ends.
    pub(in crate::engine) fn push(&self, connection: Box<Connection>) {
        drop(self.queue.push(connection));
    }

    /// Ends a connection during its handshake. `why`: reason for the log; empty if there is nothing to log.
    pub(in crate::engine) fn give_up(&self, connection: Box<Connection>, why: &str) {
        self.note_failure(&connection, why);
    }

    fn take_step(&self, connection: Box<Connection>, sink: &dyn Sink) {
        self.worker.guard("a handshake", || {
            self.worker.fault("shake hands");
            let (connection, next) = self.shake_hands(connection);
            sink.put(Move::Settle(connection, next));
        });
    }

    fn shake_hands(&self, mut connection: Box<Connection>) -> (Box<Connection>, Next) {
        let next = match connection.shake_hands(Millis::now()) {
            Ok(next) => {
                if connection.in_handshake_since().is_none() {
                    self.count(&connection);
                }
                next
            }
            Err(error) => self.has_failed(&mut connection, &error),
        };
        (connection, next)
    }

    fn count(&self, connection: &Connection) {
        let counters = self.worker.counters();
        counters.handshakes.fetch_add(1, Relaxed);
        if connection.stream.session().is_some_and(|session| session.is_resumed) {
            counters.resumed_handshakes.fetch_add(1, Relaxed);
        }
    }

    fn has_failed(&self, connection: &mut Connection, error: &HandshakeError) -> Next {
        let (why, is_over) = match error {
            HandshakeError::Gone | HandshakeError::Socket(_) => ("", true),
            HandshakeError::Displaced => (TOO_MANY, true),
            HandshakeError::Costly => ("it took too much processor time", true),
            HandshakeError::PlainHttp => ("it speaks plain HTTP: refused 400", false),
            HandshakeError::NoCertificate => ("there is no certificate yet", false),
            HandshakeError::NoTls => ("it does not speak TLS", false),
            HandshakeError::Tls(why) => (&**why, false),
        };
        if let HandshakeError::PlainHttp = error {
            refuse(connection.stream.transport(), PLAIN_HTTP);
        }
        self.note_failure(connection, why);
        match is_over {
            true => Next::Close,
            // The peer may still be sending, and has to receive the alert.
            false => connection.linger(Millis::now()),
        }
    }

    fn note_failure(&self, connection: &Connection, why: &str) {
        self.worker.counters().failed_handshakes.fetch_add(1, Relaxed);
        if !why.is_empty() {
            let peers = &connection.stream.peers;
            let log = &self.worker.log;
            log.about_peer(
                About::Handshake,
                peers.client(),
                format_args!("no TLS handshake with {peers} ({why})"),
            );
        }
    }
}

fn run(queue: &Queue, handshakes: &Weak<Handshakes>) {
    loop {
        let next = queue.next(LOOK);
        let Some(handshakes) = handshakes.upgrade() else { return };
        let Some(sink) = handshakes.sink.upgrade() else { return };
        match next {
            Item::Next(connection) => handshakes.take_step(connection, &*sink),
            Item::Idle => {}
            Item::Stopped => return,
        }
    }
}
