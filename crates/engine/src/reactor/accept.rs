//! Accepts connections: watches the listeners, and refuses connections for which there is no slot.

use super::accept_order::AcceptOrder;
use super::full_worker::FullWorker;
use super::{Accepted, Handler};
use crate::clock::{Millis, Nanos};
use crate::http::refusal::Refusal;
use crate::limits::descriptors::Permit;
use crate::transport::listener::{refuse, Incoming, Listener, Reserve};
use crate::transport::poller::token;
use rustix::io::Errno;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Connections accepted before other events get their turn, in a process without other workers.
const ACCEPTS_ALONE: usize = 128;

/// Time for which the listeners rest after the machine had no descriptor left even for a refusal, a listener could not
/// be watched, or a turn of the reactor panicked.
const PAUSE: Duration = Duration::from_millis(100);

/// Minimum pause between two log lines.
const QUIET: Duration = Duration::from_secs(1);

pub(super) struct Accepting {
    /// Empty once draining has begun. `None` for a listener that was shut down elsewhere.
    listeners: Vec<Option<Listener>>,
    /// Indices of the listeners that are not in the poll set.
    resting: Vec<usize>,
    accept_order: AcceptOrder,
    full_worker: FullWorker,
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
            listeners: listeners.into_iter().map(Some).collect(),
            accept_order: AcceptOrder::default(),
            full_worker: FullWorker::default(),
            paused_until: None,
            reserve: Reserve::default(),
            quiet_until: Millis::LONG_AGO,
        }
    }

    /// Puts the resting listeners back into the poll set, or returns their remaining rest. Called before each poll.
    pub(super) fn end_rest(&mut self, handler: &impl Handler) -> Option<Duration> {
        self.reserve.hold();
        if let Some(until) = self.paused_until {
            let left = until - Millis::now();
            if !left.is_zero() {
                return Some(left);
            }
            self.paused_until = None;
        }
        if self.leaves_to_others(handler) {
            return Some(self.look(handler));
        }
        if self.resting.is_empty() {
            return None;
        }
        if let Some(left) = self.accept_order.rest(Nanos::now, || handler.is_ahead()) {
            return Some(left);
        }
        let resting = std::mem::take(&mut self.resting);
        resting.into_iter().for_each(|index| self.watch(handler, index));
        self.paused_until.map(|_| PAUSE)
    }

    /// True if a worker with a place is to accept the next connection: this one is full, or has no descriptor left.
    fn leaves_to_others(&self, handler: &impl Handler) -> bool {
        let waits = self.paused_until.is_none() && handler.has_siblings() && !self.listeners.is_empty();
        waits && (handler.is_full() || !self.reserve.is_held())
    }

    /// Looks if connections wait, or returns the time until the next look. The listeners are not in the poll set meanwhile.
    fn look(&mut self, handler: &impl Handler) -> Duration {
        if self.resting.len() < self.listeners.len() {
            self.rest(handler);
        }
        let now = Millis::now();
        if let Some(left) = self.full_worker.pause(now) {
            return left;
        }
        let has_connection = |index: &usize| self.listener(*index).is_some_and(Listener::has_connection);
        let waiting: Vec<usize> = (0..self.listeners.len()).filter(has_connection).collect();
        if self
            .full_worker
            .refuses(!waiting.is_empty(), handler.accepted_elsewhere())
        {
            for index in waiting {
                self.accept_some(handler, index, ACCEPTS_ALONE, Handler::permit, now);
            }
        }
        self.full_worker.pause(now).unwrap_or_default()
    }

    /// Puts a listener into the poll set. If that fails, logs it and lets the listener rest for a while.
    fn watch(&mut self, handler: &impl Handler, index: usize) {
        let Some(listener) = self.listener(index) else {
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
                    format_args!("cannot watch a listener ({error}); trying again"),
                );
            }
        }
    }

    /// Accepts connections that wait at a listener. `ended`: it was shut down elsewhere.
    pub(super) fn accept(&mut self, handler: &impl Handler, index: usize, ended: bool, now: Millis) {
        if self.leaves_to_others(handler) {
            // It has become full since the poll began. The kernel may have woken no other worker for this connection.
            self.accept_some(handler, index, 1, Handler::late_permit, now);
            return self.rest(handler);
        }
        let has_siblings = handler.has_siblings();
        let most = if has_siblings { 1 } else { ACCEPTS_ALONE };
        let is_empty = self.accept_some(handler, index, most, Handler::permit, now);
        if ended && is_empty {
            self.forget(handler, index);
        } else if has_siblings {
            self.step_out(handler, index);
        }
    }

    fn listener(&self, index: usize) -> Option<&Listener> {
        self.listeners.get(index)?.as_ref()
    }

    /// Accepts at most `most` connections. Returns true if no more are waiting.
    fn accept_some<H: Handler>(
        &mut self,
        handler: &H,
        index: usize,
        most: usize,
        permit: impl Fn(&H) -> Result<Permit, Refusal>,
        now: Millis,
    ) -> bool {
        for _ in 0..most {
            let Some(listener) = self.listeners.get(index).and_then(Option::as_ref) else {
                return true;
            };
            handler.worker().fault("accept");
            match listener.accept() {
                Incoming::Connection(socket, peer) => {
                    if let Err((refusal, reason)) = welcome(handler, listener, socket, peer, permit(handler), now) {
                        self.complain(handler, now, refusal, &reason);
                    }
                }
                Incoming::Nobody => return true,
                Incoming::OutOfResources(error) => {
                    self.accept_without_descriptor(handler, index, error, now);
                    return false;
                }
            }
        }
        false
    }

    /// Takes the next connection, for which no descriptor is free. If another worker has a place, this one serves the connection nevertheless,
    /// because the kernel may have woken no other one for it, and then counts as full. Otherwise refuses it.
    fn accept_without_descriptor(&mut self, handler: &impl Handler, index: usize, error: Errno, now: Millis) {
        let Some(listener) = self.listeners.get(index).and_then(Option::as_ref) else {
            return;
        };
        let taken = match handler.has_siblings() && handler.accepted_elsewhere().is_some() {
            true => self.reserve.accept_one(listener),
            false => None,
        };
        let outcome = match taken {
            Some((socket, peer)) => welcome(handler, listener, socket, peer, handler.late_permit(), now),
            None if self.reserve.refuse_one(listener) => Err((Refusal::NoDescriptor, error.to_string().into())),
            None => {
                self.pause(handler, now);
                return self.log(
                    handler,
                    now,
                    format_args!("cannot accept a connection ({error}); trying again"),
                );
            }
        };
        match outcome {
            Ok(()) => self.log(
                handler,
                now,
                format_args!("leaving connections to other workers ({error})"),
            ),
            Err((refusal, reason)) => self.complain(handler, now, refusal, &reason),
        }
    }

    /// Closes a listener that was shut down elsewhere: the poller would always report it as readable.
    fn forget(&mut self, handler: &impl Handler, index: usize) {
        if let Some(listener) = self.listeners.get_mut(index).and_then(Option::take) {
            handler.worker().poller.remove(listener.socket());
        }
    }

    /// Removes a listener from the poll set, so that this worker moves to the end of the kernel's queue for it.
    fn step_out(&mut self, handler: &impl Handler, index: usize) {
        let Some(listener) = self.listener(index) else {
            return;
        };
        if self.paused_until.is_none() {
            handler.worker().poller.remove(listener.socket());
            self.resting.push(index);
            self.accept_order.accepted(Nanos::now(), || handler.is_ahead());
        }
    }

    fn complain(&mut self, handler: &impl Handler, now: Millis, refusal: Refusal, reason: &str) {
        handler.worker().count_refusal(refusal);
        handler.worker().counters().refused_connections.fetch_add(1, Relaxed);
        let total = handler.worker().counters().refused_connections.load(Relaxed);
        self.log(
            handler,
            now,
            format_args!("refused 503 a connection ({reason}); {total} so far"),
        );
    }

    /// Logs at most one line a second: a client that takes all descriptors must not fill the disk as well.
    fn log(&mut self, handler: &impl Handler, now: Millis, line: std::fmt::Arguments<'_>) {
        if now >= self.quiet_until {
            self.quiet_until = now + QUIET;
            handler.worker().log.error(line);
        }
    }

    /// Takes all listeners out of the poll set for a while.
    pub(super) fn pause(&mut self, handler: &impl Handler, now: Millis) {
        self.paused_until = Some(now + PAUSE);
        self.rest(handler);
    }

    /// Takes all listeners out of the poll set.
    fn rest(&mut self, handler: &impl Handler) {
        let open = self.listeners.iter().flatten();
        open.for_each(|listener| handler.worker().poller.remove(listener.socket()));
        self.resting = (0..self.listeners.len()).collect();
    }

    /// Accepts all connections in the backlog, because the kernel has already accepted them. Then closes the listeners,
    /// so that the kernel refuses further ones. Returns false if they were closed before.
    pub(super) fn drain(&mut self, handler: &impl Handler, now: Millis) -> bool {
        if self.listeners.is_empty() {
            return false;
        }
        if !handler.worker().is_stopped() {
            (0..self.listeners.len()).for_each(|index| self.empty(handler, index, now));
        }
        self.close(handler);
        true
    }

    /// Accepts all connections in the backlog of a listener, or as many as this worker has places for if others go on. Shuts down
    /// a listener that ends with this worker. If connections are left in the backlog, the workers that can accept them do so.
    fn empty(&mut self, handler: &impl Handler, index: usize, now: Millis) {
        let Some(listener) = self.listener(index) else {
            return;
        };
        let ends = handler.worker().ends_listener(listener);
        if ends && listener.keeps_backlog() {
            listener.shut_down();
        }
        let most = match ends || !handler.has_siblings() {
            true => usize::MAX,
            false => handler.free_places(),
        };
        let is_empty = self.accept_some(handler, index, most, Handler::permit, now);
        if let Some(listener) = self.listener(index).filter(|_| ends) {
            if is_empty || !handler.has_siblings() {
                listener.abort();
            }
        }
    }

    /// Closes this worker's copies of the listening sockets; other workers continue with theirs. A stopped engine also
    /// shuts down the listeners that end with it.
    pub(super) fn close(&mut self, handler: &impl Handler) {
        self.resting.clear();
        self.paused_until = None;
        for listener in self.listeners.drain(..).flatten() {
            handler.worker().poller.remove(listener.socket());
            if handler.worker().is_stopped() && handler.worker().ends_listener(&listener) {
                listener.abort();
            }
        }
    }
}

/// Takes over a connection that has just been accepted, or refuses it and returns the reason.
fn welcome(
    handler: &impl Handler,
    listener: &Listener,
    socket: OwnedFd,
    peer: Option<SocketAddr>,
    permit: Result<Permit, Refusal>,
    now: Millis,
) -> Result<(), (Refusal, Cow<'static, str>)> {
    handler.worker().counters().accepted.fetch_add(1, Relaxed);
    let permit = permit.map_err(|refusal| {
        refuse(&socket, listener.refusal());
        (refusal, refusal.reason().into())
    })?;
    let accepted = Accepted {
        socket,
        permit,
        peer,
        endpoint: listener.endpoint(),
    };
    handler.admit(accepted, now).map_err(|(transport, error)| {
        refuse(&transport, listener.refusal());
        (Refusal::NoDescriptor, error.to_string().into())
    })
}
