//! Reactor: polls, accepts, and passes events and timeouts to a [`Handler`]. The thread that locks it is the poller. It
//! does not depend on the app, so a thread without the lock of the language can run it. Connections and clients are
//! defined elsewhere.

mod accept;
mod accept_order;
mod full_worker;
mod migration_order;
mod migrations;

use crate::clock::Millis;
use crate::cluster::queues::{SharedQueues, WaitingRoom};
use crate::http::refusal::Refusal;
use crate::limits::descriptors::Permit;
use crate::transport::listener::{Endpoint, Listener};
use crate::transport::poller::{token, Dispatching, EventBuffer, Happened, Key, Poller};
use crate::transport::Link;
use crate::transport::SCRATCH_BYTES;
use crate::worker::Worker;
use accept::Accepting;
pub(crate) use migration_order::Line;
use migrations::Migrations;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Minimum time between two complete checks for timeouts.
const EXPIRY_STEP: Duration = Duration::from_millis(50);

/// If a check for timeouts is later than this, the process was stopped: by SIGSTOP, `docker pause` or a frozen machine.
/// All peers then get `GRACE`, in which the reactor reads their input from the pause.
const STOPPED: Duration = Duration::from_millis(300);
const GRACE: Duration = Duration::from_millis(1_000);

pub(crate) struct Reactor {
    accepting: Accepting,
    connections: Migrations,
    clients: Migrations,
    scratch: Vec<u8>,
    /// No timeout applies before this time.
    excused_until: Millis,
    /// True if timeouts were checked since then. Two grace periods without a check in between would suspend timeouts
    /// for ever.
    is_excusable: bool,
    /// True if the waiting room is in the poll set.
    watches_room: bool,
}

/// The kinds of connections that migrate without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Migrating {
    Connections,
    /// WebSockets and event streams.
    Clients,
}

/// Handles the events of the reactor.
pub(crate) trait Handler {
    fn worker(&self) -> &Worker;

    /// True if other workers wait for the same listeners.
    fn has_siblings(&self) -> bool;

    /// True if another worker has fewer connections than this one.
    fn is_ahead(&self) -> bool;

    /// True if `max_connections` are open. Then the poller is woken when one is closed.
    fn is_full(&self) -> bool;

    /// Number of connections that may be opened before `max_connections` are open.
    fn free_places(&self) -> usize;

    /// Number of connections that the other workers with a place have accepted; `None` if no other worker has a place.
    fn accepted_elsewhere(&self) -> Option<u64>;

    /// Returns a permit for one more accepted connection, or the reason why there is none.
    fn permit(&self) -> Result<Permit, Refusal>;

    /// Does the same for a connection that was reported before this worker became full. If another worker has a place, this one exceeds
    /// its limit by one, as with a connection from the waiting room.
    fn late_permit(&self) -> Result<Permit, Refusal>;

    /// Adds a connection that was just accepted. If it cannot be watched, returns it with the error.
    fn admit(&self, accepted: Accepted<'_>, now: Millis) -> Result<(), (Link, Errno)>;

    /// Handles an event of a connection or a client. `scratch` is space to read into.
    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis);

    /// Called when a request may be in the waiting room. `signalled`: another worker leaves it to others.
    fn request_waits(&self, signalled: bool);

    /// Memory that all workers share; `None` for a single process.
    fn queues(&self) -> Option<&SharedQueues>;

    /// The queue of these connections, and the workers that take them; `None` for a single process.
    fn line(&self, kind: Migrating) -> Option<Line>;

    /// True if this worker takes over migrated connections or clients.
    fn admits(&self, kind: Migrating) -> bool;

    /// Takes over a migrated connection or client. Returns false if there is none, or it cannot be taken now.
    fn take_migrated(&self, kind: Migrating, now: Millis) -> bool;

    /// Longest time of a poll, while the worker drains and has connections to migrate.
    fn drain_pause(&self) -> Option<Duration>;

    /// True if there is data to read for which no event will come.
    fn has_more_to_read(&self) -> bool;

    /// Reads a part of that data.
    fn read_on(&self, scratch: &mut [u8], now: Millis);

    /// Handles expired deadlines; returns the time of the next call, which is not after `now` if there are more of them than one
    /// turn may handle.
    fn expire(&self, now: Millis) -> Millis;

    /// Called after the listeners have been emptied and closed, because the worker drains.
    fn listeners_closed(&self, now: Millis);

    /// Called after all events of the poll: continues connections that wait for a resource.
    fn end_of_turn(&self, now: Millis);

    /// Called after the poll: the jobs that it has added may run.
    fn polled(&self);
}

/// A connection that was just accepted.
pub(crate) struct Accepted<'a> {
    pub(crate) socket: OwnedFd,
    pub(crate) permit: Permit,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) endpoint: &'a Arc<Endpoint>,
}

impl Reactor {
    pub(crate) fn new(listeners: Vec<Listener>) -> Reactor {
        Reactor {
            accepting: Accepting::new(listeners),
            connections: Migrations::new(Migrating::Connections),
            clients: Migrations::new(Migrating::Clients),
            scratch: vec![0; SCRATCH_BYTES],
            excused_until: Millis::LONG_AGO,
            is_excusable: true,
            watches_room: false,
        }
    }

    /// One turn: waits for events, for at most `timeout` (`None`: until a timeout is due), and handles them.
    pub(crate) fn poll(&mut self, handler: &impl Handler, timeout: Option<Duration>) {
        let worker = handler.worker();
        let rest = shorter(self.accepting.end_rest(handler), self.connections.end_rest(handler));
        let rest = shorter(rest, self.clients.end_rest(handler));
        let rest = if worker.is_draining() {
            shorter(rest, handler.drain_pause())
        } else {
            rest
        };
        let timeout = if handler.has_more_to_read() {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        let blocking = timeout != Some(Duration::ZERO);
        let timeout = if blocking {
            worker.timer().sleep(timeout)
        } else {
            timeout
        };
        let timeout = shorter(timeout, rest);
        let mut space = EventBuffer::new();
        let waited = worker.poller.wait(&mut space, timeout);
        if blocking {
            worker.timer().awake();
        }
        let now = Millis::now();
        let dispatching = Dispatching::enter();
        match waited {
            Ok(events) => events.for_each(|event| {
                self.guard(handler, now, |reactor| {
                    reactor.dispatch(handler, event.token(), event.into(), now);
                });
            }),
            Err(error) => worker.log.error(format_args!("[BUG] cannot poll: {error}")),
        }
        self.guard(handler, now, |reactor| handler.read_on(&mut reactor.scratch, now));
        if worker.timer().is_due(now) {
            self.guard(handler, now, |reactor| reactor.expire(handler, now));
        }
        if worker.is_draining() {
            self.guard(handler, now, |reactor| reactor.drain(handler, now));
        }
        self.guard(handler, now, |_| handler.end_of_turn(now));
        drop(dispatching);
        handler.polled();
    }

    /// Runs one step of a turn. After a panic nothing is lost: timeouts are checked again, and the listeners pause, so
    /// that new connections do not fill the log.
    fn guard<H: Handler>(&mut self, handler: &H, now: Millis, code: impl FnOnce(&mut Reactor)) {
        if handler.worker().guard("a turn of the reactor", || code(self)).is_none() {
            handler.worker().expect(now + EXPIRY_STEP);
            self.accepting.pause(handler, now);
        }
    }

    fn dispatch(&mut self, handler: &impl Handler, event: u64, happened: Happened, now: Millis) {
        match event {
            token::WAKE => handler.worker().poller.drain_waker(),
            token::ROOM => handler.request_waits(false),
            token::SIGNAL => handler.request_waits(true),
            token::MIGRATION => self.connections.arrived(handler, now),
            token::CLIENTS => self.clients.arrived(handler, now),
            token::LAST_LISTENER..=token::LISTENER => {
                self.accepting
                    .accept(handler, (token::LISTENER - event) as usize, happened.ended, now);
            }
            key => handler.happened(key, happened, &mut self.scratch, now),
        }
    }

    fn expire(&mut self, handler: &impl Handler, now: Millis) {
        let timer = handler.worker().timer();
        if timer.lateness(now) > STOPPED && self.is_excusable {
            self.excused_until = now + GRACE;
            self.is_excusable = false;
        }
        timer.restart();
        handler.worker().fault("look for time-outs");
        let next = if now < self.excused_until {
            self.excused_until
        } else {
            self.is_excusable = true;
            match handler.expire(now) {
                next if next <= now => now,
                next => next.max(now + EXPIRY_STEP),
            }
        };
        timer.set_next(next);
    }

    fn drain(&mut self, handler: &impl Handler, now: Millis) {
        if self.accepting.drain(handler, now) {
            handler.listeners_closed(now);
        }
    }

    /// Removes the waiting room from the poll set, or adds it. A worker without a free thread must not be woken for it.
    pub(crate) fn watch_room(&mut self, room: &WaitingRoom, poller: &Poller, watch: bool) {
        if self.watches_room == watch {
            return;
        }
        if watch {
            // If it cannot be added now, the next poll tries again.
            self.watches_room = room.watch(poller).is_ok();
        } else {
            room.unwatch(poller);
            self.watches_room = false;
        }
    }

    /// Closes this worker's copies of the listening sockets; other workers continue with theirs.
    pub(crate) fn close_listeners(&mut self, handler: &impl Handler) {
        self.accepting.close(handler);
    }
}

/// Returns the shorter of two limits; `None` is no limit.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
