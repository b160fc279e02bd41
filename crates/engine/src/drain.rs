//! The way out: serving, draining, stopped.
//!
//! Draining stops the listeners, answers what has arrived with `connection: close`, gives idle connections a moment in
//! which a request that is already on its way still arrives, and ends when the last connection is gone.

use crate::engine::Engine;
use crate::reactor::file_sender::FileSender;
use crate::scheduler::monitor::Monitor;
use crate::scheduler::queue::Job;
use crate::spool::Spool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an idle connection stays open after draining began.
pub(crate) const DRAIN_IDLE_MILLISECONDS: u64 = 250;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Lifecycle {
    Serving,
    Draining,
    Stopped,
}

impl Engine {
    /// Starts the native threads of this worker. `hands_over` as in [`App::hands_over`](crate::App::hands_over).
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn start(self: &Arc<Self>, hands_over: bool) -> std::io::Result<()> {
        FileSender::start(self)?;
        Spool::start(self)?;
        Monitor::start(self, hands_over)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.phase.load(Relaxed) != Lifecycle::Serving as u8
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.phase.load(Relaxed) == Lifecycle::Stopped as u8
    }

    /// Stops accepting and ends when all that has arrived is answered. Returns at once.
    pub fn drain(&self) {
        self.counters().serving.store(0, SeqCst);
        let _ = self
            .phase
            .compare_exchange(Lifecycle::Serving as u8, Lifecycle::Draining as u8, SeqCst, SeqCst);
        self.dismiss_clients();
        self.interrupt();
        self.monitor.look();
    }

    /// Closes every connection and ends; requests that run are finished, but their responses may be lost. Returns at once.
    pub fn stop(&self) {
        self.counters().serving.store(0, SeqCst);
        self.phase.store(Lifecycle::Stopped as u8, SeqCst);
        let held = self.parked.lock().take_all();
        held.into_iter().for_each(|connection| self.close(connection));
        self.stop_helpers();
        self.empty_queue();
        self.end_clients();
        // If a thread polls, it is woken by what follows and does this itself.
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.close_listeners(self);
        }
        self.finish();
    }

    fn stop_helpers(&self) {
        let sending = self.file_sender.stop();
        let storing = self.spool.stop();
        let left = sending.into_iter().chain(storing);
        left.for_each(|connection| self.close(connection));
    }

    pub(crate) fn empty_queue(&self) {
        while let Some(job) = self.ready.pop() {
            if let Job::Request(connection) = job {
                self.close(connection);
            }
        }
    }

    /// Waits until every connection is gone, at the most for `timeout`; false if some are left.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut finished = self.finished.0.lock();
        while !*finished {
            match until {
                None => self.finished.1.wait(&mut finished),
                Some(until) if self.finished.1.wait_until(&mut finished, until).timed_out() => return *finished,
                Some(_) => {}
            }
        }
        true
    }

    /// Waits until what was logged so far is written, though not for ever: the descriptors may then be closed.
    pub fn flush_logs(&self) {
        self.log.flush();
    }

    /// Ends draining when nothing is left to answer, here or, if nobody else serves it, in the waiting room.
    pub(crate) fn finish_if_drained(&self) {
        if self.is_draining() && !self.awaits_transfers() && self.counters().connections.load(Relaxed) <= 0 {
            // The listeners have been emptied only if idle connections were given their deadline.
            if self.drain_deadline.load(Relaxed) != u64::MAX || self.is_stopped() {
                self.phase.store(Lifecycle::Stopped as u8, SeqCst);
                self.finish();
            }
        }
    }

    fn finish(&self) {
        self.stop_helpers();
        self.publish_gauges();
        *self.finished.0.lock() = true;
        self.finished.1.notify_all();
        self.interrupt();
        self.monitor.look();
    }
}
