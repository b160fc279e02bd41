//! The HTTP/2 connections of an engine. The key of such a connection, which is also its poller token, is the key of the
//! connection below with one more bit.

use super::connection::{Http2Connection, Shared};
use crate::clock::{AtomicMillis, Millis};
use crate::spool::Spool;
use crate::sync::Mutex;
use crate::transport::poller::Key;
use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::time::Duration;

/// Set in the keys of HTTP/2 connections, and in no other key of a connection or a client: the second highest bit of an
/// index.
const HTTP2: u64 = 1 << 30;

/// Minimum time between two checks of all HTTP/2 connections.
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
    /// The time of the last check.
    checked: AtomicMillis,
}

impl Http2Connections {
    pub(crate) fn new(spool: &Arc<Spool>) -> Http2Connections {
        Http2Connections {
            all: Mutex::default(),
            shared: Shared::new(spool),
            checked: AtomicMillis::new(Millis::LONG_AGO),
        }
    }

    pub(crate) fn insert(&self, connection: &Arc<Http2Connection>) {
        self.all.lock().insert(connection.key(), Arc::clone(connection));
    }

    pub(crate) fn remove(&self, connection: &Http2Connection) {
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
        self.shared.is_any_due.load(SeqCst)
    }

    /// The connections with streams that have to be looked at without an event of the socket.
    pub(crate) fn to_look_at(&self) -> Vec<Arc<Http2Connection>> {
        if !self.shared.is_any_due.swap(false, SeqCst) {
            return Vec::new();
        }
        let all = self.all.lock();
        all.values()
            .filter(|connection| connection.looks_later())
            .cloned()
            .collect()
    }

    /// The connections that are past their deadline, and the time of the next check.
    pub(crate) fn expired(&self, now: Millis) -> (Vec<Arc<Http2Connection>>, Millis) {
        let checked = self.checked.load(SeqCst);
        if now - checked < STEP {
            let is_empty = self.all.lock().is_empty();
            return (Vec::new(), if is_empty { Millis::NEVER } else { checked + STEP });
        }
        self.checked.store(now, SeqCst);
        let (mut expired, mut next) = (Vec::new(), Millis::NEVER);
        for connection in self.all() {
            match connection.deadline() {
                deadline if deadline <= now => expired.push(connection),
                deadline => next = next.min(deadline),
            }
        }
        (expired, next)
    }
}
