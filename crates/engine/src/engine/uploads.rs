//! Uploads with bodies that have outgrown memory: the spooler stores them. If no descriptor is free, because the limit
//! of open files is reached, a connection waits for one in order of arrival. It is not read meanwhile, so the wait
//! costs no thread. A connection that gets none within `body_timeout` is refused with 503.
//!
//! If an HTTP/2 connection has its share of files already, its streams wait in a separate queue for other streams of
//! the same connection. If others have waited for a while, the HTTP/2 connection with the most files gives way.

use super::giving_way::GivingWay;
use super::sink::{Move, Sink};
use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::connection::{Connection, Next};
use crate::exchange::Services;
use crate::http2::{Http2Connection, Http2Connections};
use crate::limits::budget::Kind;
use crate::limits::request_totals::Waiting;
use crate::spool::Upload;
use crate::sync::Mutex;
use crate::transport::poller::{Dispatching, Interest, Key};
use crate::worker::Worker;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Pause between two checks of the poller for free descriptors while a connection waits, in case it is not woken for
/// one.
const LOOK: Duration = Duration::from_millis(50);

/// After an upload has waited this long for a descriptor, the HTTP/2 connection with the most files gives way.
const PATIENCE: Duration = Duration::from_millis(1_000);

/// See the head of this file.
pub(super) struct Uploads {
    services: Arc<Services>,
    connections: Arc<Connections>,
    http2_connections: Arc<Http2Connections>,
    giving_way: Arc<GivingWay>,
    /// In order of arrival. The key of a connection that has ended or was refused is skipped when its turn comes.
    queue: Mutex<VecDeque<(Key, Waiting)>>,
    /// Streams that wait for other streams of their HTTP/2 connection, by its key.
    of_http2: Mutex<HashMap<Key, VecDeque<Key>>>,
    sink: Weak<dyn Sink>,
}

/// A connection with a body that the spooler stores.
#[derive(Debug)]
struct StoredBody {
    worker: Weak<Worker>,
    sink: Weak<dyn Sink>,
    connection: Box<Connection>,
}

impl Upload for StoredBody {
    fn store(mut self: Box<Self>, scratch: &mut [u8]) {
        let Some(sink) = self.sink.upgrade() else { return };
        let Some(worker) = self.worker.upgrade() else { return };
        let next = self.connection.store(scratch, &worker.config, Millis::now());
        sink.put(Move::Settle(self.connection, next));
    }
}

impl Uploads {
    pub(super) fn new(
        services: &Arc<Services>,
        connections: &Arc<Connections>,
        http2_connections: &Arc<Http2Connections>,
        giving_way: &Arc<GivingWay>,
        sink: Weak<dyn Sink>,
    ) -> Arc<Uploads> {
        Arc::new(Uploads {
            services: Arc::clone(services),
            connections: Arc::clone(connections),
            http2_connections: Arc::clone(http2_connections),
            giving_way: Arc::clone(giving_way),
            queue: Mutex::default(),
            of_http2: Mutex::default(),
            sink,
        })
    }

    /// Gives a connection with a large body to the spooler. If the spooler has ended, the connection ends.
    pub(super) fn store(&self, connection: Box<Connection>) {
        let stored = StoredBody {
            worker: Arc::downgrade(&self.services.worker),
            sink: Weak::clone(&self.sink),
            connection,
        };
        drop(self.services.spool.store(Box::new(stored)));
    }

    /// Parks a connection that needs a descriptor to continue.
    pub(super) fn put_off(&self, connection: Box<Connection>) {
        if let Some(http2) = http2_with_its_share(&connection) {
            return self.put_off_in_http2(connection, http2);
        }
        let worker = &self.services.worker;
        let place = (connection.key(), worker.config.request_totals.wait());
        // In this order, so that a thread that finds the key also finds the parked connection.
        self.park(connection);
        self.queue.lock().push_back(place);
        worker.expect(Millis::now() + LOOK);
    }

    fn put_off_in_http2(&self, connection: Box<Connection>, http2: Key) {
        let key = connection.key();
        self.park(connection);
        let mut waiting = self.of_http2.lock();
        waiting.entry(http2).or_default().push_back(key);
        drop(waiting);
        // There may be room by now: the connection was refused a file a moment ago.
        if let Some(http2) = self.http2_connections.get(http2) {
            if !http2.budget().is_used_up(Kind::Bodies) {
                http2.look_later();
            }
        }
    }

    /// Leaves a connection to the reactor. A connection that cannot be parked ends.
    fn park(&self, connection: Box<Connection>) {
        drop(self.connections.park(connection, Interest::Nothing));
    }

    /// Takes the connection with that key, if it waits for a descriptor.
    fn take(&self, key: Key) -> Option<Box<Connection>> {
        let waits = |connection: &Connection| connection.waits_for_descriptor();
        self.connections.parked().take_if(key, waits)
    }

    /// Continues the streams of an HTTP/2 connection that wait for its other streams, as far as there is room; called
    /// by the poller.
    pub(super) fn resume_of(&self, http2: &Http2Connection, now: Millis, sink: &dyn Sink) {
        while !http2.budget().is_used_up(Kind::Bodies) {
            let mut waiting = self.of_http2.lock();
            let next = waiting.get_mut(&http2.key()).and_then(VecDeque::pop_front);
            drop(waiting);
            let Some(key) = next else { break };
            if let Some(mut connection) = self.take(key) {
                let next = connection.go_on(&self.services.worker.config, now, false);
                sink.put(Move::Settle(connection, next));
            }
        }
        let mut waiting = self.of_http2.lock();
        if waiting.get(&http2.key()).is_some_and(VecDeque::is_empty) || http2.is_over() {
            waiting.remove(&http2.key());
        }
    }

    /// Wakes the poller if a connection waits and a descriptor may be free.
    pub(super) fn tell(&self) {
        let worker = &self.services.worker;
        if worker.config.request_totals.has_waiting() && !Dispatching::is_here() {
            worker.poller.wake();
        }
    }

    /// Continues the connections for which there is a descriptor; called by the poller.
    pub(super) fn resume(&self, now: Millis, sink: &dyn Sink) {
        let worker = &self.services.worker;
        if !worker.config.request_totals.has_waiting() {
            return;
        }
        loop {
            // One lock at a time. The key stays in front until its connection can continue.
            let front = self.queue.lock().front().map(|(key, _)| *key);
            let Some(key) = front else { return };
            let next = self
                .take(key)
                .map(|mut connection| (connection.go_on(&worker.config, now, true), connection));
            if let Some((Next::PutOff, connection)) = next {
                if let Some(http2) = http2_with_its_share(&connection) {
                    self.queue.lock().pop_front();
                    self.put_off_in_http2(connection, http2);
                    continue;
                }
                if connection
                    .has_waited_since()
                    .is_some_and(|since| now - since >= PATIENCE)
                {
                    let _ = [Kind::Bodies, Kind::Files]
                        .into_iter()
                        .any(|kind| self.giving_way.make_http2_give_way(kind, None));
                }
                self.park(connection);
                return worker.expect(now + LOOK);
            }
            self.queue.lock().pop_front();
            if let Some((next, connection)) = next {
                sink.put(Move::Settle(connection, next));
            }
        }
    }
}

/// Key of the HTTP/2 connection of a stream, if it has used up its share of files.
fn http2_with_its_share(connection: &Connection) -> Option<Key> {
    let budget = connection.stream.transport().budget()?;
    budget.is_used_up(Kind::Bodies).then(|| budget.key())
}
