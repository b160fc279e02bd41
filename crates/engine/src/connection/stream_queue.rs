//! Turns of requests that share a connection, as those of HTTP/2 do: at most one of them waits for a thread among the
//! requests of others. When it begins, the next one goes to the end. So a connection with a hundred requests has one turn
//! whenever one with a single request has one.
//!
//! ```text
//!   request ──▶ line of its connection ──▶ ready queue ──▶ runs: its turn has been
//!                most urgent first          │ one of       ▲
//!                                           │ each line    │
//!                                           └▶ waiting room: up to two of each line
//! ```
//! Another one may follow one that waits for other workers: they hear of each other by messages, and a line of which they
//! see only the first would make them wait for those.

use super::Connection;
use crate::clock::Nanos;
use crate::limits::budget::Budget;
use crate::sync::Mutex;
use fairlead_wire::http2::Priority;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Lets a request wait for a thread.
pub(crate) trait StreamTurns: Send + Sync {
    /// `is_leaving`: the caller, or its caller, lets requests go to other workers, and goes on with this one.
    fn take_turn(&self, connection: Box<Connection>, is_leaving: bool);
}

/// See the head of this file.
pub(crate) struct StreamQueue {
    inner: Mutex<Inner>,
    /// How many wait in all lines of an engine.
    count: Arc<AtomicUsize>,
    taker: Weak<dyn StreamTurns>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct Inner {
    /// Whether a request of this line waits in the ready queue.
    has_turn: bool,
    /// How many wait for other workers.
    away: usize,
    waiting: VecDeque<(Priority, Box<Connection>)>,
}

/// The membership of a request in a line.
pub(crate) struct StreamTurn {
    queue: Arc<StreamQueue>,
    priority: Priority,
    place: Waits,
}

/// Where a request waits that shares its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Queued,
    /// In the ready queue.
    Here,
    /// In the waiting room.
    Away,
}

/// Most requests of a line that wait for other workers.
const MOST_AWAY: usize = 2;

impl StreamQueue {
    /// `count`: of those that wait in all lines of an engine.
    pub(crate) fn new(count: &Arc<AtomicUsize>, taker: Weak<dyn StreamTurns>, budget: Arc<Budget>) -> Arc<StreamQueue> {
        Arc::new(StreamQueue {
            inner: Mutex::default(),
            count: Arc::clone(count),
            taker,
            budget,
        })
    }

    /// Whether a request of this line waits for a thread among those of others.
    pub(crate) fn has_turn(&self) -> bool {
        self.inner.lock().has_turn
    }

    /// Budget of the session.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// There may be a turn again: too much was waiting for the client.
    pub(crate) fn resume(&self) {
        self.go_on(false);
    }

    /// True if a request of the line may join the ready queue. False while too much waits for the client already.
    fn may_leave(&self, inner: &Inner) -> bool {
        !inner.has_turn && inner.away < MOST_AWAY && self.budget.waits_for_client().is_none()
    }

    /// Takes the next one, if it may wait among the requests of others.
    fn next(&self) -> Option<Box<Connection>> {
        let mut inner = self.inner.lock();
        let next = self.may_leave(&inner).then(|| inner.pop()).flatten();
        inner.has_turn |= next.is_some();
        next
    }

    /// Drops all that are in the line.
    pub(crate) fn clear(&self) {
        let waiting = std::mem::take(&mut self.inner.lock().waiting);
        self.count.fetch_sub(waiting.len(), Relaxed);
        drop(waiting);
    }

    /// Drops those for which their client does not wait any more.
    pub(crate) fn drop_abandoned(&self) {
        let mut inner = self.inner.lock();
        let waiting = std::mem::take(&mut inner.waiting).into_iter();
        let (abandoned, waiting): (VecDeque<_>, _) = waiting.partition(|(_, connection)| connection.is_abandoned());
        inner.waiting = waiting;
        drop(inner);
        self.count.fetch_sub(abandoned.len(), Relaxed);
        drop(abandoned);
    }

    /// A turn has been, or is had elsewhere: the next one that the client still waits for may have its own.
    /// `is_leaving`: because the one before it has left for another worker.
    fn go_on(&self, is_leaving: bool) {
        loop {
            let Some(mut connection) = self.next() else { return };
            self.count.fetch_sub(1, Relaxed);
            if connection.is_abandoned() {
                self.inner.lock().has_turn = false;
                continue;
            }
            connection.wait(Waits::Here);
            connection.stream.request.line_wait = Nanos::now() - connection.arrived();
            match self.taker.upgrade() {
                Some(taker) => taker.take_turn(connection, is_leaving),
                // Nobody takes turns any more.
                None => connection.wait(Waits::Queued),
            }
            return;
        }
    }
}

impl Inner {
    fn pop(&mut self) -> Option<Box<Connection>> {
        let first = self.waiting.iter().map(|(priority, _)| *priority).min()?;
        let index = self.waiting.iter().position(|(priority, _)| *priority == first)?;
        self.waiting.remove(index).map(|(_, connection)| connection)
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
    /// Whether it is a stream whose client has reset it, or is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        let transport = self.stream.transport();
        let is_stream = transport.own_events().is_some();
        is_stream && transport.has_received().is_err_and(|error| error != Errno::AGAIN)
    }

    /// The request shares its connection with others.
    pub(crate) fn share_turns(&mut self, turn: StreamTurn) {
        self.turn = Some(turn);
    }

    /// Itself, if it may wait for a thread now; otherwise it is in its line.
    pub(crate) fn or_in_line(mut self: Box<Self>) -> Option<Box<Connection>> {
        let is_in_line = |turn: &&StreamTurn| turn.place == Waits::Queued;
        let Some(turn) = self.turn.as_ref().filter(is_in_line) else {
            return Some(self);
        };
        let (queue, priority) = (Arc::clone(&turn.queue), turn.priority);
        let mut inner = queue.inner.lock();
        if !queue.may_leave(&inner) {
            inner.waiting.push_back((priority, self));
            queue.count.fetch_add(1, Relaxed);
            return None;
        }
        inner.has_turn = true;
        self.wait(Waits::Here);
        Some(self)
    }

    /// Its turn has been: a thread runs it.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }

    /// It waits for other workers: perhaps one more does.
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
