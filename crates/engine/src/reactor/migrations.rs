//! Decides when this worker takes over connections, or clients, that other workers migrate. They go to the workers in the same order
//! as new connections: a worker with more connections than another one leaves them to it for a moment.

use super::accept_order::AcceptOrder;
use super::{Handler, Migrating};
use crate::clock::{Millis, Nanos};
use std::time::Duration;

/// Connections taken over before other events get their turn.
const TURN: usize = 16;

/// Rest after the queue could not be watched.
const REST: Duration = Duration::from_millis(100);

pub(super) struct Migrations {
    kind: Migrating,
    /// True if the queue is in the poll set.
    is_watched: bool,
    order: AcceptOrder,
}

impl Migrations {
    pub(super) fn new(kind: Migrating) -> Migrations {
        Migrations {
            kind,
            is_watched: false,
            order: AcceptOrder::default(),
        }
    }

    /// Puts the queue into the poll set, or returns the time for which this worker still leaves it to others. Called
    /// before each poll.
    pub(super) fn end_rest(&mut self, handler: &impl Handler) -> Option<Duration> {
        if self.is_watched {
            return None;
        }
        let queues = handler.queues()?;
        // The poller is woken when there is a slot again.
        if !handler.admits(self.kind) {
            return None;
        }
        if let Some(left) = self.order.rest(Nanos::now, || handler.is_ahead()) {
            return Some(left);
        }
        let poller = &handler.worker().poller;
        let watched = match self.kind {
            Migrating::Connections => queues.watch_connections(poller),
            Migrating::Clients => queues.watch_clients(poller),
        };
        self.is_watched = watched.is_ok();
        (!self.is_watched).then_some(REST)
    }

    /// Takes over this worker's share of the connections in the queue.
    pub(super) fn arrived(&mut self, handler: &impl Handler, now: Millis) {
        for _ in 0..TURN {
            if !handler.admits(self.kind) {
                return self.unwatch(handler);
            }
            if !handler.take_migrated(self.kind, now) {
                return;
            }
            self.order.accepted(Nanos::now(), || handler.is_ahead());
            if self.order.rest(Nanos::now, || handler.is_ahead()).is_some() {
                return self.unwatch(handler);
            }
        }
    }

    fn unwatch(&mut self, handler: &impl Handler) {
        if let Some(queues) = handler.queues() {
            let poller = &handler.worker().poller;
            match self.kind {
                Migrating::Connections => queues.unwatch_connections(poller),
                Migrating::Clients => queues.unwatch_clients(poller),
            }
        }
        self.is_watched = false;
    }
}
