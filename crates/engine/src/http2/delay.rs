//! Responses that are sent together: while another request of a session is about to run, what `h2` has for the client waits
//! for the response to that one, because each send costs as much as a short request. It is sent when the thread finds
//! nothing to run, when the app blocks, after a few responses, or in the next tick of the monitor, a millisecond later.

use super::connection::Http2Connection;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// The sessions of an engine that have something to send.
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

    /// Sends it now. One load in the usual case.
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
