//! The monitor: one native thread that looks every millisecond while something runs, and parks when nothing does.
//!
//! * Nobody has finished anything for a tick: it wakes a thread, or polls in the place of all of them, so that a long request
//!   never stops reads, time-outs, files and refusals (`states/help.rs`).
//! * What has waited too long where nobody can run it goes to the waiting room.

use crate::clock::{nanoseconds, processor_nanoseconds};
use crate::engine::Engine;
use crate::reactor::poller::Poller;
use crate::scheduler::states::{help, is_stuck, Doing, Help, Parking, Snapshot, Tick};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

/// After a tick that panicked: one that always does shall not fill the log.
const PANIC_PAUSE: Duration = Duration::from_millis(100);

/// Ticks without a request after which it parks.
const QUIET_TICKS: u32 = 50;

/// Ticks after which a request has used the lock for so long that others stand in line for it.
const PATIENT_TICKS: u32 = 5;

/// A request that has waited this long in a worker where nobody can run it goes to the waiting room.
const PATIENCE_NANOSECONDS: u64 = 1_000_000;

/// The same where requests do finish, but too slowly for those that wait.
const LONG_PATIENCE_NANOSECONDS: u64 = 20_000_000;

#[derive(Default)]
pub(crate) struct Monitor {
    parking: Parking,
    /// Whether it holds the reactor.
    polls: AtomicBool,
}

impl Monitor {
    /// Something runs: makes sure that the monitor looks. One load in the usual case.
    pub(crate) fn look(&self) {
        self.parking.end();
    }

    /// A thread is free to poll again: ends the monitor's poll.
    pub(crate) fn release_reactor(&self, poller: &Poller) {
        if self.polls.load(SeqCst) {
            poller.wake();
        }
    }

    /// Starts the thread; it holds no engine alive. `hands_over` as in [`App::hands_over`](crate::App::hands_over).
    pub(crate) fn start(engine: &Arc<Engine>, hands_over: bool) -> std::io::Result<()> {
        let engine = Arc::downgrade(engine);
        std::thread::Builder::new()
            .name("fairlead monitor".into())
            .spawn(move || watch(&engine, &mut Watch::new(hands_over)))?;
        Ok(())
    }
}

fn watch(engine: &Weak<Engine>, watch: &mut Watch) {
    while let Some(engine) = engine.upgrade() {
        if engine.is_stopped() {
            return;
        }
        if engine.guard("the monitor", || watch.tick(&engine)).is_none() {
            engine.monitor.polls.store(false, SeqCst);
            std::thread::sleep(PANIC_PAUSE);
        }
    }
}

/// What the monitor remembers from tick to tick.
struct Watch {
    hands_over: bool,
    /// Turns that had ended.
    ended: u64,
    /// Processor time that the process had used, in nanoseconds.
    used: u64,
    /// Ticks since something ran.
    quiet: u32,
    /// Ticks since a turn ended, while something ran.
    stuck: u32,
}

impl Watch {
    fn new(hands_over: bool) -> Watch {
        Watch {
            hands_over,
            ended: 0,
            used: 0,
            quiet: 0,
            stuck: 0,
        }
    }

    fn tick(&mut self, engine: &Engine) {
        engine.fault("monitor");
        let now = engine.threads.now();
        engine.publish_gauges();
        let ended = engine.counters().turns();
        let progress = std::mem::replace(&mut self.ended, ended) != ended;
        let is_active = now.is_active();
        self.quiet = if is_active || progress { 0 } else { self.quiet + 1 };
        self.stuck = if !is_active || progress { 0 } else { self.stuck + 1 };
        let tick = Tick {
            now,
            has_jobs: !engine.ready.is_empty(),
            lock_is_taken: self.lock_is_taken(now),
            is_patience_over: self.stuck >= PATIENT_TICKS,
        };
        if is_stuck(tick) {
            engine.shed(progress);
        }
        match self.stuck {
            0 => engine.pause(self.quiet),
            _ => engine.help(tick, self.hands_over),
        }
        engine.look_after_transfers();
    }

    /// Whether a thread has the language's lock and uses it. Where the language tells when it is given up, that is known of the
    /// threads that run the app; elsewhere it is a guess: a process that computes has somebody who does.
    fn lock_is_taken(&mut self, now: Snapshot) -> bool {
        if self.hands_over {
            return now.any(Doing::Running);
        }
        let used = processor_nanoseconds();
        let before = std::mem::replace(&mut self.used, used);
        now.any(Doing::Running) && used - before >= TICK.as_nanos() as u64 / 2
    }
}

impl Engine {
    fn pause(&self, quiet: u32) {
        if quiet < QUIET_TICKS || self.owes_transfers() {
            std::thread::sleep(TICK);
        } else {
            self.monitor.parking.rest(|| self.threads.now(), || self.is_stopped());
        }
    }

    /// A tick has passed in which threads ran and no turn ended.
    fn help(&self, tick: Tick, hands_over: bool) {
        match help(tick) {
            Help::Nothing => {}
            Help::WakeToPoll => self.threads.wake_one(),
            Help::WakeToRun => {
                self.threads.wake_one();
                if !hands_over {
                    self.cadence.become_eager();
                }
            }
            Help::Poll => {
                if self.poll_for_all() {
                    return;
                }
            }
        }
        std::thread::sleep(TICK);
    }

    /// Polls for a tick, unless somebody has the reactor.
    fn poll_for_all(&self) -> bool {
        let Some(mut reactor) = self.reactor.try_lock() else {
            return false;
        };
        reactor.watch_room(self, false);
        self.monitor.polls.store(true, SeqCst);
        reactor.poll(self, Some(TICK));
        self.monitor.polls.store(false, SeqCst);
        drop(reactor);
        self.hand_over();
        true
    }

    /// Sends to the waiting room what waits while nobody here can run it.
    fn shed(&self, progress: bool) {
        if self.waiting_room.is_none() || self.ready.is_empty() || self.is_draining() {
            return;
        }
        let patience = if progress {
            LONG_PATIENCE_NANOSECONDS
        } else {
            PATIENCE_NANOSECONDS
        };
        let time = nanoseconds().saturating_sub(patience);
        while self.move_out(time) {}
    }
}
