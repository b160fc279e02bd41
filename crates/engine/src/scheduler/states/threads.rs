//! Threads of one engine: each enters, waits for work, is woken, and leaves.

use super::{Alarm, Census, Doing, Site, Snapshot};
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering::SeqCst};
use std::cell::Cell;
use std::time::Duration;

/// A thread that has waited so long for work is idle.
const IDLE: Duration = Duration::from_secs(1);

pub(crate) struct Threads {
    most: usize,
    census: Census,
    /// Wake-ups that were given and not yet taken. The waker changes the state of a waiting thread to `Wanting`.
    wakes: Mutex<usize>,
    wake: Condvar,
    /// Counts calls of [`Threads::interrupt`].
    interrupts: AtomicUsize,
}

/// Entry of a thread in the census, as long as it serves.
pub(crate) struct Seat<'a> {
    threads: &'a Threads,
    doing: Cell<Doing>,
}

impl Seat<'_> {
    /// Changes the state of this thread; returns the counts after that.
    pub(crate) fn becomes(&self, doing: Doing) -> Snapshot {
        self.threads.census.change(self.doing.replace(doing), doing)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.threads.census.remove(self.doing.get());
    }
}

impl Threads {
    /// `most`: most threads at a time.
    pub(crate) fn new(most: usize) -> Threads {
        Threads {
            most: most.max(1),
            census: Census::default(),
            wakes: Mutex::new(0),
            wake: Condvar::new(),
            interrupts: AtomicUsize::new(0),
        }
    }

    /// States of all threads.
    pub(crate) fn now(&self) -> Snapshot {
        self.census.now()
    }

    /// Most threads at a time.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Counts a thread that will be started; false if there are `most` threads.
    pub(crate) fn reserve(&self) -> bool {
        self.census.add(Doing::Starting, |now| now.total() < self.most)
    }

    /// As [`Threads::reserve`], but only if no thread is free, and either none is starting, or fewer than the `jobs`
    /// waiting jobs.
    pub(crate) fn reserve_for(&self, jobs: usize) -> bool {
        self.census.add(Doing::Starting, |now| {
            let coming = now.count(Doing::Starting);
            now.total() < self.most && now.free() == 0 && (coming == 0 || coming < jobs)
        })
    }

    /// Cancels a thread that was counted as starting and will not serve.
    pub(crate) fn cancel_start(&self) {
        self.census.remove(Doing::Starting);
    }

    /// Begins to serve on the calling thread. `None` if it was not counted as starting and there are `most` threads.
    pub(crate) fn enter(&self) -> Option<Seat<'_>> {
        let counts = self.census.begin() || self.census.add(Doing::Looking, |now| now.total() < self.most);
        counts.then(|| Seat {
            threads: self,
            doing: Cell::new(Doing::Looking),
        })
    }

    /// Number of calls of [`Threads::interrupt`]; for [`Threads::wait`].
    pub(crate) fn interrupts(&self) -> usize {
        self.interrupts.load(SeqCst)
    }

    /// The app on this thread has released the lock during a job.
    pub(crate) fn suspend(&self, alarm: &impl Alarm) {
        self.census.change(Doing::Running, Doing::Blocked);
        self.wake_next(alarm);
    }

    /// The app on this thread wants the lock again.
    pub(crate) fn resume(&self) {
        self.census.change(Doing::Blocked, Doing::Running);
    }

    /// Wakes one waiting thread if there is work for it: a job to run, or the poll if no thread polls. No thread is
    /// woken while another one is in `Wanting`, because it is about to check. Takes no lock if there is no work.
    pub(crate) fn wake_next(&self, alarm: &impl Alarm) {
        let now = self.now();
        let can_wake = now.any(Doing::Waiting) && !now.any(Doing::Wanting);
        if can_wake && (alarm.has_jobs() || !now.any(Doing::Polling)) {
            self.wake_one();
        }
    }

    /// Announces a job that was added to the ready queue by a thread that will not check the queue itself.
    pub(crate) fn announce(&self, alarm: &impl Alarm) {
        if self.now().any(Doing::Polling) {
            alarm.end_poll();
        } else {
            self.wake_next(alarm);
        }
        alarm.notify_monitor();
    }

    /// Wakes one waiting thread, if there is one.
    pub(crate) fn wake_one(&self) {
        let mut wakes = self.wakes.lock();
        if self.now().any(Doing::Waiting) {
            self.give_wake(&mut wakes);
            self.wake.notify_one();
        }
    }

    /// Ends every wait.
    pub(crate) fn interrupt(&self, alarm: &impl Alarm) {
        self.interrupts.fetch_add(1, SeqCst);
        let mut wakes = self.wakes.lock();
        while self.now().any(Doing::Waiting) {
            self.give_wake(&mut wakes);
        }
        self.wake.notify_all();
        drop(wakes);
        alarm.end_poll();
    }

    /// A thread enters and leaves `Waiting` only under the lock of `wakes`.
    fn give_wake(&self, wakes: &mut usize) {
        self.census.change(Doing::Waiting, Doing::Wanting);
        *wakes += 1;
    }

    /// Waits, without the lock of the language, until there is something to run or [`Threads::interrupt`] was called
    /// more than `interrupts` times. The thread is in `Wanting` afterwards. Calls `idle` once in a long wait, unless this thread polls.
    pub(crate) fn wait(
        &self,
        seat: &Seat<'_>,
        alarm: &impl Alarm,
        site: &impl Site,
        interrupts: usize,
        idle: &dyn Fn(),
    ) {
        let is_over = || alarm.has_jobs() || site.calls_back() || self.interrupts() != interrupts;
        seat.becomes(Doing::Wanting);
        while !is_over() {
            let mut begin = || {
                seat.becomes(Doing::Polling);
                // A thread that adds work from now on sees that this one polls, and ends the poll.
                !is_over()
            };
            if site.poll(&mut begin) {
                seat.becomes(Doing::Wanting);
            } else {
                alarm.relieve_monitor();
                self.sleep(seat, site, &is_over, idle);
            }
        }
        // It may take long until this thread gets the lock.
        alarm.notify_monitor();
    }

    fn sleep(&self, seat: &Seat<'_>, site: &impl Site, is_over: &dyn Fn() -> bool, idle: &dyn Fn()) {
        let mut wakes = self.wakes.lock();
        let mut is_idle = false;
        seat.becomes(Doing::Waiting);
        // A waker reads the states after it has added work, so work that was added before is seen here.
        while *wakes == 0 && !is_over() && site.is_polled() {
            if is_idle {
                self.wake.wait(&mut wakes);
            } else if self.wake.wait_for(&mut wakes, IDLE) {
                is_idle = true;
                // A waker does not wait for this. Its wake-up counts although this thread does not listen.
                drop(wakes);
                idle();
                wakes = self.wakes.lock();
            }
        }
        if *wakes > 0 {
            *wakes -= 1;
            seat.doing.set(Doing::Wanting);
        } else {
            seat.becomes(Doing::Wanting);
        }
    }
}
