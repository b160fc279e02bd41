//! Which thread runs what, and when: the queue of what is ready, the loop of a thread that serves, the states of all threads, and
//! the monitor that helps when all of them are busy. What is run, and how events are polled for, is not known here: see
//! [`Workplace`].

mod cadence;
mod monitor;
mod queue;
mod serve;
pub(crate) mod states;

pub(crate) use monitor::start as start_monitor;
pub(crate) use queue::Queued;

use crate::app::App;
use crate::transport::poller::Dispatching;
use crate::worker::Worker;
use cadence::Cadence;
use monitor::Monitor;
use queue::ReadyQueue;
use states::{Site, Snapshot, Threads};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The threads of one worker, and what they are to run.
pub(crate) struct Scheduler<J> {
    ready: ReadyQueue<J>,
    threads: Threads,
    cadence: Cadence,
    monitor: Monitor,
}

/// Where the threads of a scheduler work.
pub(crate) trait Workplace: Site {
    type Job: Queued + Send;

    /// What a thread keeps from job to job.
    type Workspace: Default;

    fn scheduler(&self) -> &Scheduler<Self::Job>;

    fn worker(&self) -> &Worker;

    /// Runs a job on a thread of the app.
    fn run(&self, job: Self::Job, app: &impl App, workspace: &mut Self::Workspace);

    /// Takes a job that waits outside of the ready queue and is older than what is in it, if this worker is to.
    fn take_transfer(&self) -> Option<Self::Job>;

    /// Takes the reactor, if nobody has it, and deals with what has happened.
    fn poll_now(&self);

    /// Takes the reactor, if nobody has it, and waits in the place of all threads for what happens within `time`. False if
    /// somebody has it. `polls` is true meanwhile.
    fn poll_for_all(&self, time: Duration, polls: &AtomicBool) -> bool;

    /// The number of threads has changed.
    fn publish_threads(&self);

    /// Tells the other workers how much there is to do.
    fn publish_gauges(&self);

    /// Sends away what has waited for `time` where nobody can run it.
    fn shed(&self, time: Duration);

    /// Whether somebody depends on a look every millisecond, though nothing runs.
    fn needs_ticks(&self) -> bool;

    /// Called every millisecond while something runs.
    fn tick(&self);
}

impl<J: Queued> Scheduler<J> {
    pub(crate) fn new(max_threads: usize) -> Scheduler<J> {
        Scheduler {
            ready: ReadyQueue::default(),
            threads: Threads::new(max_threads),
            cadence: Cadence::default(),
            monitor: Monitor::default(),
        }
    }

    pub(crate) fn ready(&self) -> &ReadyQueue<J> {
        &self.ready
    }

    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// What the threads do at this moment.
    pub(crate) fn now(&self) -> Snapshot {
        self.threads.now()
    }

    /// Puts something into the ready queue, and lets somebody know, unless this thread deals with events and is going to look.
    pub(crate) fn schedule(&self, job: J, site: &impl Site) {
        self.ready.push(job);
        self.notify(site);
    }

    /// Lets somebody know that the ready queue has got something, unless this thread deals with events and is going to look.
    pub(crate) fn notify(&self, site: &impl Site) {
        if !Dispatching::is_here() {
            self.threads.announce(site);
        }
    }

    /// Makes sure that the monitor looks. One load in the usual case.
    pub(crate) fn wake_monitor(&self) {
        self.monitor.look();
    }

    /// Ends the monitor's poll, if it is the one that polls.
    pub(crate) fn relieve_monitor(&self, worker: &Worker) {
        self.monitor.release_reactor(&worker.poller);
    }

    /// A poll is over: what is in the ready queue may run before the next one.
    pub(crate) fn polled(&self) {
        self.cadence.polled(self.ready.len());
    }
}
