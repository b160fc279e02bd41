//! Turns of requests that share a connection, as in HTTP/2: at most one of them waits for a thread in the ready queue.
//! When it begins, the next one joins the end of the ready queue. So a connection with a hundred requests has as many
//! turns as a connection with a single one.
//!
//! ```text
//!   request ──▶ queue of its connection ──▶ ready queue ──▶ runs: its turn is over
//!                most urgent first           │ one of       ▲
//!                                            │ each queue   │
//!                                            └▶ waiting room: up to two of each queue
//! ```
//! A second request may leave the queue while the first one waits for other workers: workers notify each other by
//! messages, and if they saw only the first request of a queue, they would wait for these messages.

use super::Connection;
use crate::clock::Nanos;
use crate::limits::budget::Budget;
use crate::sync::Mutex;
use fairlead_wire::http2::Priority;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Puts a request into the ready queue.
pub(crate) trait StreamTurns: Send + Sync {
    /// `is_leaving`: the caller, or its caller, sends requests to other workers, and continues with this one.
    fn take_turn(&self, connection: Box<Connection>, is_leaving: bool);

    /// Drops a request that its client has abandoned.
    fn abandon(&self, connection: Box<Connection>);
}

/// See the head of this file.
pub(crate) struct StreamQueue {
    inner: Mutex<Inner>,
    /// Number of requests in all such queues of an engine.
    count: Arc<AtomicUsize>,
    taker: Weak<dyn StreamTurns>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct Inner {
    /// True if a request of this queue waits in the ready queue.
    has_turn: bool,
    /// Number of its requests that wait for other workers.
    away: usize,
    /// In the order of their turns: the most urgent first, then the order of arrival.
    waiting: BTreeMap<(Priority, u64), Box<Connection>>,
    /// Number of the last request that has joined.
    last: u64,
}

/// Membership of a request in a queue.
pub(crate) struct StreamTurn {
    queue: Arc<StreamQueue>,
    priority: Priority,
    place: Waits,
}

/// Waiting place of a request that shares its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Queued,
    /// In the ready queue.
    Here,
    /// In the waiting room.
    Away,
}

/// Most requests of a queue that wait for other workers.
const MOST_AWAY: usize = 2;

impl StreamQueue {
    /// `count`: number of requests in all such queues of an engine.
    pub(crate) fn new(count: &Arc<AtomicUsize>, taker: Weak<dyn StreamTurns>, budget: Arc<Budget>) -> Arc<StreamQueue> {
        Arc::new(StreamQueue {
            inner: Mutex::default(),
            count: Arc::clone(count),
            taker,
            budget,
        })
    }

    /// True if a request of this queue waits in the ready queue.
    pub(crate) fn has_turn(&self) -> bool {
        self.inner.lock().has_turn
    }

    /// Budget of the HTTP/2 connection.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Lets the next request join the ready queue, if the client has taken enough of its waiting output.
    pub(crate) fn resume(&self) {
        self.go_on(false);
    }

    /// True if a request may join the ready queue. False while too much output waits for the client.
    fn may_leave(&self, inner: &Inner) -> bool {
        !inner.has_turn && inner.away < MOST_AWAY && self.budget.waits_for_client().is_none()
    }

    /// Takes the next request, if it may join the ready queue.
    fn next(&self) -> Option<Box<Connection>> {
        let mut inner = self.inner.lock();
        let next = self.may_leave(&inner).then(|| inner.pop()).flatten();
        inner.has_turn |= next.is_some();
        next
    }

    /// Drops all requests in the queue.
    pub(crate) fn clear(&self) {
        let waiting = std::mem::take(&mut self.inner.lock().waiting);
        self.count.fetch_sub(waiting.len(), Relaxed);
        drop(waiting);
    }

    /// Drops the requests that their client has abandoned.
    pub(crate) fn drop_abandoned(&self) {
        let mut inner = self.inner.lock();
        let waiting = std::mem::take(&mut inner.waiting).into_iter();
        let (abandoned, waiting): (BTreeMap<_, _>, _) =
            waiting.partition(|(_, connection)| connection.stream.is_abandoned());
        inner.waiting = waiting;
        drop(inner);
        self.count.fetch_sub(abandoned.len(), Relaxed);
        abandoned.into_values().for_each(|connection| self.abandon(connection));
    }

    fn abandon(&self, connection: Box<Connection>) {
        if let Some(taker) = self.taker.upgrade() {
            taker.abandon(connection);
        }
    }

    /// Gives the next request that the client still waits for a turn, after a turn has ended here or has moved to
    /// another worker. `is_leaving`: the previous request has left for another worker.
    fn go_on(&self, is_leaving: bool) {
        loop {
            let Some(mut connection) = self.next() else { return };
            self.count.fetch_sub(1, Relaxed);
            if connection.stream.is_abandoned() {
                self.inner.lock().has_turn = false;
                self.abandon(connection);
                continue;
            }
            connection.wait(Waits::Here);
            connection.stream.request.line_wait = Nanos::now() - connection.arrived();
            match self.taker.upgrade() {
                Some(taker) => taker.take_turn(connection, is_leaving),
                // The engine has ended: no request gets a turn any more.
                None => connection.wait(Waits::Queued),
            }
            return;
        }
    }
}

impl Inner {
    fn pop(&mut self) -> Option<Box<Connection>> {
        self.waiting.pop_first().map(|(_, connection)| connection)
    }
}

impl StreamTurn {
    pub(crate) fn of(queue: &Arc<StreamQueue>, priority: Priority) -> StreamTurn {
        StreamTurn {
            queue: Arc::clone(queue),
            priority,
            place: Waits::Queued,
        }
    }
}

impl Drop for StreamTurn {
    fn drop(&mut self) {
        let mut inner = self.queue.inner.lock();
        match self.place {
            Waits::Queued => return,
            Waits::Here => inner.has_turn = false,
            Waits::Away => inner.away -= 1,
        }
        drop(inner);
        self.queue.go_on(false);
    }
}

impl std::fmt::Debug for StreamTurn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Turn")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Makes the request share its connection with others.
    pub(crate) fn share_turns(&mut self, turn: StreamTurn) {
        self.turn = Some(turn);
    }

    /// Returns itself, if it may wait for a thread now; otherwise it joins its queue.
    pub(crate) fn or_in_line(mut self: Box<Self>) -> Option<Box<Connection>> {
        let is_in_line = |turn: &&StreamTurn| turn.place == Waits::Queued;
        let Some(turn) = self.turn.as_ref().filter(is_in_line) else {
            return Some(self);
        };
        let (queue, priority) = (Arc::clone(&turn.queue), turn.priority);
        let mut inner = queue.inner.lock();
        if !queue.may_leave(&inner) {
            inner.last += 1;
            let place = (priority, inner.last);
            inner.waiting.insert(place, self);
            queue.count.fetch_add(1, Relaxed);
            return None;
        }
        inner.has_turn = true;
        self.wait(Waits::Here);
        Some(self)
    }

    /// Ends its turn: a thread runs it.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }

    /// It waits for other workers, and perhaps a second request may, too.
    pub(crate) fn pass_turn(&mut self) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.place == Waits::Here) else {
            return;
        };
        turn.place = Waits::Away;
        let queue = Arc::clone(&turn.queue);
        let mut inner = queue.inner.lock();
        inner.has_turn = false;
        inner.away += 1;
        drop(inner);
        queue.go_on(true);
    }

    fn wait(&mut self, place: Waits) {
        if let Some(turn) = &mut self.turn {
            turn.place = place;
        }
    }
}
