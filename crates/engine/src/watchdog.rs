//! The watchdog: one native thread that looks every millisecond while something runs, and parks when nothing does.
//!
//! * A thread waits and nobody knew (the language has no hook): it wakes the next one.
//! * Every thread is busy: it polls in their place, so that a long request never stops reads, time-outs and refusals,
//!   and sends what has waited too long to the waiting room.

use crate::clock::{nanoseconds, processor_nanoseconds};
use crate::engine::Engine;
use crate::poller::Poller;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

/// Ticks without a request after which it parks.
const QUIET_TICKS: u32 = 50;

/// Ticks after which a request that computes has taken so long that others have to poll beside it.
const PATIENT_TICKS: u32 = 5;

/// A request that has waited this long in a worker without a free thread goes to the waiting room.
const PATIENCE_NANOSECONDS: u64 = 1_000_000;

/// The same where requests do finish, but too slowly for those that wait.
const LONG_PATIENCE_NANOSECONDS: u64 = 20_000_000;

#[derive(Default)]
pub(crate) struct Watchdog {
    parked: AtomicBool,
    /// Whether it holds the reactor.
    polls: AtomicBool,
    unpark: (Mutex<()>, Condvar),
}

impl Watchdog {
    /// Something runs: makes sure that the watchdog looks. One load in the usual case.
    pub(crate) fn look(&self) {
        if self.parked.load(SeqCst) {
            let _guard = self.unpark.0.lock();
            self.parked.store(false, SeqCst);
            self.unpark.1.notify_one();
        }
    }

    /// A thread is free to poll again: ends the watchdog's poll.
    pub(crate) fn release_reactor(&self, poller: &Poller) {
        if self.polls.load(SeqCst) {
            poller.wake();
        }
    }

    /// Starts the thread; it holds no engine alive.
    pub(crate) fn start(engine: &Arc<Engine>, hands_over: bool) -> std::io::Result<()> {
        let engine = Arc::downgrade(engine);
        std::thread::Builder::new()
            .name("fairlead watchdog".into())
            .spawn(move || watch(&engine, hands_over))?;
        Ok(())
    }
}

fn watch(engine: &Weak<Engine>, hands_over: bool) {
    let mut answered = 0;
    let mut quiet = 0;
    let mut stuck = 0;
    let mut used = 0;
    while let Some(engine) = engine.upgrade() {
        if engine.is_stopped() {
            return;
        }
        let before = std::mem::replace(&mut answered, engine.counters().turns());
        let busy = engine.threads.busy();
        engine.publish_gauges();
        quiet = if busy > 0 || answered != before { 0 } else { quiet + 1 };
        let used_before = std::mem::replace(&mut used, processor_nanoseconds());
        if busy == 0 || answered != before {
            stuck = 0;
            engine.pause(quiet);
        } else {
            stuck += 1;
            let computes = used - used_before >= TICK.as_nanos() as u64 / 2 && stuck < PATIENT_TICKS;
            engine.help(hands_over, computes);
        }
        engine.shed(answered != before);
    }
}

impl Engine {
    fn pause(&self, quiet: u32) {
        if quiet < QUIET_TICKS {
            return std::thread::sleep(TICK);
        }
        let mut guard = self.watchdog.unpark.0.lock();
        self.watchdog.parked.store(true, SeqCst);
        while self.watchdog.parked.load(SeqCst) && self.threads.busy() == 0 && !self.is_stopped() {
            self.watchdog.unpark.1.wait_for(&mut guard, Duration::from_secs(60));
        }
        self.watchdog.parked.store(false, SeqCst);
    }

    /// A tick has passed in which requests ran and none finished. If the process `computes`, a thread has the language's lock
    /// and waits for nothing: another one would only get in its way.
    fn help(&self, hands_over: bool, computes: bool) {
        if self.threads.waiting() > 0 {
            if !computes && (!self.ready.is_empty() || !self.threads.is_polling()) {
                self.hand_over();
                if !hands_over {
                    self.threads.become_eager();
                }
            }
        } else if !self.threads.is_polling() {
            if let Some(mut reactor) = self.reactor.try_lock() {
                reactor.watch_room(self, false);
                self.watchdog.polls.store(true, SeqCst);
                reactor.poll(self, Some(TICK));
                self.watchdog.polls.store(false, SeqCst);
                drop(reactor);
                return self.hand_over();
            }
        }
        std::thread::sleep(TICK);
    }

    /// Sends to the waiting room what waits while no thread of this worker is free.
    fn shed(&self, progress: bool) {
        if self.room.is_none() || self.ready.is_empty() || !self.threads.are_all_busy() || self.is_draining() {
            return;
        }
        let patience = if progress {
            LONG_PATIENCE_NANOSECONDS
        } else {
            PATIENCE_NANOSECONDS
        };
        let time = nanoseconds().saturating_sub(patience);
        while self.threads.are_all_busy() && self.move_out(time) {}
    }
}
