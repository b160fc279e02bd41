//! HTTP/2 connections of an engine that some thread has to look at. An idle connection is not in the list, so it costs the
//! others nothing.

use super::connection::Http2Connection;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// Space for so many connections is kept, because connections come with each response.
const MOST_KEPT: usize = 1024;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Listed {
    is_any: AtomicBool,
    connections: Mutex<Vec<Weak<Http2Connection>>>,
}

impl Listed {
    pub(super) fn add(&self, connection: Weak<Http2Connection>) {
        self.connections.lock().push(connection);
        self.is_any.store(true, SeqCst);
    }

    /// True if [`Listed::take`] may return some. Costs one load.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(SeqCst)
    }

    /// Takes all of them.
    pub(super) fn take(&self) -> Vec<Arc<Http2Connection>> {
        if !self.is_any() {
            return Vec::new();
        }
        self.is_any.store(false, SeqCst);
        let mut connections = self.connections.lock();
        let all = connections
            .drain(..)
            .filter_map(|connection| connection.upgrade())
            .collect();
        if connections.capacity() > MOST_KEPT {
            *connections = Vec::new();
        }
        all
    }
}
