//! Monitor: one native thread that wakes every millisecond while a job runs, and parks otherwise.
//!
//! * If no job has ended during a tick, it wakes a thread, or polls in place of all of them, so that a long request
//!   never stops reads, timeouts, files and refusals (`states/help.rs`).
//! * If a thread keeps the lock of the language for longer than a time slice while other threads want it, the monitor
//!   asks for the lock (`slice.rs`).
//! * If no thread has begun to serve for a second, it logs this, and polls in place of the threads
//!   (`states/vacancy.rs`).
//! * It sends jobs that have waited too long, because no thread here can run them, to the waiting room.

use super::slice::Slice;
use super::states::{help, is_stuck, Doing, Help, Parking, Snapshot, Tick, Vacancy};
use super::Workplace;
use crate::app::Lock;
use crate::clock::{processor_time, Nanos};
use crate::transport::poller::Poller;
use crate::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

/// Pause after a tick that panicked, so that a tick that always panics cannot fill the log.
const PANIC_PAUSE: Duration = Duration::from_millis(100);

/// Ticks without a job after which the monitor parks. The next job wakes it, which costs less than some ticks.
const QUIET_TICKS: u32 = 5;

/// Ticks, of a millisecond at least, after which threads should have begun to serve.
const VACANT_TICKS: u32 = 1000;

/// Ticks without the end of a job after which a thread is woken to wait for the lock, although another one uses it.
const PATIENT_TICKS: u32 = 5;

/// Time for which a request waits in a worker where no thread can run it, before it goes to the waiting room.
pub(crate) const PATIENCE: Duration = Duration::from_nanos(1_000_000);

/// The same while jobs end, but too slowly for the waiting ones.
const LONG_PATIENCE: Duration = Duration::from_nanos(20_000_000);

#[derive(Default)]
pub(super) struct Monitor {
    parking: Parking,
    /// True while the monitor has the reactor.
    polls: AtomicBool,
}

impl Monitor {
    /// Wakes the monitor if it is parked, because a job runs. Usually costs one load.
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

/// Starts the thread, which does not keep the engine alive. `lock`: the lock of the language.
pub(crate) fn start<W>(workplace: &Arc<W>, lock: Box<dyn Lock>) -> std::io::Result<()>
where
    W: Workplace + Send + Sync + 'static,
{
    let mut state = Watch::new(lock, workplace.worker().config.time_slice);
    let workplace = Arc::downgrade(workplace);
    std::thread::Builder::new()
        .name("fairlead monitor".into())
        .spawn(move || watch(&workplace, &mut state))?;
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

/// State that the monitor keeps from tick to tick.
struct Watch {
    lock: Box<dyn Lock>,
    slice: Slice,
    /// Jobs that had ended at the last tick.
    ended: u64,
    /// Processor time that the process had used at the last tick.
    used: Duration,
    /// Processor time that the process used during the last tick. Known only if the language does not report released
    /// locks.
    used_now: Duration,
    /// Moving average of `used_now`.
    used_on_average: Duration,
    /// Ticks since a job ran.
    quiet: u32,
    /// Ticks since a job ended, while one ran.
    stuck: u32,
    /// State while no thread serves.
    vacancy: Vacancy,
}

impl Watch {
    fn new(lock: Box<dyn Lock>, time_slice: Duration) -> Watch {
        Watch {
            lock,
            slice: Slice::new(time_slice),
            ended: 0,
            used: Duration::ZERO,
            used_now: Duration::ZERO,
            used_on_average: Duration::ZERO,
            quiet: 0,
            stuck: 0,
            vacancy: Vacancy::default(),
        }
    }

    fn tick<W: Workplace>(&mut self, workplace: &W) {
        let (worker, scheduler) = (workplace.worker(), workplace.scheduler());
        worker.fault("monitor");
        let now = scheduler.now();
        workplace.publish_gauges();
        let ended = worker.counters().turns();
        let progress = std::mem::replace(&mut self.ended, ended) != ended;
        self.watch_vacancy(now, worker);
        let needs_help = now.is_active() || self.vacancy.is_long();
        let is_quiet = !needs_help && !self.vacancy.is_watched() && !progress;
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        self.stuck = if !needs_help || progress { 0 } else { self.stuck + 1 };
        if !self.lock.tells_waits() {
            let used = processor_time();
            let before = std::mem::replace(&mut self.used, used);
            self.used_now = used.saturating_sub(before);
            self.used_on_average = (self.used_on_average * 7 + self.used_now) / 8;
        }
        self.watch_slice(now, worker);
        let tick = Tick {
            now,
            has_jobs: scheduler.ready.has_turns(),
            lock_is_taken: self.lock_is_taken(now),
            is_patience_over: self.stuck >= PATIENT_TICKS,
        };
        if scheduler.ready.release() {
            scheduler.threads.announce(scheduler);
        }
        if is_stuck(tick) || scheduler.ready.is_held_back() {
            let patience = if progress { LONG_PATIENCE } else { PATIENCE };
            workplace.shed(patience);
        }
        match self.stuck {
            0 => pause(workplace, self.quiet),
            _ => self.help(workplace, tick),
        }
        workplace.tick();
    }

    /// Called after a tick in which threads ran and no job ended.
    fn help<W: Workplace>(&self, workplace: &W, tick: Tick) {
        let scheduler = workplace.scheduler();
        match help(tick) {
            Help::Nothing => {}
            Help::WakeToPoll => scheduler.threads.wake_one(),
            Help::WakeToRun => {
                scheduler.threads.wake_one();
                if !self.lock.tells_waits() {
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

    /// Logs it if no thread has begun to serve for too long.
    fn watch_vacancy(&mut self, now: Snapshot, worker: &Worker) {
        if self.vacancy.tick(now, VACANT_TICKS) {
            let starting = now.count(Doing::Starting);
            worker.log.error(format_args!(
                "no thread has begun to run requests for a second ({starting} are starting): look for a hook \
                 (before_thread_start) that does not return, and for limits on threads"
            ));
        }
    }

    /// Asks for the lock if a thread keeps it for too long while others want it.
    fn watch_slice(&mut self, now: Snapshot, worker: &Worker) {
        // Even without a limit: other engines of the process may have one.
        let seen = self.lock.look(now.busy() + now.count(Doing::Wanting));
        if !self.slice.is_limited() {
            return;
        }
        let is_wanted = if self.lock.tells_waits() {
            seen.is_wanted
        } else {
            // A thread that runs the app may also wait for something else, so the lock is wanted only if some thread
            // computes, on a processor that other processes may use as well.
            self.used_on_average >= TICK / 8 && (seen.is_wanted || now.any(Doing::Wanting))
        };
        if self.slice.is_over(seen.switches, is_wanted, Nanos::now()) {
            self.lock.claim(seen);
            worker.counters().time_slices.fetch_add(1, Relaxed);
        }
    }

    /// True if a thread has the lock of the language and uses it. If the language reports that a thread releases it,
    /// the states of the threads show this. Otherwise the answer is a guess from the processor time of the process.
    fn lock_is_taken(&self, now: Snapshot) -> bool {
        now.any(Doing::Running) && (self.lock.tells_waits() || self.used_now >= TICK / 2)
    }
}

fn pause<W: Workplace>(workplace: &W, quiet: u32) {
    if quiet < QUIET_TICKS || workplace.needs_ticks() {
        std::thread::sleep(TICK);
    } else {
        let scheduler = workplace.scheduler();
        let is_over = || workplace.worker().is_stopped();
        let time = workplace.rest();
        scheduler.monitor.parking.rest(|| scheduler.now(), is_over, time);
    }
}

/// Polls for a tick, unless another thread has the reactor.
fn poll_for_all<W: Workplace>(workplace: &W) -> bool {
    let scheduler = workplace.scheduler();
    let has_polled = workplace.poll_for_all(TICK, &scheduler.monitor.polls);
    if has_polled {
        scheduler.threads.wake_next(scheduler);
    }
    has_polled
}
