//! Responses that are sent together. While another request of an HTTP/2 connection is about to run, `h2` keeps its
//! output until that request has its response, because each send costs as much as a short request. The output is sent
//! when the thread finds nothing to run, when the app blocks, after a few responses, or in the next tick of the
//! monitor, a millisecond later.

use super::connection::Http2Connection;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// The HTTP/2 connections of an engine that have something to send.
#[derive(Default)]
pub(crate) struct Delayed {
    is_any: AtomicBool,
    connections: Mutex<Vec<Weak<Http2Connection>>>,
}

impl Delayed {
    pub(super) fn add(&self, connection: Weak<Http2Connection>) {
        self.connections.lock().push(connection);
        self.is_any.store(true, SeqCst);
    }

    /// Sends all delayed responses now. Costs one load in the usual case.
    #[inline]
    pub(crate) fn send(&self) {
        if self.is_any.load(SeqCst) {
            self.send_all();
        }
    }

    #[cold]
    fn send_all(&self) {
        self.is_any.store(false, SeqCst);
        let connections = std::mem::take(&mut *self.connections.lock());
        connections
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|connection: Arc<Http2Connection>| connection.push());
    }
}
