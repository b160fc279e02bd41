//! Uploads whose bodies have outgrown memory: the spooler stores them. If no descriptor is free, because as many files
//! are open as allowed, a connection waits for one in order of arrival. It is not read meanwhile, so the wait costs no
//! thread. A connection that gets none within `body_timeout` is refused with 503.
//!
//! The streams of a session that has its share of files already wait apart, for those of the same session. If others have
//! waited for a while, the session with the most files gives way.

use super::Engine;
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::http2::Session;
use crate::limits::budget::Kind;
use crate::limits::request_totals::Waiting;
use crate::spool::Upload;
use crate::sync::Mutex;
use crate::transport::poller::{Dispatching, Interest, Key};
use std::collections::{HashMap, VecDeque};
use std::sync::Weak;
use std::time::Duration;

/// How often the poller looks for free descriptors while a connection waits, in case it is not woken for one.
const LOOK: Duration = Duration::from_millis(50);

/// After an upload has waited this long for a descriptor, the session with the most files gives way.
const PATIENCE: Duration = Duration::from_millis(1_000);

/// In order of arrival. A key whose connection has ended or was refused is skipped when its turn comes.
#[derive(Default)]
pub(super) struct Uploads {
    queue: Mutex<VecDeque<(Key, Waiting)>>,
    /// Streams that wait for other streams of their session, by its key.
    of_sessions: Mutex<HashMap<Key, VecDeque<Key>>>,
}

/// A connection whose body the spooler stores.
#[derive(Debug)]
struct StoredBody {
    engine: Weak<Engine>,
    connection: Box<Connection>,
}

impl Upload for StoredBody {
    fn store(mut self: Box<Self>, scratch: &mut [u8]) {
        let Some(engine) = self.engine.upgrade() else { return };
        let next = self.connection.store(scratch, &engine.worker.config, Millis::now());
        engine.settle_elsewhere(self.connection, next);
    }
}

impl Engine {
    /// Hands a connection with a large body to the spooler.
    pub(super) fn hand_to_spooler(&self, connection: Box<Connection>) {
        let engine = self.me.clone();
        if let Err(refused) = self.services.spool.store(Box::new(StoredBody { engine, connection })) {
            drop(refused);
            self.finish_if_drained();
        }
    }

    /// Parks a connection that needs a descriptor to continue.
    pub(super) fn put_off(&self, connection: Box<Connection>) {
        if let Some(session) = session_with_its_share(&connection) {
            return self.put_off_in_session(connection, session);
        }
        let place = (connection.key(), self.worker.config.request_totals.wait());
        // In this order, so that a thread that finds the key also finds the parked connection.
        self.park(connection, Interest::Nothing);
        self.uploads.queue.lock().push_back(place);
        self.worker.expect(Millis::now() + LOOK);
    }

    fn put_off_in_session(&self, connection: Box<Connection>, session: Key) {
        let key = connection.key();
        self.park(connection, Interest::Nothing);
        let mut waiting = self.uploads.of_sessions.lock();
        waiting.entry(session).or_default().push_back(key);
        drop(waiting);
        // There may be room since the connection was told that there is none.
        if let Some(session) = self.sessions.get(session) {
            if !session.budget().is_used_up(Kind::Bodies) {
                session.look_later();
            }
        }
    }

    /// Continues the streams of a session that wait for its other streams, as far as there is room; called by the poller.
    pub(super) fn resume_uploads_of(&self, session: &Session, now: Millis) {
        while !session.budget().is_used_up(Kind::Bodies) {
            let mut waiting = self.uploads.of_sessions.lock();
            let next = waiting.get_mut(&session.key()).and_then(VecDeque::pop_front);
            drop(waiting);
            let Some(key) = next else { break };
            let waits = |connection: &Connection| connection.waits_for_descriptor();
            let connection = self.connections.parked().take_if(key, waits);
            if let Some(mut connection) = connection {
                let next = connection.go_on(&self.worker.config, now, false);
                self.settle(connection, next);
            }
        }
        let mut waiting = self.uploads.of_sessions.lock();
        if waiting.get(&session.key()).is_some_and(VecDeque::is_empty) || session.is_over() {
            waiting.remove(&session.key());
        }
    }

    /// Wakes the poller if a connection waits and a descriptor may be free.
    pub(super) fn tell_uploads(&self) {
        if self.worker.config.request_totals.has_waiting() && !Dispatching::is_here() {
            self.worker.poller.wake();
        }
    }

    /// Continues connections for which there is a descriptor; called by the poller.
    pub(super) fn resume_uploads(&self, now: Millis) {
        if !self.worker.config.request_totals.has_waiting() {
            return;
        }
        loop {
            // One lock at a time. The key stays in front until its connection can continue.
            let front = self.uploads.queue.lock().front().map(|(key, _)| *key);
            let Some(key) = front else { return };
            let waits = |connection: &Connection| connection.waits_for_descriptor();
            let connection = self.connections.parked().take_if(key, waits);
            let next = connection.map(|mut connection| (connection.go_on(&self.worker.config, now, true), connection));
            if let Some((Next::PutOff, connection)) = next {
                if let Some(session) = session_with_its_share(&connection) {
                    self.uploads.queue.lock().pop_front();
                    self.put_off_in_session(connection, session);
                    continue;
                }
                if connection
                    .has_waited_since()
                    .is_some_and(|since| now - since >= PATIENCE)
                {
                    let _ = [Kind::Bodies, Kind::Files]
                        .into_iter()
                        .any(|kind| self.giving_way.make_session_give_way(kind, None));
                }
                self.park(connection, Interest::Nothing);
                return self.worker.expect(now + LOOK);
            }
            self.uploads.queue.lock().pop_front();
            if let Some((next, connection)) = next {
                self.settle(connection, next);
            }
        }
    }
}

/// The key of the session of a stream, if that has all the files that it may have.
fn session_with_its_share(connection: &Connection) -> Option<Key> {
    let budget = connection.stream.transport().budget()?;
    budget.is_used_up(Kind::Bodies).then(|| budget.key())
}
