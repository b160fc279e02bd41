//! The environment for the threads of `src/schedule`: a lock of the language, a kernel with events, and jobs that run,
//! block, or keep the lock. The loop of a thread and the monitor's tick are copies of `src/scheduler/serve.rs` and
//! `src/scheduler/monitor.rs` without sockets.

use crate::schedule::{help, Alarm, Doing, Help, Parking, Seat, Site, Threads, Tick, Vacancy};
use crate::sync::{AtomicBool, AtomicUsize, Condvar, Guard, Mutex, Ordering::SeqCst, TryLock};
use shuttle::rand::Rng;
use shuttle::thread;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A gate that is opened once; threads wait for that.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn is_open(&self) -> bool {
        *self.is_open.lock()
    }

    pub(crate) fn pass(&self) {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
    }
}

/// A job of a thread.
pub(crate) enum Job {
    Quick,
    Opens(Arc<Gate>),
    /// Gives up the lock until the gate is open.
    Blocks(Arc<Gate>),
    /// Keeps the lock until the gate is open, as C code may.
    Hogs(Arc<Gate>),
    /// Computes until the gate is open, and lets other threads have the lock at the end of each slice.
    Computes(Arc<Gate>),
}

/// An event from the kernel for the polling thread.
pub(crate) enum Event {
    Request(Job),
    /// The polling thread serves it, without the language.
    File(Arc<Gate>),
}

#[derive(Default)]
struct Kernel {
    events: VecDeque<Event>,
    is_woken: bool,
}

/// Parameters of a world.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) most: usize,
    pub(crate) jobs: usize,
    /// True if the language reports that a thread gives up the lock.
    pub(crate) tells_waits: bool,
    /// The monitor's action for a tick; `None`: there is no monitor.
    pub(crate) monitor: Option<fn(Tick) -> Help>,
    /// Number of threads that are killed before they begin; each is replaced.
    pub(crate) killed_early: usize,
    /// True if threads begin at all.
    pub(crate) begins: bool,
}

/// Ticks after which the monitor treats a vacancy as long.
const VACANT_TICKS: u32 = 2;

impl Rules {
    pub(crate) fn new(most: usize, jobs: usize) -> Rules {
        Rules {
            most,
            jobs,
            tells_waits: true,
            monitor: Some(help),
            killed_early: 0,
            begins: true,
        }
    }
}

pub(crate) struct World {
    rules: Rules,
    threads: Threads,
    parking: Parking,
    ready: Mutex<VecDeque<Job>>,
    length: AtomicUsize,
    reactor: TryLock<()>,
    monitor_polls: AtomicBool,
    kernel: Mutex<Kernel>,
    told: Condvar,
    lock: Mutex<()>,
    done: AtomicUsize,
    is_stopped: AtomicBool,
    /// Number of threads that leave at the next interruption.
    killed: AtomicUsize,
    /// Number of threads that will be killed before they begin.
    killed_early: AtomicUsize,
    alive: AtomicUsize,
}

impl Alarm for World {
    fn has_jobs(&self) -> bool {
        self.length.load(SeqCst) > 0
    }

    fn end_poll(&self) {
        self.kernel.lock().is_woken = true;
        self.told.notify_all();
    }

    fn relieve_monitor(&self) {
        if self.monitor_polls.load(SeqCst) {
            self.end_poll();
        }
    }

    fn notify_monitor(&self) {
        self.parking.end();
    }
}

impl Site for World {
    fn calls_back(&self) -> bool {
        self.is_stopped.load(SeqCst)
    }

    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool {
        let Some(reactor) = self.reactor.try_lock() else {
            return false;
        };
        if begin() {
            self.take_events(true);
        }
        drop(reactor);
        true
    }

    fn is_polled(&self) -> bool {
        self.reactor.is_held()
    }
}

impl World {
    /// Runs until every job is done and every thread has left. Meanwhile, `outside` acts as clients and native threads.
    pub(crate) fn run(rules: Rules, outside: impl FnOnce(&Arc<World>)) {
        let world = Arc::new(World {
            rules,
            threads: Threads::new(rules.most),
            parking: Parking::default(),
            ready: Mutex::default(),
            length: AtomicUsize::new(0),
            reactor: TryLock::default(),
            monitor_polls: AtomicBool::new(false),
            kernel: Mutex::default(),
            told: Condvar::new(),
            lock: Mutex::default(),
            done: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            killed: AtomicUsize::new(0),
            killed_early: AtomicUsize::new(rules.killed_early),
            alive: AtomicUsize::new(0),
        });
        while world.threads.reserve() {
            if world.threads.now().total() <= 2 {
                world.start_thread();
            } else {
                world.threads.cancel_start();
                break;
            }
        }
        let monitor = rules.monitor.map(|rule| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.watch(rule))
        });
        outside(&world);
        if let Some(monitor) = monitor {
            monitor.join().expect("the monitor does not panic");
        }
    }

    /// The kernel has an event.
    pub(crate) fn happen(&self, event: Event) {
        self.kernel.lock().events.push_back(event);
        self.told.notify_all();
    }

    /// A native thread has a job to run.
    pub(crate) fn push(&self, job: Job) {
        self.add(job);
        self.threads.announce(self);
    }

    /// Kills the first thread that notices.
    pub(crate) fn kill_one(&self) {
        self.killed.fetch_add(1, SeqCst);
        self.threads.interrupt(self);
    }

    fn add(&self, job: Job) {
        let mut ready = self.ready.lock();
        ready.push_back(job);
        self.length.store(ready.len(), SeqCst);
    }

    fn pop(&self) -> Option<Job> {
        let mut ready = self.ready.lock();
        let job = ready.pop_front();
        self.length.store(ready.len(), SeqCst);
        job
    }

    /// The work of the reactor: one wait, and then all of its events.
    fn take_events(&self, waits: bool) {
        let mut kernel = self.kernel.lock();
        while waits && kernel.events.is_empty() && !kernel.is_woken {
            self.told.wait(&mut kernel);
        }
        kernel.is_woken = false;
        let events = std::mem::take(&mut kernel.events);
        drop(kernel);
        for event in events {
            match event {
                Event::Request(job) => self.add(job),
                Event::File(gate) => gate.open(),
            }
        }
    }

    /// Ends before the end of a job.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, SeqCst);
        self.threads.interrupt(self);
        self.parking.end();
    }

    fn start_thread(self: &Arc<World>) {
        let world = Arc::clone(self);
        let early = self
            .killed_early
            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        thread::spawn(move || match early {
            // It still counts as starting, and so does its replacement.
            Ok(_) => world.start_thread(),
            Err(_) if world.rules.begins => world.serve(),
            Err(_) => {}
        });
    }

    fn serve(self: Arc<World>) {
        let mut lock = self.lock.lock();
        let seat = self.threads.enter().expect("it was counted");
        let alive = self.alive.fetch_add(1, SeqCst) + 1;
        assert!(alive <= self.rules.most, "{alive} threads");
        let mut was_killed = false;
        while !self.is_stopped.load(SeqCst) && !was_killed {
            match self.next_job() {
                Some(job) => lock = self.execute(job, &seat, lock),
                None => {
                    let interrupts = self.threads.interrupts();
                    drop(lock);
                    self.threads.wait(&seat, &*self, &*self, interrupts, &|| ());
                    lock = self.lock.lock();
                    seat.becomes(Doing::Looking);
                }
            }
            was_killed = self.is_killed();
        }
        self.alive.fetch_sub(1, SeqCst);
        drop(seat);
        self.threads.wake_next(&*self);
        if was_killed && self.threads.reserve() {
            self.start_thread();
        }
        drop(lock);
    }

    fn is_killed(&self) -> bool {
        self.killed
            .fetch_update(SeqCst, SeqCst, |killed| killed.checked_sub(1))
            .is_ok()
    }

    fn next_job(&self) -> Option<Job> {
        if let Some(reactor) = self.reactor.try_lock() {
            self.take_events(false);
            drop(reactor);
        }
        self.pop()
    }

    fn execute<'a>(self: &'a Arc<World>, job: Job, seat: &Seat<'_>, mut lock: Guard<'a, ()>) -> Guard<'a, ()> {
        let now = seat.becomes(Doing::Running);
        self.notify_monitor();
        if now.free() == 0 && self.threads.reserve_for(self.length.load(SeqCst)) {
            self.start_thread();
        }
        match job {
            Job::Quick => {}
            Job::Opens(gate) => gate.open(),
            Job::Hogs(gate) => gate.pass(),
            Job::Computes(gate) => {
                while !gate.is_open() {
                    lock = self.end_slice(lock);
                }
            }
            Job::Blocks(gate) => {
                if self.rules.tells_waits {
                    self.threads.suspend(&**self);
                }
                drop(lock);
                gate.pass();
                if self.rules.tells_waits {
                    self.threads.resume();
                }
                lock = self.lock.lock();
            }
        }
        seat.becomes(Doing::Looking);
        if self.done.fetch_add(1, SeqCst) + 1 == self.rules.jobs {
            self.stop();
        }
        lock
    }

    /// Action of a thread when the monitor asks for the lock.
    fn end_slice<'a>(&'a self, lock: Guard<'a, ()>) -> Guard<'a, ()> {
        if self.rules.tells_waits {
            self.threads.suspend(self);
        } else {
            self.threads.wake_next(self);
        }
        drop(lock);
        thread::yield_now();
        if self.rules.tells_waits {
            self.threads.resume();
        }
        self.lock.lock()
    }

    fn watch(&self, rule: fn(Tick) -> Help) {
        let mut done = 0;
        let mut stuck = 0;
        let mut vacancy = Vacancy::default();
        while !self.is_stopped.load(SeqCst) {
            let now = self.threads.now();
            let before = std::mem::replace(&mut done, self.done.load(SeqCst));
            vacancy.tick(now, VACANT_TICKS);
            let needs_help = now.is_active() || vacancy.is_long();
            stuck = if needs_help && done == before { stuck + 1 } else { 0 };
            if !needs_help && !vacancy.is_watched() {
                let is_stopped = || self.is_stopped.load(SeqCst);
                self.parking
                    .rest(|| self.threads.now(), is_stopped, Duration::from_secs(60));
            } else if stuck > 0 {
                let tick = Tick {
                    now,
                    has_jobs: self.has_jobs(),
                    // If the language does not report it, any guess is possible.
                    lock_is_taken: now.any(Doing::Running)
                        && (self.rules.tells_waits || shuttle::rand::thread_rng().gen()),
                    is_patience_over: stuck > 3,
                };
                self.act(rule(tick));
            }
            thread::yield_now();
        }
    }

    fn act(&self, help: Help) {
        match help {
            Help::Nothing => {}
            Help::WakeToPoll | Help::WakeToRun => self.threads.wake_one(),
            Help::Poll => {
                if let Some(reactor) = self.reactor.try_lock() {
                    self.monitor_polls.store(true, SeqCst);
                    self.take_events(false);
                    self.monitor_polls.store(false, SeqCst);
                    drop(reactor);
                    self.threads.wake_next(self);
                }
            }
        }
    }
}
