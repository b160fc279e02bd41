//! Decides which thread runs which job, and when: the ready queue, the loop of a thread that serves, the states of all
//! threads, and the monitor that helps when all of them are busy. The [`Workplace`] defines jobs and polling.

mod cadence;
mod monitor;
mod queue;
mod serve;
mod slice;
pub(crate) mod states;

pub(crate) use monitor::{start as start_monitor, PATIENCE};
pub(crate) use queue::{sweep, Order, Position, Queued, Taken};

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

/// Threads of one worker, and the jobs that they run.
pub(crate) struct Scheduler<J> {
    worker: Arc<Worker>,
    ready: ReadyQueue<J>,
    threads: Threads,
    cadence: Cadence,
    monitor: Monitor,
}

/// Work for the threads of a scheduler.
pub(crate) trait Workplace: Site {
    type Job: Queued + Send;

    /// State that a thread keeps from job to job.
    type Workspace: Default;

    fn scheduler(&self) -> &Scheduler<Self::Job>;

    fn worker(&self) -> &Worker;

    /// Runs a job on a thread of the app.
    fn run(&self, job: Self::Job, app: &impl App, workspace: &mut Self::Workspace);

    /// Takes a job from the waiting room, if this worker should, and no job in the ready queue has waited longer.
    fn take_transfer(&self) -> Option<Self::Job>;

    /// Returns a job for a thread that has found no other, if the app wants it.
    fn leisure(&self, app: &impl App) -> Option<Self::Job>;

    /// Polls without waiting, unless another thread has the reactor.
    fn poll_now(&self);

    /// Polls in place of the threads, for up to `time`. Returns false if another thread has the reactor. `polls` is
    /// true meanwhile.
    fn poll_for_all(&self, time: Duration, polls: &AtomicBool) -> bool;

    /// Publishes the number of threads, which has changed.
    fn publish_threads(&self);

    /// Publishes the gauges, so that the other workers see the load of this one.
    fn publish_gauges(&self);

    /// Sends jobs that have waited for `time` to the waiting room, because no thread here can run them.
    fn shed(&self, time: Duration);

    /// True if something must be checked every millisecond although no job runs.
    fn needs_ticks(&self) -> bool;

    /// Called every millisecond while a job runs.
    fn tick(&self);

    /// Called when no job has run for a while. Returns the time after which it is called again, unless a job runs before.
    fn rest(&self) -> Duration;
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

    /// States of all threads.
    pub(crate) fn now(&self) -> Snapshot {
        self.threads.now()
    }

    /// Adds a job to the ready queue and makes sure that a thread sees it, see [`Scheduler::notify`].
    pub(crate) fn schedule(&self, job: J) {
        self.ready.push(job);
        self.notify();
    }

    /// Makes sure that a thread sees a new job in the ready queue, unless this thread is handling events and checks the
    /// queue itself afterwards.
    pub(crate) fn notify(&self) {
        if !Dispatching::is_here() {
            self.threads.announce(self);
        }
    }

    /// Wakes a waiting thread if there is work for it; see [`Threads::wake_next`].
    pub(crate) fn wake_next(&self) {
        self.threads.wake_next(self);
    }

    /// The app on this thread has released the lock during a job; see [`Threads::suspend`].
    pub(crate) fn suspend(&self) {
        self.threads.suspend(self);
    }

    /// Ends every wait of a thread, unless this is a process that the app has forked. Stops a panic here.
    pub(crate) fn interrupt(&self) {
        if self.worker.is_at_home() {
            self.worker.guard("an interrupt", || self.threads.interrupt(self));
        }
    }

    /// Wakes the monitor if it is parked. Usually costs one load.
    pub(crate) fn wake_monitor(&self) {
        self.monitor.look();
    }

    /// Called after a poll. The jobs in the ready queue may run before the next poll, and so may `others`, which enter
    /// the queue when these begin.
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
