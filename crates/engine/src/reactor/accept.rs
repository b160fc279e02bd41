//! Accepting connections: watches the listeners, and refuses connections for which there is no place.

use super::accept_order::AcceptOrder;
use super::{Accepted, Handler};
use crate::clock::{Millis, Nanos};
use crate::transport::listener::{refuse, Incoming, Listener, Reserve};
use crate::transport::poller::token;
use rustix::io::Errno;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Connections accepted before other events get their turn, in a process without other workers.
const ACCEPTS_ALONE: usize = 32;

/// How long the listeners rest after the machine had no descriptor left even for a refusal, a listener could not be
/// watched, or a turn of the reactor panicked.
const PAUSE: Duration = Duration::from_millis(100);

/// Minimum pause between two log lines.
const QUIET: Duration = Duration::from_secs(1);

pub(super) struct Accepting {
    /// Empty once draining has begun.
    listeners: Vec<Listener>,
    /// Indices of the listeners that are not in the poll set.
    resting: Vec<usize>,
    accept_order: AcceptOrder,
    /// No listener comes back before this time.
    paused_until: Option<Millis>,
    reserve: Reserve,
    /// No other line is logged before this time.
    quiet_until: Millis,
}

impl Accepting {
    /// None of the listeners is in the poll set yet.
    pub(super) fn new(listeners: Vec<Listener>) -> Accepting {
        Accepting {
            resting: (0..listeners.len()).collect(),
            listeners,
            accept_order: AcceptOrder::default(),
            paused_until: None,
            reserve: Reserve::default(),
            quiet_until: Millis::LONG_AGO,
        }
    }

    /// Puts the resting listeners back into the poll set, or returns how long they still rest. Called before each poll.
    pub(super) fn end_rest(&mut self, handler: &impl Handler) -> Option<Duration> {
        self.reserve.hold();
        if self.resting.is_empty() {
            return None;
        }
        if let Some(until) = self.paused_until {
            let left = until - Millis::now();
            if !left.is_zero() {
                return Some(left);
            }
            self.paused_until = None;
        }
        if let Some(left) = self.accept_order.rest(Nanos::now, || handler.is_ahead()) {
            return Some(left);
        }
        let resting = std::mem::take(&mut self.resting);
        resting.into_iter().for_each(|index| self.watch(handler, index));
        self.paused_until.map(|_| PAUSE)
    }

    /// Puts a listener into the poll set. If that fails, logs it and lets the listener rest for a while.
    fn watch(&mut self, handler: &impl Handler, index: usize) {
        let Some(listener) = self.listeners.get(index) else {
            return;
        };
        let watched = if handler.worker().fault("watch a listener") {
            Err(Errno::NOSPC)
        } else {
            handler
                .worker()
                .poller
                .add_shared(listener.socket(), token::LISTENER - index as u64)
        };
        match watched {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => {
                self.resting.push(index);
                let now = Millis::now();
                self.paused_until = Some(now + PAUSE);
                self.log(
                    handler,
                    now,
                    format_args!("cannot watch a listener ({error}); it is tried again"),
                );
            }
        }
    }

    /// Accepts connections that wait at a listener.
    pub(super) fn accept(&mut self, handler: &impl Handler, index: usize, now: Millis) {
        if handler.has_siblings() {
            self.accept_some(handler, index, 1, now);
            self.step_out(handler, index);
        } else {
            self.accept_some(handler, index, ACCEPTS_ALONE, now);
        }
    }

    fn accept_some(&mut self, handler: &impl Handler, index: usize, most: usize, now: Millis) {
        for _ in 0..most {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            handler.worker().fault("accept");
            match listener.accept() {
                Incoming::Connection(socket, peer) => {
                    let permit = match handler.permit() {
                        Ok(permit) => permit,
                        Err(reason) => {
                            refuse(&socket, listener.refusal());
                            self.complain(handler, now, reason);
                            continue;
                        }
                    };
                    let (endpoint, refusal) = (listener.endpoint(), listener.refusal());
                    let accepted = Accepted {
                        socket,
                        permit,
                        peer,
                        endpoint,
                    };
                    if let Err((transport, error)) = handler.admit(accepted, now) {
                        refuse(&transport, refusal);
                        self.complain(handler, now, &error.to_string());
                    }
                }
                Incoming::Nobody => return,
                Incoming::OutOfResources(error) => {
                    if !self.reserve.refuse_one(listener) {
                        self.pause(handler, now);
                    }
                    return self.complain(handler, now, &error.to_string());
                }
            }
        }
    }

    /// Removes a listener from the poll set, so that this worker loses its place among those that wait for it.
    fn step_out(&mut self, handler: &impl Handler, index: usize) {
        let Some(listener) = self.listeners.get(index) else {
            return;
        };
        if self.paused_until.is_none() {
            handler.worker().poller.remove(listener.socket());
            self.resting.push(index);
            self.accept_order.accepted(Nanos::now(), || handler.is_ahead());
        }
    }

    fn complain(&mut self, handler: &impl Handler, now: Millis, reason: &str) {
        handler.worker().counters().refused_connections.fetch_add(1, Relaxed);
        let total = handler.worker().counters().refused_connections.load(Relaxed);
        self.log(
            handler,
            now,
            format_args!("refused 503 a connection ({reason}); {total} so far"),
        );
    }

    /// At most one line a second: a client that takes all descriptors must not fill the disk as well.
    fn log(&mut self, handler: &impl Handler, now: Millis, line: std::fmt::Arguments<'_>) {
        if now >= self.quiet_until {
            self.quiet_until = now + QUIET;
            handler.worker().log.error(line);
        }
    }

    /// Takes all listeners out of the poll set for a while.
    pub(super) fn pause(&mut self, handler: &impl Handler, now: Millis) {
        self.paused_until = Some(now + PAUSE);
        self.listeners
            .iter()
            .for_each(|listener| handler.worker().poller.remove(listener.socket()));
        self.resting = (0..self.listeners.len()).collect();
    }

    /// Accepts all connections in the backlog, because the kernel has already accepted them. Then closes the listeners,
    /// so that the kernel refuses further ones. False if that was done before.
    pub(super) fn drain(&mut self, handler: &impl Handler, now: Millis) -> bool {
        if self.listeners.is_empty() {
            return false;
        }
        if !handler.worker().is_stopped() {
            (0..self.listeners.len()).for_each(|index| self.accept_some(handler, index, usize::MAX, now));
        }
        self.close(handler);
        true
    }

    /// Closes this worker's copies of the listening sockets; other workers continue with theirs.
    pub(super) fn close(&mut self, handler: &impl Handler) {
        self.resting.clear();
        self.paused_until = None;
        for listener in self.listeners.drain(..) {
            handler.worker().poller.remove(listener.socket());
        }
    }
}
