//! The reactor: polls, reads and flushes, and lets go what is overdue. Whoever holds it is the poller; it knows
//! nothing of the app, so a thread without the language's lock can run it.

pub(crate) mod accept;
pub(crate) mod accept_order;
pub(crate) mod file_sender;
pub(crate) mod listener;
pub(crate) mod parked;
pub(crate) mod poller;

use crate::clock::milliseconds;
use crate::connection::Next;
use crate::engine::Engine;
use crate::reactor::accept::Accepting;
use crate::reactor::listener::Listener;
use crate::reactor::parked::NEVER;
use crate::reactor::poller::{events, token, Happened, Poller};
use crate::realtime::{is_client, Client};
use crate::scheduler::queue::Job;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Bytes read at a time. One buffer for all: what arrives is copied into the connection at its true size.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Clients that are read on in one turn, before others have theirs.
const READ_ON: usize = 16;

/// Time-outs are looked at no more often than this.
const EXPIRY_STEP_MILLISECONDS: u64 = 50;

pub(crate) struct Reactor {
    accepting: Accepting,
    scratch: Vec<u8>,
    /// Whether the waiting room is in the poll set.
    watches_room: bool,
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
            accepting: Accepting::new(listeners),
            scratch: vec![0; SCRATCH_BYTES],
            watches_room: false,
        }
    }

    /// One turn: waits for events, at the most for `timeout` (`None`: until a time-out is due), and deals with them.
    pub(crate) fn poll(&mut self, engine: &Engine, timeout: Option<Duration>) {
        let rest = self.accepting.end_rest(engine);
        let timeout = if engine.intake.is_due() {
            Some(Duration::ZERO)
        } else {
            timeout
        };
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
            Ok(events) => events.iter().for_each(|event| {
                self.guard(engine, now, |reactor| {
                    reactor.dispatch(engine, event.data.u64(), event.flags.into(), now);
                });
            }),
            Err(error) => engine.log.error(format_args!("[BUG] cannot poll: {error}")),
        }
        self.guard(engine, now, |reactor| reactor.read_on(engine, now));
        if engine.timer.earliest.load(Relaxed) <= now {
            self.guard(engine, now, |reactor| reactor.expire(engine, now));
        }
        if engine.is_draining() {
            self.guard(engine, now, |reactor| reactor.drain(engine, now));
        }
        self.guard(engine, now, |_| engine.resume_uploads(now));
        self.guard(engine, now, |_| engine.look_after_memory());
        drop(in_reactor);
        engine.cadence.polled(engine.ready.len());
    }

    /// One of the things to deal with. After a panic nothing is forgotten: what is due is looked for again, and the listeners
    /// pause, so that whatever comes in does not fill the log.
    fn guard(&mut self, engine: &Engine, now: u64, code: impl FnOnce(&mut Reactor)) {
        if engine.guard("a turn of the reactor", || code(self)).is_none() {
            engine.timer.expect(now + EXPIRY_STEP_MILLISECONDS, &engine.poller);
            self.accepting.pause(engine, now);
        }
    }

    fn dispatch(&mut self, engine: &Engine, event: u64, happened: Happened, now: u64) {
        match event {
            token::WAKE => engine.poller.drain_waker(),
            token::ROOM => engine.expect_transfers(),
            token::BELL => engine.hear_bell(),
            token::LAST_LISTENER..=token::LISTENER => {
                self.accepting.accept(engine, (token::LISTENER - event) as usize, now);
            }
            key if is_client(key) => self.serve_client(engine, key, happened, now),
            key => self.serve_connection(engine, key, now),
        }
    }

    fn serve_connection(&mut self, engine: &Engine, key: u64, now: u64) {
        let mut parked = engine.parked.lock();
        let Some(mut connection) = parked.take(key, &engine.poller) else {
            return;
        };
        if connection.input.capacity() == 0 {
            connection.input = parked.spare_buffer();
            connection.output.set_buffer(parked.spare_buffer());
        }
        drop(parked);
        let scratch = &mut self.scratch;
        engine.guard("a connection", || {
            engine.fault("step");
            let next = connection.step(scratch, &engine.config, now);
            engine.settle(connection, next);
        });
    }

    fn serve_client(&mut self, engine: &Engine, key: u64, happened: Happened, now: u64) {
        let Some(client) = engine.clients.get(key) else { return };
        self.step_client(engine, &client, happened, now);
    }

    /// Gives a turn to clients that can be read on although no event says so.
    fn read_on(&mut self, engine: &Engine, now: u64) {
        if !engine.intake.is_due() {
            return;
        }
        for _ in 0..engine.intake.len().min(READ_ON) {
            let Some(client) = engine.intake.next() else { return };
            client.resume(engine);
            let happened = Happened {
                readable: true,
                writable: false,
            };
            self.step_client(engine, &client, happened, now);
        }
    }

    fn step_client(&mut self, engine: &Engine, client: &Arc<Client>, happened: Happened, now: u64) {
        let scratch = &mut self.scratch;
        let step = engine.guard("a client", || {
            if happened.writable {
                client.writable();
            }
            if happened.readable && client.read(scratch, engine, now) {
                engine.ready.push(Job::Client(Arc::clone(client)));
            }
        });
        if step.is_none() {
            client.end();
        }
    }

    fn drain(&mut self, engine: &Engine, now: u64) {
        if self.accepting.drain(engine, now) {
            engine.hurry_idle_connections(now);
            engine.finish_if_drained();
        }
    }

    /// Lets go of the listening sockets; other workers that have them go on.
    pub(crate) fn close_listeners(&mut self, engine: &Engine) {
        self.accepting.close(engine);
    }

    fn expire(&mut self, engine: &Engine, now: u64) {
        // Deadlines that are set from here on count from scratch, so that none is forgotten while this thread looks.
        engine.timer.earliest.store(NEVER, SeqCst);
        engine.fault("look for time-outs");
        let (expired, earliest) = engine.parked.lock().take_expired(now);
        let next = earliest
            .min(engine.clients.tick(engine, now))
            .min(engine.door.opens_at(now))
            .max(now + EXPIRY_STEP_MILLISECONDS);
        engine.timer.earliest.fetch_min(next, SeqCst);
        for mut connection in expired {
            engine.guard("a connection", || {
                engine.fault("expire");
                let was_flushing = connection.is_flushing();
                let next = connection.expire(&engine.config, now);
                if was_flushing && next == Next::Close {
                    engine.tell_of_slow_client();
                }
                engine.settle(connection, next);
            });
        }
    }

    /// Takes the waiting room out of the poll set, or back in: a worker with no thread to spare must not look into it.
    pub(crate) fn watch_room(&mut self, engine: &Engine, watch: bool) {
        let Some(room) = &engine.waiting_room else { return };
        if self.watches_room == watch {
            return;
        }
        if watch {
            // What cannot be added now is tried before the next poll.
            self.watches_room = room.watch(&engine.poller).is_ok();
        } else {
            room.unwatch(&engine.poller);
            self.watches_room = false;
        }
    }
}
