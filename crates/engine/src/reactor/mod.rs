//! The reactor: polls, accepts, and has dealt with what has happened and what is overdue. Whoever holds it is the poller; it knows
//! nothing of the app, so a thread without the language's lock can run it. What connections and clients are is not known here:
//! see [`Handler`].

mod accept;
mod accept_order;

use crate::clock::Millis;
use crate::cluster::waiting_room::WaitingRoom;
use crate::limits::descriptors::Permit;
use crate::transport::listener::{Listener, Origin};
use crate::transport::poller::{events, token, Dispatching, Happened, Key, Poller};
use crate::transport::Link;
use crate::worker::Worker;
use accept::Accepting;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Bytes read at a time. One buffer for all: what arrives is copied into the connection at its true size.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Time-outs are looked at no more often than this.
const EXPIRY_STEP: Duration = Duration::from_millis(50);

pub(crate) struct Reactor {
    accepting: Accepting,
    scratch: Vec<u8>,
    /// Whether the waiting room is in the poll set.
    watches_room: bool,
}

/// Who deals with what the reactor sees..
pub(crate) trait Handler {
    fn worker(&self) -> &Worker;

    /// Whether other workers wait for the same listeners.
    fn has_siblings(&self) -> bool;

    /// Whether another worker has fewer connections than this one.
    fn is_ahead(&self) -> bool;

    /// A permit for one more connection that is accepted, or why there is none.
    fn permit(&self) -> Result<Permit, &'static str>;

    /// Takes in a connection that was just accepted. One that cannot be watched comes back.
    fn admit(&self, accepted: Accepted<'_>, now: Millis) -> Result<(), (Link, Errno)>;

    /// Something has happened on a connection or to a client. `scratch` is space to read to.
    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis);

    /// Somebody may wait in the waiting room. `signalled`: a worker that leaves him to others says so.
    fn transfer_waits(&self, signalled: bool);

    /// Whether there is something to read on which no event speaks of.
    fn has_more_to_read(&self) -> bool;

    /// Reads some of that on.
    fn read_on(&self, scratch: &mut [u8], now: Millis);

    /// Looks after what is overdue; returns when to do so again.
    fn expire(&self, now: Millis) -> Millis;

    /// The listeners have been emptied and closed, because the worker drains.
    fn listeners_closed(&self, now: Millis);

    /// Everything that has happened was dealt with: what waits for room is looked after.
    fn end_of_turn(&self, now: Millis);

    /// The poll is over: what it has brought may run.
    fn polled(&self);
}

/// A connection that was accepted.
pub(crate) struct Accepted<'a> {
    pub(crate) socket: OwnedFd,
    pub(crate) permit: Permit,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) origin: &'a Arc<Origin>,
}

impl Reactor {
    pub(crate) fn new(listeners: Vec<Listener>) -> Reactor {
        Reactor {
            accepting: Accepting::new(listeners),
            scratch: vec![0; SCRATCH_BYTES],
            watches_room: false,
        }
    }

    /// One turn: waits for events, at the most for `timeout` (`None`: until a time-out is due), and deals with them.
    pub(crate) fn poll(&mut self, handler: &impl Handler, timeout: Option<Duration>) {
        let worker = handler.worker();
        let rest = self.accepting.end_rest(handler);
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
        let timeout = rest.map_or(timeout, |rest| Some(timeout.map_or(rest, |timeout| timeout.min(rest))));
        let mut space = events();
        let waited = worker.poller.wait(&mut space, timeout);
        if blocking {
            worker.timer().awake();
        }
        let now = Millis::now();
        let dispatching = Dispatching::enter();
        match waited {
            Ok(events) => events.iter().for_each(|event| {
                self.guard(handler, now, |reactor| {
                    reactor.dispatch(handler, event.data.u64(), event.flags.into(), now);
                });
            }),
            Err(error) => worker.log.error(format_args!("[BUG] cannot poll: {error}")),
        }
        self.guard(handler, now, |reactor| handler.read_on(&mut reactor.scratch, now));
        if worker.timer().is_due(now) {
            self.guard(handler, now, |_| expire(handler, now));
        }
        if worker.is_draining() {
            self.guard(handler, now, |reactor| reactor.drain(handler, now));
        }
        self.guard(handler, now, |_| handler.end_of_turn(now));
        drop(dispatching);
        handler.polled();
    }

    /// One of the things to deal with. After a panic nothing is forgotten: what is due is looked for again, and the listeners
    /// pause, so that whatever comes in does not fill the log.
    fn guard<H: Handler>(&mut self, handler: &H, now: Millis, code: impl FnOnce(&mut Reactor)) {
        if handler.worker().guard("a turn of the reactor", || code(self)).is_none() {
            handler.worker().expect(now + EXPIRY_STEP);
            self.accepting.pause(handler, now);
        }
    }

    fn dispatch(&mut self, handler: &impl Handler, event: u64, happened: Happened, now: Millis) {
        match event {
            token::WAKE => handler.worker().poller.drain_waker(),
            token::ROOM => handler.transfer_waits(false),
            token::SIGNAL => handler.transfer_waits(true),
            token::LAST_LISTENER..=token::LISTENER => {
                self.accepting.accept(handler, (token::LISTENER - event) as usize, now);
            }
            key => handler.happened(key, happened, &mut self.scratch, now),
        }
    }

    fn drain(&mut self, handler: &impl Handler, now: Millis) {
        if self.accepting.drain(handler, now) {
            handler.listeners_closed(now);
        }
    }

    /// Takes the waiting room out of the poll set, or back in: a worker with no thread to spare must not look into it.
    pub(crate) fn watch_room(&mut self, room: &WaitingRoom, poller: &Poller, watch: bool) {
        if self.watches_room == watch {
            return;
        }
        if watch {
            // What cannot be added now is tried before the next poll.
            self.watches_room = room.watch(poller).is_ok();
        } else {
            room.unwatch(poller);
            self.watches_room = false;
        }
    }

    /// Lets go of the listening sockets; other workers that have them go on.
    pub(crate) fn close_listeners(&mut self, handler: &impl Handler) {
        self.accepting.close(handler);
    }
}

fn expire(handler: &impl Handler, now: Millis) {
    let timer = handler.worker().timer();
    timer.restart();
    handler.worker().fault("look for time-outs");
    let next = handler.expire(now).max(now + EXPIRY_STEP);
    timer.set_next(next);
}
