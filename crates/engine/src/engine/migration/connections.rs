//! Migration in a drain: a worker that drains migrates its connections to the workers that continue, instead of closing
//! them. Both sides.
//!
//! ```text
//!   worker that drains                       queue in the kernel          worker that continues
//!     idle, or part of a head ──────────────▶ bytes, age, socket ───────▶ parked, as before
//!     request here, or runs ──response──▶ idle      (at most UNDER_WAY)
//! ```
//! A connection migrates between two requests; a request that has arrived gets its response first. The bytes of an
//! incomplete head, or of the next request, migrate with the connection. No thread of the app is needed: the poller
//! sends and takes over connections. A connection for which no worker has a slot stays parked, and is served, until no
//! connection has migrated for a while; then it is closed, as in a worker without another worker to migrate to.

use super::outgoing::exported;
use super::{Admission, IncomingConnections};
use crate::clock::Millis;
use crate::cluster::queues::{IncomingMigration, OutgoingMigration, Received, Sent};
use crate::connection::connections::Connections;
use crate::connection::Connection;
use crate::engine::ends;
use crate::engine::native::Handshakes;
use crate::engine::sink::{Move, Sink};
use crate::transport::listener::Endpoint;
use crate::transport::poller::{Dispatching, Interest};
use crate::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Time for which an idle connection stays open after draining has begun, if no other worker can take it.
const DRAIN_IDLE: Duration = Duration::from_millis(250);

/// Time for which an idle connection that waits to migrate stays open after the last migration.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most connections that are under way to another worker, so that none of them waits long.
const UNDER_WAY: u64 = 128;

/// Most parked connections that migrate in one turn of the reactor, before other events are handled.
const TURN: usize = 64;

/// Pause before the next attempt, while connections migrate.
const PAUSE: Duration = Duration::from_millis(1);

/// The same while no worker has a free slot.
const LONG_PAUSE: Duration = Duration::from_millis(20);

/// See the head of this file.
pub(in crate::engine) struct ConnectionMigration {
    worker: Arc<Worker>,
    connections: Arc<Connections>,
    admission: Arc<Admission>,
    arrivals: Arc<IncomingConnections>,
    handshakes: Arc<Handshakes>,
    /// True if parked connections may still have to migrate.
    is_due: AtomicBool,
}

impl ConnectionMigration {
    pub(in crate::engine) fn new(
        worker: &Arc<Worker>,
        connections: &Arc<Connections>,
        admission: &Arc<Admission>,
        arrivals: &Arc<IncomingConnections>,
        handshakes: &Arc<Handshakes>,
    ) -> ConnectionMigration {
        ConnectionMigration {
            worker: Arc::clone(worker),
            connections: Arc::clone(connections),
            admission: Arc::clone(admission),
            arrivals: Arc::clone(arrivals),
            handshakes: Arc::clone(handshakes),
            is_due: AtomicBool::new(false),
        }
    }

    /// Leaves a connection to the reactor. A connection that cannot be parked ends.
    fn park(&self, connection: Box<Connection>) {
        drop(self.connections.park(connection, Interest::Read));
    }
}

/// Puts a connection into a queue with `send`.
fn send(connection: &Connection, send: impl FnOnce(&OutgoingMigration<'_>) -> Sent) -> Sent {
    let export = connection.stream.transport().export();
    let outgoing = export.as_ref().and_then(|export| exported(connection, export));
    outgoing.map_or(Sent::TooLong, |outgoing| send(&outgoing))
}

/// Sending side.
impl ConnectionMigration {
    /// The listeners are closed. Idle connections get a deadline, or migrate from now on.
    pub(in crate::engine) fn begin(&self, now: Millis) {
        let migrates = self.worker.migrates();
        self.connections
            .hurry_idle(now + if migrates { PATIENCE } else { DRAIN_IDLE });
        self.is_due.store(migrates, SeqCst);
    }

    /// Parks a connection that waits for its peer, unless another worker takes it over.
    pub(in crate::engine) fn park_or_migrate(&self, connection: Box<Connection>) {
        if !self.worker.is_retiring() || !connection.can_move() {
            return self.park(connection);
        }
        if let Err((connection, _)) = self.migrate(connection) {
            if connection.is_idle() {
                self.worker.put_off_drain_deadline(Millis::now() + DRAIN_IDLE);
            }
            self.park(connection);
            // After the connection was parked, so that the poller finds it.
            self.is_due.store(true, SeqCst);
            if !Dispatching::is_here() {
                self.worker.poller.wake();
            }
        }
    }

    /// Migrates a connection to another worker, or returns it with the reason why not.
    pub(in crate::engine) fn migrate(&self, connection: Box<Connection>) -> Result<(), (Box<Connection>, Sent)> {
        let heir = self.admission.queues().zip(self.worker.shared());
        let Some((queues, (_, slot))) = heir.filter(|_| self.worker.migrates()) else {
            return Err((connection, Sent::Full));
        };
        let heirs = self.worker.heirs();
        let is_full = match heirs {
            Some(heirs) => !heirs.take_connections(),
            None => queues.connections().len() >= UNDER_WAY || !self.worker.others_have_place(),
        };
        if is_full {
            return Err((connection, Sent::Full));
        }
        let sent = send(&connection, |outgoing| match heirs {
            Some(heirs) => heirs.send_connection(outgoing),
            None => queues.connections().send(outgoing, slot),
        });
        if sent != Sent::Done {
            connection.stream.transport().stay();
            return Err((connection, sent));
        }
        self.worker.counters().handed_off.fetch_add(1, Relaxed);
        self.worker.put_off_drain_deadline(Millis::now() + PATIENCE);
        ends::let_go(connection);
        Ok(())
    }

    /// Longest wait of the poller during the drain.
    pub(in crate::engine) fn drain_pause(&self) -> Option<Duration> {
        let is_over = self.worker.is_stopped() || self.worker.drain_deadline().is_none();
        if is_over || !self.is_due.load(SeqCst) && !self.admission.awaits_connections() {
            return None;
        }
        let is_moving = self.admission.are_connections_migrating() || self.worker.heirs().is_some();
        Some(if is_moving { PAUSE } else { LONG_PAUSE })
    }

    /// Sends parked connections, and takes over connections that no other worker would take. Called by the poller,
    /// after all events of a poll were handled.
    pub(in crate::engine) fn go_on(&self, now: Millis, sink: &dyn Sink) {
        if self.worker.is_stopped() || self.worker.drain_deadline().is_none() {
            return;
        }
        if self.is_due.swap(false, SeqCst) {
            self.migrate_parked(now);
        }
        while self.admission.awaits_connections() && self.take_over(now, sink) {}
    }

    /// Called when no worker can take connections, or none is left: idle connections need not wait for one.
    fn hurry(&self, deadline: Millis) {
        if self.worker.drain_deadline().is_some_and(|set| set > deadline) {
            self.connections.hurry_idle(deadline);
        }
    }

    fn migrate_parked(&self, now: Millis) {
        if !self.worker.migrates() {
            return self.hurry(now + DRAIN_IDLE);
        }
        let found = self.connections.parked().take_some(TURN, Connection::can_move);
        let has_more = found.len() == TURN;
        let mut is_full = false;
        for connection in found {
            let handed = if is_full {
                Err((connection, Sent::Full))
            } else {
                self.migrate(connection)
            };
            if let Err((connection, sent)) = handed {
                is_full |= matches!(sent, Sent::Full | Sent::Gone);
                self.park(connection);
            }
        }
        if has_more || is_full {
            self.is_due.store(true, SeqCst);
        }
    }
}

/// Receiving side.
impl ConnectionMigration {
    /// Takes over one connection. Returns false if there is none, or it cannot be taken now.
    pub(in crate::engine) fn take_over(&self, now: Millis, sink: &dyn Sink) -> bool {
        let Some((queues, (_, slot))) = self.admission.queues().zip(self.worker.shared()) else {
            return false;
        };
        match queues.connections().receive(slot) {
            Received::Migration(incoming) => self.go_on_with(incoming, now, sink),
            Received::Nobody => return false,
            Received::Short => {
                self.admission.lack_descriptors("migrated connections");
                return false;
            }
            Received::Spoiled(_) => self
                .admission
                .log("closed a migrated connection: out of file descriptors"),
        }
        true
    }

    fn go_on_with(&self, incoming: IncomingMigration, now: Millis, sink: &dyn Sink) {
        let IncomingMigration {
            socket,
            origin,
            peer,
            tls,
            ..
        } = incoming;
        let to_link = |endpoint: &Endpoint, socket| match &tls {
            Some(state) => endpoint.transport_with_tls(socket, state),
            None => Ok(endpoint.transport(socket)),
        };
        let connection = self
            .arrivals
            .connection_of(socket, origin, peer, Some(Interest::Read), to_link);
        let mut connection = match connection {
            Ok(connection) => Box::new(connection),
            Err((_, reason)) => {
                let line = format!("closed a migrated connection: {reason}");
                return self.admission.log(&line);
            }
        };
        self.worker.counters().taken_over.fetch_add(1, Relaxed);
        self.worker.put_off_drain_deadline(now + DRAIN_IDLE);
        connection.await_proxy_header(incoming.awaited);
        connection.taken_over(incoming.stage, incoming.input, incoming.served);
        self.handshakes.await_handshake(&mut connection, now);
        self.worker.guard("a connection", || {
            let next = connection.resume(&self.worker.config, now);
            sink.put(Move::Settle(connection, next));
        });
    }
}
