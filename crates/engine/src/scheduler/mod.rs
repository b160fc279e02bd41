//! Decides which thread runs what, and when: the ready queue, the loop of a thread that serves, the states of all
//! threads, and the monitor that helps when all of them are busy. What a job is, and how events are polled, is not
//! known here: see [`Workplace`].

mod cadence;
mod monitor;
mod queue;
mod serve;
mod slice;
pub(crate) mod states;

pub(crate) use monitor::{start as start_monitor, PATIENCE};
pub(crate) use queue::{Order, Queued, Taken};

use crate::app::App;
use crate::transport::poller::Dispatching;
use crate::worker::Worker;
use cadence::Cadence;
use monitor::Monitor;
use queue::ReadyQueue;
use states::{Alarm, Site, Snapshot, Threads};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

/// The threads of one worker, and the jobs that they run.
pub(crate) struct Scheduler<J> {
    worker: Arc<Worker>,
    ready: ReadyQueue<J>,
    threads: Threads,
    cadence: Cadence,
    monitor: Monitor,
}

/// What the threads of a scheduler work on.
pub(crate) trait Workplace: Site {
    type Job: Queued + Send;

    /// What a thread keeps from job to job.
    type Workspace: Default;

    fn scheduler(&self) -> &Scheduler<Self::Job>;

    fn worker(&self) -> &Worker;

    /// Runs a job on a thread of the app.
    fn run(&self, job: Self::Job, app: &impl App, workspace: &mut Self::Workspace);

    /// Takes a job from the waiting room, if this worker should, and no job in the ready queue has waited for longer.
    fn take_transfer(&self) -> Option<Self::Job>;

    /// A job for a thread that has found nothing else to do, if the app wants it.
    fn leisure(&self, app: &impl App) -> Option<Self::Job>;

    /// Polls without waiting, unless another thread has the reactor.
    fn poll_now(&self);

    /// Polls in place of the threads, for up to `time`. False if another thread has the reactor. `polls` is true
    /// meanwhile.
    fn poll_for_all(&self, time: Duration, polls: &AtomicBool) -> bool;

    /// The number of threads has changed.
    fn publish_threads(&self);

    /// Stores the gauges, so that the other workers see how much there is to do.
    fn publish_gauges(&self);

    /// Sends jobs that have waited for `time` to the waiting room, because no thread here can run them.
    fn shed(&self, time: Duration);

    /// Whether something must be checked every millisecond although nothing runs.
    fn needs_ticks(&self) -> bool;

    /// Called every millisecond while something runs.
    fn tick(&self);
}

impl<J: Queued> Scheduler<J> {
    pub(crate) fn new(worker: Arc<Worker>, order: &Order) -> Scheduler<J> {
        let max_threads = worker.config.max_threads;
        Scheduler {
            worker,
            ready: ReadyQueue::new(order, max_threads),
            threads: Threads::new(max_threads),
            cadence: Cadence::default(),
            monitor: Monitor::default(),
        }
    }

    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    pub(crate) fn ready(&self) -> &ReadyQueue<J> {
        &self.ready
    }

    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The states of all threads.
    pub(crate) fn now(&self) -> Snapshot {
        self.threads.now()
    }

    /// Adds a job to the ready queue and makes sure that a thread looks at it, see [`Scheduler::notify`].
    pub(crate) fn schedule(&self, job: J) {
        self.ready.push(job);
        self.notify();
    }

    /// The ready queue has a new job: makes sure that a thread looks at it, unless this thread is handling events and
    /// will look itself.
    pub(crate) fn notify(&self) {
        if !Dispatching::is_here() {
            self.threads.announce(self);
        }
    }

    /// Wakes a waiting thread if it has something to do; see [`Threads::wake_next`].
    pub(crate) fn wake_next(&self) {
        self.threads.wake_next(self);
    }

    /// The app on this thread, which runs it, has released the lock; see [`Threads::suspend`].
    pub(crate) fn suspend(&self) {
        self.threads.suspend(self);
    }

    /// Ends every wait of a thread, unless this is a process that the app has forked. A panic goes no further.
    pub(crate) fn interrupt(&self) {
        if self.worker.is_at_home() {
            self.worker.guard("an interrupt", || self.threads.interrupt(self));
        }
    }

    /// Wakes the monitor if it is parked. One load in the usual case.
    pub(crate) fn wake_monitor(&self) {
        self.monitor.look();
    }

    /// A poll is over: what is in the ready queue may run before the next one, and `others`, which come into it as these
    /// begin.
    pub(crate) fn polled(&self, others: usize) {
        self.cadence.polled(self.ready.len() + others);
    }
}

impl<J: Queued> Alarm for Scheduler<J> {
    fn has_jobs(&self) -> bool {
        self.ready.has_turns()
    }

    fn end_poll(&self) {
        self.worker.poller.wake();
    }

    fn relieve_monitor(&self) {
        self.monitor.release_reactor(&self.worker.poller);
    }

    fn notify_monitor(&self) {
        self.wake_monitor();
    }
}
