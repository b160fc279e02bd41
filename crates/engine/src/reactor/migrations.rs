//! When this worker looks at connections that other workers hand off. They go to the workers in the same order as new
//! ones: a worker that has more connections than another one leaves them to that for a moment.

use super::accept_order::AcceptOrder;
use super::Handler;
use crate::clock::{Millis, Nanos};
use std::time::Duration;

/// Connections taken over before other events get their turn.
const TURN: usize = 16;

/// How long it rests after the queue could not be watched.
const REST: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Migrations {
    /// Whether the queue is in the poll set.
    is_watched: bool,
    order: AcceptOrder,
}

impl Migrations {
    /// Puts the queue into the poll set, or returns how long this worker still leaves it to others. Called before each
    /// poll.
    pub(super) fn end_rest(&mut self, handler: &impl Handler) -> Option<Duration> {
        if self.is_watched {
            return None;
        }
        let room = handler.room()?;
        // The poller is woken when there is a place again.
        if !handler.admits_connections() {
            return None;
        }
        if let Some(left) = self.order.rest(Nanos::now, || handler.is_ahead()) {
            return Some(left);
        }
        self.is_watched = room.watch_migrations(&handler.worker().poller).is_ok();
        (!self.is_watched).then_some(REST)
    }

    /// There is something in the queue: takes over as much as is this worker's.
    pub(super) fn arrived(&mut self, handler: &impl Handler, now: Millis) {
        for _ in 0..TURN {
            if !handler.admits_connections() {
                return self.unwatch(handler);
            }
            if !handler.take_migrated(now) {
                return;
            }
            self.order.accepted(Nanos::now(), || handler.is_ahead());
            if self.order.rest(Nanos::now, || handler.is_ahead()).is_some() {
                return self.unwatch(handler);
            }
        }
    }

    fn unwatch(&mut self, handler: &impl Handler) {
        if let Some(room) = handler.room() {
            room.unwatch_migrations(&handler.worker().poller);
        }
        self.is_watched = false;
    }
}
