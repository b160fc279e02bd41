//! The reactor: polls, accepts, reads and flushes, and lets go what is overdue. Whoever holds it is the poller; it knows
//! nothing of the app, so a thread without the language's lock can run it.

use crate::clock::{milliseconds, nanoseconds};
use crate::connection::Next;
use crate::engine::Engine;
use crate::holding::NEVER;
use crate::listener::{refuse, Accepted, Listener, Reserve};
use crate::poller::{events, token, Happened, Poller};
use crate::ready::Job;
use crate::realtime::is_client;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Bytes read at a time. One buffer for all: what arrives is copied into the connection at its true size.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Connections accepted before others get their turn, where no other worker waits for them.
const ACCEPTS_ALONE: usize = 32;

/// How long a worker leaves the next connection to one that has fewer.
const COURTESY: Duration = Duration::from_millis(1);

/// Connections that are accepted without courtesy after one has waited all that time and nobody else has taken it: twice as
/// many each time, up to this. The other worker may hang.
const UNCEREMONIOUS: u32 = 64;

/// A connection that is there so soon after the rest has waited during it.
const AT_ONCE: Duration = Duration::from_micros(50);

/// Pause after the machine had no descriptor left even for a refusal.
const ACCEPT_PAUSE_MILLISECONDS: u64 = 100;

/// Time-outs are looked at no more often than this.
const EXPIRY_STEP_MILLISECONDS: u64 = 50;

/// Sent to a client for whom there is no place.
const NO_PLACE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

pub(crate) struct Reactor {
    /// Empty once draining has begun.
    listeners: Vec<Listener>,
    scratch: Vec<u8>,
    reserve: Reserve,
    /// Listeners that were taken out of the poll set after an accept, to come back at the end of the line.
    resting: Vec<usize>,
    /// Nanoseconds until which they rest, because another worker has fewer connections; 0 when there is no such time.
    courteous_until: u64,
    /// Nanoseconds until which a connection shows that such a rest was in vain.
    in_vain_until: u64,
    /// Connections still to be accepted without courtesy, and how many it was the last time.
    unceremonious: u32,
    last_unceremonious: u32,
    /// When listeners that were taken out of the poll set come back, in milliseconds.
    resume_at: Option<u64>,
    /// Milliseconds before which no other complaint about descriptors is logged.
    quiet_until: u64,
    /// Whether the waiting room is in the poll set.
    in_room: bool,
}

/// When the next time-out is due. Threads that park connections write it, the poller reads it.
pub(crate) struct Timer {
    /// A lower bound of all deadlines, in milliseconds.
    earliest: AtomicU64,
    /// When the poller that waits now will look; 0 while nobody waits.
    looks_at: AtomicU64,
}

impl Default for Timer {
    fn default() -> Self {
        Timer {
            earliest: AtomicU64::new(NEVER),
            looks_at: AtomicU64::new(0),
        }
    }
}

impl Timer {
    /// Makes sure that somebody looks at `deadline`. The usual case, a deadline later than others, is one load.
    pub(crate) fn expect(&self, deadline: u64, poller: &Poller) {
        if deadline < self.earliest.load(Relaxed) {
            self.earliest.fetch_min(deadline, SeqCst);
            if deadline < self.looks_at.load(SeqCst) {
                poller.wake();
            }
        }
    }

    /// How long a wait may last; to be ended by [`Timer::awake`].
    fn sleep(&self, most: Option<Duration>) -> Option<Duration> {
        let now = milliseconds();
        let mut until = self.earliest.load(SeqCst);
        self.looks_at.store(until, SeqCst);
        // A deadline may have come in between; whoever set it saw no waiting poller.
        until = until.min(self.earliest.load(SeqCst));
        let own = (until != NEVER).then(|| Duration::from_millis(until.saturating_sub(now) + 1));
        match (own, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        }
    }

    fn awake(&self) {
        self.looks_at.store(0, SeqCst);
    }
}

thread_local! {
    static IN_REACTOR: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the one that deals with events: it sees what it adds to the ready queue when it is done.
struct InReactor;

impl InReactor {
    fn enter() -> InReactor {
        IN_REACTOR.set(true);
        InReactor
    }
}

impl Drop for InReactor {
    fn drop(&mut self) {
        IN_REACTOR.set(false);
    }
}

/// Whether this thread deals with events right now.
pub(crate) fn is_in_reactor() -> bool {
    IN_REACTOR.get()
}

impl Reactor {
    pub(crate) fn new(listeners: Vec<Listener>) -> Reactor {
        Reactor {
            listeners,
            scratch: vec![0; SCRATCH_BYTES],
            reserve: Reserve::default(),
            resting: Vec::new(),
            courteous_until: 0,
            in_vain_until: 0,
            unceremonious: 0,
            last_unceremonious: 0,
            resume_at: None,
            quiet_until: 0,
            in_room: true,
        }
    }

    /// One turn: waits for events, at the most for `timeout` (`None`: until a time-out is due), and deals with them.
    pub(crate) fn poll(&mut self, engine: &Engine, timeout: Option<Duration>) {
        self.reserve.hold();
        let rest = self.end_rest(engine);
        let blocking = timeout != Some(Duration::ZERO);
        let timeout = if blocking { engine.timer.sleep(timeout) } else { timeout };
        let timeout = rest.map_or(timeout, |rest| Some(timeout.map_or(rest, |timeout| timeout.min(rest))));
        let mut space = events();
        let waited = engine.poller.wait(&mut space, timeout);
        if blocking {
            engine.timer.awake();
        }
        let now = milliseconds();
        let in_reactor = InReactor::enter();
        match waited {
            Ok(events) => events
                .iter()
                .for_each(|event| self.dispatch(engine, event.data.u64(), event.flags.into(), now)),
            Err(error) => engine.journal.error(format_args!("[BUG] cannot poll: {error}")),
        }
        if engine.timer.earliest.load(Relaxed) <= now {
            self.expire(engine, now);
        }
        self.look_after_listeners(engine, now);
        drop(in_reactor);
        engine.pace.polled(engine.ready.len());
    }

    fn dispatch(&mut self, engine: &Engine, event: u64, happened: Happened, now: u64) {
        match event {
            token::WAKE => engine.poller.drain_waker(),
            token::ROOM => {
                if let Some(connection) = engine.move_in() {
                    engine.ready.push(Job::Request(connection));
                }
            }
            token::LAST_LISTENER..=token::LISTENER => {
                let index = (token::LISTENER - event) as usize;
                if engine.has_siblings() {
                    self.accept(engine, index, 1, now);
                    self.rest(engine, index);
                } else {
                    self.accept(engine, index, ACCEPTS_ALONE, now);
                }
            }
            key if is_client(key) => self.serve_client(engine, key, happened, now),
            key => {
                let mut holding = engine.holding.lock();
                let Some(mut connection) = holding.take(key, &engine.poller) else {
                    return;
                };
                if connection.input.capacity() == 0 {
                    connection.input = holding.spare_buffer();
                    connection.output.set_buffer(holding.spare_buffer());
                }
                drop(holding);
                let scratch = &mut self.scratch;
                let step = AssertUnwindSafe(|| connection.step(scratch, &engine.config, now));
                match catch_unwind(step) {
                    Ok(next) => engine.settle(connection, next),
                    Err(_) => {
                        engine
                            .journal
                            .error(format_args!("[BUG] a connection made the reactor panic; it is closed"));
                        engine.close(connection);
                    }
                }
            }
        }
    }

    fn serve_client(&mut self, engine: &Engine, key: u64, happened: Happened, now: u64) {
        let Some(client) = engine.clients.get(key) else { return };
        let scratch = &mut self.scratch;
        let step = AssertUnwindSafe(|| {
            if happened.writable {
                client.writable();
            }
            if happened.readable && client.read(scratch, engine, now) {
                engine.ready.push(Job::Client(Arc::clone(&client)));
            }
        });
        if catch_unwind(step).is_err() {
            engine
                .journal
                .error(format_args!("[BUG] a client made the reactor panic; it is closed"));
            client.end();
        }
    }

    fn accept(&mut self, engine: &Engine, index: usize, most: usize, now: u64) {
        for _ in 0..most {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            match listener.accept() {
                Accepted::Connection(socket, peer) => {
                    let connections = engine.counters().connections.load(Relaxed);
                    if connections >= engine.config.max_connections as i64 {
                        refuse(&socket, NO_PLACE);
                        self.complain(engine, now, "max_connections are open");
                    } else {
                        engine.welcome(socket, peer, listener.origin(), now);
                    }
                }
                Accepted::Nobody => return,
                Accepted::OutOfResources(error) => {
                    if !self.reserve.refuse_one(listener, NO_PLACE) {
                        self.pause(engine, now);
                    }
                    return self.complain(engine, now, &error.to_string());
                }
            }
        }
    }

    /// The kernel wakes the first worker in line, and always the same one if the line never moves. A worker that has
    /// accepted steps out of it, and joins its end before it waits again; a little later if another one has fewer
    /// connections, since a worker that runs already would take a whole burst before those that sleep are awake.
    fn rest(&mut self, engine: &Engine, index: usize) {
        if let (Some(listener), None) = (self.listeners.get(index), self.resume_at) {
            engine.poller.remove(listener.socket());
            self.resting.push(index);
            let now = nanoseconds();
            if now < self.in_vain_until {
                self.last_unceremonious = (self.last_unceremonious * 2).clamp(1, UNCEREMONIOUS);
                self.unceremonious = self.last_unceremonious;
                self.in_vain_until = 0;
            }
            if self.unceremonious > 0 {
                self.unceremonious -= 1;
            } else if engine.is_ahead() {
                self.courteous_until = now + COURTESY.as_nanos() as u64;
            }
        }
    }

    /// Puts the listeners that rest back in line, or says how long they still rest.
    fn end_rest(&mut self, engine: &Engine) -> Option<Duration> {
        if self.courteous_until > 0 {
            let now = nanoseconds();
            let left = self.courteous_until.saturating_sub(now);
            let is_ahead = engine.is_ahead();
            if left > 0 && is_ahead {
                return Some(Duration::from_nanos(left));
            }
            self.courteous_until = 0;
            if is_ahead {
                self.in_vain_until = now + AT_ONCE.as_nanos() as u64;
            } else {
                self.last_unceremonious = 0;
            }
        }
        for index in self.resting.drain(..) {
            if let Some(listener) = self.listeners.get(index) {
                let _ = engine
                    .poller
                    .add_shared(listener.socket(), token::LISTENER - index as u64);
            }
        }
        None
    }

    /// One line a second at the most: whoever takes our descriptors must not fill the disk as well.
    fn complain(&mut self, engine: &Engine, now: u64, reason: &str) {
        engine.counters().refused_connections.fetch_add(1, Relaxed);
        if now >= self.quiet_until {
            self.quiet_until = now + 1_000;
            let total = engine.counters().refused_connections.load(Relaxed);
            engine
                .journal
                .error(format_args!("refused 503 a connection ({reason}); {total} so far"));
        }
    }

    fn pause(&mut self, engine: &Engine, now: u64) {
        let resume_at = now + ACCEPT_PAUSE_MILLISECONDS;
        if self.resume_at.replace(resume_at).is_none() {
            self.listeners
                .iter()
                .for_each(|listener| engine.poller.remove(listener.socket()));
        }
        engine.timer.expect(resume_at, &engine.poller);
    }

    fn look_after_listeners(&mut self, engine: &Engine, now: u64) {
        if engine.is_draining() {
            self.drain_listeners(engine, now);
        } else if self.resume_at.is_some_and(|resume_at| resume_at <= now) {
            self.resume_at = None;
            for (index, listener) in self.listeners.iter().enumerate() {
                let _ = engine
                    .poller
                    .add_shared(listener.socket(), token::LISTENER - index as u64);
            }
        }
    }

    /// What the kernel has accepted for us is ours to answer; then the listeners are closed, so that it refuses the others.
    fn drain_listeners(&mut self, engine: &Engine, now: u64) {
        if self.listeners.is_empty() {
            return;
        }
        if !engine.is_stopped() {
            (0..self.listeners.len()).for_each(|index| self.accept(engine, index, usize::MAX, now));
        }
        self.close_listeners(engine);
        engine.hurry_idle_connections(now);
        engine.finish_if_drained();
    }

    /// Lets go of the listening sockets; other workers that have them go on.
    pub(crate) fn close_listeners(&mut self, engine: &Engine) {
        self.resume_at = None;
        self.resting.clear();
        for listener in self.listeners.drain(..) {
            engine.poller.remove(listener.socket());
        }
    }

    fn expire(&mut self, engine: &Engine, now: u64) {
        // Deadlines that are set from here on count from scratch, so that none is forgotten while this thread looks.
        engine.timer.earliest.store(NEVER, SeqCst);
        let (expired, earliest) = engine.holding.lock().take_expired(now);
        let next = earliest
            .min(self.resume_at.unwrap_or(NEVER))
            .min(engine.clients.tick(engine, now))
            .max(now + EXPIRY_STEP_MILLISECONDS);
        engine.timer.earliest.fetch_min(next, SeqCst);
        for mut connection in expired {
            let was_flushing = connection.is_flushing();
            let next = connection.expire(&engine.config, now);
            if was_flushing && next == Next::Close {
                engine.tell_of_slow_client();
            }
            engine.settle(connection, next);
        }
    }

    /// Takes the waiting room out of the poll set, or back in: a worker with no thread to spare must not look into it.
    pub(crate) fn watch_room(&mut self, engine: &Engine, watch: bool) {
        let Some(room) = &engine.room else { return };
        if std::mem::replace(&mut self.in_room, watch) == watch {
            return;
        }
        if watch {
            let _ = engine.poller.add_shared(room.receiver(), token::ROOM);
        } else {
            engine.poller.remove(room.receiver());
        }
    }
}
