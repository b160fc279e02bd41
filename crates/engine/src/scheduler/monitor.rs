//! The monitor: one native thread that looks every millisecond while something runs, and parks when nothing does.
//!
//! * Nobody has finished anything for a tick: it wakes a thread, or polls in the place of all of them, so that a long request
//!   never stops reads, time-outs, files and refusals (`states/help.rs`).
//! * What has waited too long where nobody can run it is sent away.

use super::states::{help, is_stuck, Doing, Help, Parking, Snapshot, Tick};
use super::Workplace;
use crate::clock::processor_time;
use crate::transport::poller::Poller;
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
const PATIENCE: Duration = Duration::from_nanos(1_000_000);

/// The same where requests do finish, but too slowly for those that wait.
const LONG_PATIENCE: Duration = Duration::from_nanos(20_000_000);

#[derive(Default)]
pub(super) struct Monitor {
    parking: Parking,
    /// Whether it holds the reactor.
    polls: AtomicBool,
}

impl Monitor {
    /// Something runs: makes sure that the monitor looks. One load in the usual case.
    pub(super) fn look(&self) {
        self.parking.end();
    }

    /// A thread is free to poll again: ends the monitor's poll.
    pub(super) fn release_reactor(&self, poller: &Poller) {
        if self.polls.load(SeqCst) {
            poller.wake();
        }
    }
}

/// Starts the thread; it holds no engine alive. `hands_over` as in [`App::hands_over`](crate::App::hands_over).
pub(crate) fn start<W>(workplace: &Arc<W>, hands_over: bool) -> std::io::Result<()>
where
    W: Workplace + Send + Sync + 'static,
{
    let workplace = Arc::downgrade(workplace);
    std::thread::Builder::new()
        .name("fairlead monitor".into())
        .spawn(move || watch(&workplace, &mut Watch::new(hands_over)))?;
    Ok(())
}

fn watch<W: Workplace>(workplace: &Weak<W>, watch: &mut Watch) {
    while let Some(workplace) = workplace.upgrade() {
        let worker = workplace.worker();
        if worker.is_stopped() {
            return;
        }
        if worker.guard("the monitor", || watch.tick(&*workplace)).is_none() {
            workplace.scheduler().monitor.polls.store(false, SeqCst);
            std::thread::sleep(PANIC_PAUSE);
        }
    }
}

/// What the monitor remembers from tick to tick.
struct Watch {
    hands_over: bool,
    /// Turns that had ended.
    ended: u64,
    /// Processor time that the process had used.
    used: Duration,
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
            used: Duration::ZERO,
            quiet: 0,
            stuck: 0,
        }
    }

    fn tick<W: Workplace>(&mut self, workplace: &W) {
        let (worker, scheduler) = (workplace.worker(), workplace.scheduler());
        worker.fault("monitor");
        let now = scheduler.now();
        workplace.publish_gauges();
        let ended = worker.counters().turns();
        let progress = std::mem::replace(&mut self.ended, ended) != ended;
        let is_active = now.is_active();
        self.quiet = if is_active || progress { 0 } else { self.quiet + 1 };
        self.stuck = if !is_active || progress { 0 } else { self.stuck + 1 };
        let tick = Tick {
            now,
            has_jobs: !scheduler.ready.is_empty(),
            lock_is_taken: self.lock_is_taken(now),
            is_patience_over: self.stuck >= PATIENT_TICKS,
        };
        if is_stuck(tick) {
            let patience = if progress { LONG_PATIENCE } else { PATIENCE };
            workplace.shed(patience);
        }
        match self.stuck {
            0 => pause(workplace, self.quiet),
            _ => self.help(workplace, tick),
        }
        workplace.tick();
    }

    /// A tick has passed in which threads ran and no turn ended.
    fn help<W: Workplace>(&self, workplace: &W, tick: Tick) {
        let scheduler = workplace.scheduler();
        match help(tick) {
            Help::Nothing => {}
            Help::WakeToPoll => scheduler.threads.wake_one(),
            Help::WakeToRun => {
                scheduler.threads.wake_one();
                if !self.hands_over {
                    scheduler.cadence.become_eager();
                }
            }
            Help::Poll => {
                if poll_for_all(workplace) {
                    return;
                }
            }
        }
        std::thread::sleep(TICK);
    }

    /// Whether a thread has the language's lock and uses it. Where the language tells when it is given up, that is known of the
    /// threads that run the app; elsewhere it is a guess: a process that computes has somebody who does.
    fn lock_is_taken(&mut self, now: Snapshot) -> bool {
        if self.hands_over {
            return now.any(Doing::Running);
        }
        let used = processor_time();
        let before = std::mem::replace(&mut self.used, used);
        now.any(Doing::Running) && used.saturating_sub(before) >= TICK / 2
    }
}

fn pause<W: Workplace>(workplace: &W, quiet: u32) {
    if quiet < QUIET_TICKS || workplace.needs_ticks() {
        std::thread::sleep(TICK);
    } else {
        let scheduler = workplace.scheduler();
        let is_over = || workplace.worker().is_stopped();
        scheduler.monitor.parking.rest(|| scheduler.now(), is_over);
    }
}

/// Polls for a tick, unless somebody has the reactor.
fn poll_for_all<W: Workplace>(workplace: &W) -> bool {
    let scheduler = workplace.scheduler();
    let has_polled = workplace.poll_for_all(TICK, &scheduler.monitor.polls);
    if has_polled {
        scheduler.threads.hand_over(workplace);
    }
    has_polled
}
