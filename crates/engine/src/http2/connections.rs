//! The HTTP/2 connections of an engine. The key of such a connection, which is also its poller token, is the key of the
//! connection below with one more bit.

use super::connection::{Http2Connection, Shared};
use crate::clock::Millis;
use crate::spool::Spool;
use crate::sync::Mutex;
use crate::transport::poller::Key;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Set in the keys of HTTP/2 connections, and in no other key of a connection or a client: the second highest bit of an
/// index.
const HTTP2: u64 = 1 << 30;

/// Minimum time between two checks of an HTTP/2 connection.
const STEP: Duration = Duration::from_millis(250);

/// Returns true if a poller token, which does not belong to a client, belongs to an HTTP/2 connection.
pub(crate) fn is_http2(token: u64) -> bool {
    token & HTTP2 != 0
}

/// The key of HTTP/2 over the connection with this key.
pub(crate) fn http2_key(connection: Key) -> Key {
    connection | HTTP2
}

/// See the head of this file.
pub(crate) struct Http2Connections {
    all: Mutex<HashMap<Key, Arc<Http2Connection>>>,
    shared: Shared,
    /// Connections with clients that have to be told that the worker is about to end; `None` before that.
    untold: Mutex<Option<Vec<Weak<Http2Connection>>>>,
    /// Connections that are not in the agenda, because they are about to be checked. After a panic the next check begins
    /// with the rest.
    past: Mutex<Vec<Arc<Http2Connection>>>,
    /// The end of the drain that the agenda takes into account.
    drain_deadline: Mutex<Millis>,
}

impl Http2Connections {
    pub(crate) fn new(spool: &Arc<Spool>) -> Http2Connections {
        Http2Connections {
            all: Mutex::default(),
            shared: Shared::new(spool),
            untold: Mutex::default(),
            past: Mutex::default(),
            drain_deadline: Mutex::new(Millis::NEVER),
        }
    }

    pub(crate) fn insert(&self, connection: &Arc<Http2Connection>) {
        self.all.lock().insert(connection.key(), Arc::clone(connection));
        if let Some(untold) = &mut *self.untold.lock() {
            untold.push(Arc::downgrade(connection));
        }
    }

    pub(crate) fn remove(&self, connection: &Http2Connection) {
        connection.forget_deadline();
        let removed = self.all.lock().remove(&connection.key());
        drop(removed);
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<Http2Connection>> {
        self.all.lock().get(&key).cloned()
    }

    /// All HTTP/2 connections.
    pub(crate) fn all(&self) -> Vec<Arc<Http2Connection>> {
        self.all.lock().values().cloned().collect()
    }

    /// The state that they share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns true if [`Http2Connections::to_look_at`] may find some.
    pub(crate) fn is_any_due(&self) -> bool {
        self.shared.due.is_any()
    }

    /// The connections with streams that have to be looked at without an event of the socket.
    pub(crate) fn to_look_at(&self) -> Vec<Arc<Http2Connection>> {
        let mut due = self.shared.due.take();
        due.retain(|connection| {
            connection.is_not_listed();
            // An event of the socket may have come first.
            connection.begin_look()
        });
        due
    }

    /// The connections with clients that have not been told yet that the worker is about to end: all at first, then the
    /// new ones.
    pub(crate) fn to_tell(&self) -> Vec<Arc<Http2Connection>> {
        let untold = self.untold.lock().replace(Vec::new());
        match untold {
            Some(untold) => untold.iter().filter_map(Weak::upgrade).collect(),
            None => self.all(),
        }
    }

    /// Begins a check for passed deadlines. `drain_deadline`: the end of the drain.
    pub(crate) fn begin_check(&self, drain_deadline: Option<Millis>, now: Millis) {
        let drain_deadline = drain_deadline.unwrap_or(Millis::NEVER);
        if drain_deadline < std::mem::replace(&mut *self.drain_deadline.lock(), drain_deadline) {
            self.all()
                .iter()
                .for_each(|connection| connection.expect(connection.deadline()));
        }
        let due = self.take_due(now);
        self.past.lock().extend(due);
    }

    /// Takes the next connection that is past its deadline.
    pub(crate) fn next_expired(&self, now: Millis) -> Option<Arc<Http2Connection>> {
        loop {
            let connection = self.past.lock().pop()?;
            match connection.deadline() {
                deadline if deadline <= now => return Some(connection),
                deadline => connection.expect(deadline.max(now + STEP)),
            }
        }
    }

    /// The time of the next check, which is `now` if this one has not come to its end.
    pub(crate) fn next_check(&self, now: Millis) -> Millis {
        if self.past.lock().is_empty() {
            self.shared.agenda.lock().first()
        } else {
            now
        }
    }

    /// Takes the connections that are noted for `now` or earlier.
    fn take_due(&self, now: Millis) -> Vec<Arc<Http2Connection>> {
        let mut agenda = self.shared.agenda.lock();
        let due = std::iter::from_fn(|| agenda.take_due(now));
        let due = due.filter_map(|key| self.get(key));
        due.inspect(|connection| connection.is_not_noted()).collect()
    }
}
