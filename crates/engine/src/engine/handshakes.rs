//! TLS handshakes: one native thread of each worker computes them, one step of each connection in turn, so that neither
//! the app nor those whose handshakes are over wait for it.
//!
//! Networks take turns, so that one that begins thousands of handshakes delays its own. Of `max_handshakes` and one more,
//! one is given up: see [`Seats`].

use super::Engine;
use crate::clock::Millis;
use crate::config::fair_by::network;
use crate::connection::seats::Seats;
use crate::connection::Connection;
use crate::observe::excess::About;
use crate::transport::listener::refuse;
use crate::transport::HandshakeError;
use crate::work_queue::{Line, Turn, WorkQueue, LOOK};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// The response to HTTP without TLS.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 71\r\n\
    connection: close\r\n\r\nThis port speaks HTTPS, and the request came without TLS. Use https://\n";

/// Why a handshake is given up that has to give way.
const TOO_MANY: &str = "there are too many at a time";

/// The connections that wait for a step.
#[derive(Default)]
pub(super) struct Handshakes {
    queue: WorkQueue<Box<Connection>, Rounds>,
    seats: Arc<Seats>,
}

/// One connection of each network in turn.
#[derive(Default)]
struct Rounds {
    networks: HashMap<Option<u64>, VecDeque<Box<Connection>>>,
    /// Networks with connections that wait.
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
    /// Starts the thread, which does not keep the engine alive.
    pub(super) fn start(engine: &Arc<Engine>) -> std::io::Result<()> {
        let handshakes = Arc::clone(&engine.handshakes);
        let engine = Arc::downgrade(engine);
        std::thread::Builder::new()
            .name("fairlead tls".into())
            .spawn(move || handshakes.run(&engine))?;
        Ok(())
    }

    /// Ends the thread; returns the connections that are left.
    pub(super) fn stop(&self) -> VecDeque<Box<Connection>> {
        self.queue.stop()
    }

    fn run(&self, engine: &Weak<Engine>) {
        loop {
            let next = self.queue.next(LOOK);
            let Some(engine) = engine.upgrade() else { return };
            match next {
                Turn::Of(connection) => engine.shake_hands(connection),
                Turn::Idle => {}
                Turn::Over => return,
            }
        }
    }
}

impl Engine {
    /// A new connection begins with a handshake, if it has TLS.
    pub(super) fn await_handshake(&self, connection: &mut Connection, now: Millis) {
        if !connection.stream.transport().awaits_handshake() {
            return;
        }
        let seats = &self.handshakes.seats;
        if let Some(key) = seats.displace(self.worker.config.max_handshakes, now) {
            // If the thread for handshakes has it, that finds out.
            let parked = self
                .connections
                .parked()
                .take_if(key, |one| one.in_handshake_since().is_some());
            if let Some(displaced) = parked {
                self.give_handshake_up(displaced, TOO_MANY);
            }
        }
        connection.await_handshake(seats, now);
    }

    /// Leaves a connection to the thread for handshakes.
    pub(super) fn hand_to_handshakes(&self, connection: Box<Connection>) {
        if let Err(connection) = self.handshakes.queue.push(connection) {
            self.close(connection);
        }
    }

    fn shake_hands(&self, mut connection: Box<Connection>) {
        self.worker.guard("a handshake", || {
            self.worker.fault("shake hands");
            match connection.shake_hands(Millis::now()) {
                Ok(next) => {
                    if connection.in_handshake_since().is_none() {
                        self.count_handshake(&connection);
                    }
                    self.settle_elsewhere(connection, next);
                }
                Err(error) => self.handshake_has_failed(connection, &error),
            }
        });
    }

    fn count_handshake(&self, connection: &Connection) {
        self.counters().handshakes.fetch_add(1, Relaxed);
        if connection.stream.session().is_some_and(|session| session.is_resumed) {
            self.counters().resumed_handshakes.fetch_add(1, Relaxed);
        }
    }

    fn handshake_has_failed(&self, mut connection: Box<Connection>, error: &HandshakeError) {
        let why = match error {
            HandshakeError::Gone | HandshakeError::Socket(_) => return self.give_handshake_up(connection, ""),
            HandshakeError::Displaced => return self.give_handshake_up(connection, TOO_MANY),
            HandshakeError::Costly => return self.give_handshake_up(connection, "it took too much processor time"),
            HandshakeError::PlainHttp => "it speaks plain HTTP: refused 400",
            HandshakeError::NoCertificate => "there is no certificate yet",
            HandshakeError::NoTls => "it does not speak TLS",
            HandshakeError::Tls(why) => why,
        };
        if let HandshakeError::PlainHttp = error {
            refuse(connection.stream.transport(), PLAIN_HTTP);
        }
        self.note_failed_handshake(&connection, why);
        // The peer may still be sending, and has to hear what was wrong.
        let next = connection.linger(Millis::now());
        self.settle_elsewhere(connection, next);
    }

    /// Closes a connection in its handshake. `why`: for the log, if it is of interest.
    pub(super) fn give_handshake_up(&self, connection: Box<Connection>, why: &str) {
        self.note_failed_handshake(&connection, why);
        self.close(connection);
    }

    fn note_failed_handshake(&self, connection: &Connection, why: &str) {
        self.counters().failed_handshakes.fetch_add(1, Relaxed);
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
