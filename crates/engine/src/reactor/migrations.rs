//! Takes over connections, or clients, that other workers migrate. A worker with more connections than another one leaves them to it
//! (`migration_order.rs`).

use super::migration_order::MigrationOrder;
use super::{Handler, Migrating};
use crate::clock::{Millis, Nanos};
use std::time::Duration;

/// Connections taken over before other events get their turn.
const TURN: usize = 16;

/// Time until a worker that leaves the queue to others looks again.
const LOOK: Duration = Duration::from_millis(1);

/// Rest after the queue could not be watched.
const REST: Duration = Duration::from_millis(100);

pub(super) struct Migrations {
    kind: Migrating,
    /// True if the queue is in the poll set.
    is_watched: bool,
    order: MigrationOrder,
}

impl Migrations {
    pub(super) fn new(kind: Migrating) -> Migrations {
        Migrations {
            kind,
            is_watched: false,
            order: MigrationOrder::default(),
        }
    }

    /// Puts the queue into the poll set, or returns the time after which to look again, because this worker leaves it to others.
    /// Called before each poll.
    pub(super) fn end_rest(&mut self, handler: &impl Handler) -> Option<Duration> {
        if self.is_watched {
            return None;
        }
        let queues = handler.queues()?;
        // The poller is woken when there is a slot again.
        if !handler.admits(self.kind) {
            return None;
        }
        if self.rests(handler) {
            return Some(LOOK);
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
            if !handler.admits(self.kind) || self.rests(handler) {
                return self.unwatch(handler);
            }
            if !handler.take_migrated(self.kind, now) {
                return;
            }
            self.order.taken();
        }
    }

    fn rests(&mut self, handler: &impl Handler) -> bool {
        let line = handler.line(self.kind);
        line.is_some_and(|line| self.order.rests(Nanos::now(), line))
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
