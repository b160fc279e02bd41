//! Migration in a drain: a worker that drains migrates its connections to the workers that continue, instead of closing
//! them. Both sides.
//!
//! ```text
//!   worker that drains                       queue in the kernel          worker that continues
//!     idle, or part of a head ──────────────▶ bytes, age, socket ───────▶ parked, as before
//!     request here, or runs ──response──▶ idle      (at most UNDER_WAY)
//!                                └─▶ being sent ──▶ rest of it, its file ─▶ sent from there on
//! ```
//! A connection migrates between two requests; a request that has arrived gets its response first. The bytes of an
//! incomplete head, or of the next request, migrate with the connection. A response migrates, too, as soon as the app has
//! written all of it: the next worker sends the bytes that the kernel does not have yet, from memory, from a served file or
//! from a temporary one. No thread of the app is needed: the poller
//! sends and takes over connections. A connection for which no worker has a slot stays parked, and is served, until no
//! connection has migrated for a while; then it is closed, as in a worker without another worker to migrate to.

use super::outgoing::exported;
use super::responses::{is_large, ResponseMigration, MOST_LARGE};
use super::{Admission, IncomingConnections};
use crate::clock::Millis;
use crate::cluster::queues::{IncomingMigration, OutgoingMigration, Received, Sent, SharedQueues, Stage};
use crate::connection::connections::Connections;
use crate::connection::Connection;
use crate::engine::ends;
use crate::engine::native::Handshakes;
use crate::engine::sink::{Move, Sink};
use crate::exchange::Services;
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
    responses: ResponseMigration,
    /// True if parked connections may still have to migrate.
    is_due: AtomicBool,
}

impl ConnectionMigration {
    pub(in crate::engine) fn new(
        services: &Services,
        connections: &Arc<Connections>,
        admission: &Arc<Admission>,
        arrivals: &Arc<IncomingConnections>,
        handshakes: &Arc<Handshakes>,
    ) -> ConnectionMigration {
        ConnectionMigration {
            worker: Arc::clone(&services.worker),
            responses: ResponseMigration::new(services),
            connections: Arc::clone(connections),
            admission: Arc::clone(admission),
            arrivals: Arc::clone(arrivals),
            handshakes: Arc::clone(handshakes),
            is_due: AtomicBool::new(false),
        }
    }

    /// Leaves a connection to the reactor. A connection that cannot be parked ends.
    fn park(&self, connection: Box<Connection>) {
        let interest = match connection.is_flushing() {
            true => Interest::Write,
            false => Interest::Read,
        };
        drop(self.connections.park(connection, interest));
    }
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
        if !self.worker.is_retiring() || !connection.can_move() && !connection.can_leave_rest() {
            return self.park(connection);
        }
        if let Some(connection) = self.keep_or_migrate(connection) {
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

    /// Migrates a connection to another worker if this one retires. Otherwise returns it.
    pub(in crate::engine) fn keep_or_migrate(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        if !self.worker.is_retiring() || !connection.can_move() {
            return Some(connection);
        }
        self.migrate(connection).err().map(|(connection, _)| connection)
    }

    /// Migrates a connection to another worker, or returns it with the reason why not.
    pub(in crate::engine) fn migrate(&self, mut connection: Box<Connection>) -> Result<(), (Box<Connection>, Sent)> {
        let heir = self.admission.queues().zip(self.worker.shared());
        let Some((queues, (_, slot))) = heir.filter(|_| self.worker.migrates()) else {
            return Err((connection, Sent::Full));
        };
        if let Some(obstacle) = self.obstacle(queues, is_large(&connection)) {
            return Err((connection, obstacle));
        }
        let sent = self.send(&connection, |outgoing| match self.worker.heirs() {
            Some(heirs) => heirs.send_connection(outgoing),
            None => queues.connections().send(outgoing, slot),
        });
        if sent != Sent::Done {
            connection.stream.transport().stay();
            return Err((connection, sent));
        }
        self.worker.counters().handed_off.fetch_add(1, Relaxed);
        self.worker.put_off_drain_deadline(Millis::now() + PATIENCE);
        connection.leave_slow_request();
        ends::let_go(connection);
        Ok(())
    }

    /// The reason why no connection can be put in now. `is_large`: it has many bytes in memory.
    fn obstacle(&self, queues: &SharedQueues, is_large: bool) -> Option<Sent> {
        let under_way = queues.connections().len();
        let (is_full, is_too_full) = match self.worker.heirs() {
            Some(heirs) => (!heirs.take_connections(false), !heirs.take_connections(true)),
            None => (
                under_way >= UNDER_WAY || !self.worker.others_have_place(),
                under_way > MOST_LARGE,
            ),
        };
        match is_full {
            true => Some(Sent::Full),
            false => (is_large && is_too_full).then_some(Sent::TooLong),
        }
    }

    /// Puts a connection into a queue with `send`.
    fn send(&self, connection: &Connection, send: impl FnOnce(&OutgoingMigration<'_>) -> Sent) -> Sent {
        let response = self.responses.save(connection);
        if connection.is_flushing() && response.is_none() {
            return Sent::TooLong;
        }
        let export = connection.stream.transport().export();
        let outgoing = export
            .as_ref()
            .and_then(|export| exported(connection, export, response.as_ref()));
        outgoing.map_or(Sent::TooLong, |outgoing| send(&outgoing))
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
        // The spooler may be busy with the others, or the way is too full for them.
        if has_more || is_full || self.connections.parked().any(Connection::can_leave_rest) {
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
            socket, origin, peer, ..
        } = incoming;
        let (tls, response) = (incoming.tls, incoming.response);
        let own = self.arrivals.endpoint_of(origin, peer);
        // A restart has removed its address: its response ends the connection.
        let is_last = own.is_none() && response.is_some();
        let endpoint = match is_last {
            true => self.arrivals.stand_in(tls.is_some()),
            false => own,
        };
        let to_link = |endpoint: &Endpoint, socket| match (&tls, &response) {
            (Some(state), _) => endpoint.transport_with_tls(socket, state),
            (None, Some(_)) => Ok(endpoint.plain_transport(socket)),
            (None, None) => Ok(endpoint.transport(socket)),
        };
        let interest = response.is_none().then_some(Interest::Read);
        let connection = self.arrivals.connection_of(socket, endpoint, peer, interest, to_link);
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
        self.worker.guard("a connection", || {
            if let (Some(response), Stage::Response { paid }) = (response, incoming.stage) {
                if !self.responses.take(&mut connection, *response, paid) {
                    self.admission
                        .log("closed a migrated connection: its response is invalid");
                    return ends::cut(connection);
                }
            }
            if is_last {
                connection.end_with_response();
            }
            self.handshakes.await_handshake(&mut connection, now);
            let next = connection.resume(&self.worker.config, now);
            sink.put(Move::Settle(connection, next));
        });
    }
}
