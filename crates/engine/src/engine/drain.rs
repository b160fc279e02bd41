//! The way out: serving, draining, stopped.
//!
//! Draining stops the listeners, answers what has arrived with `connection: close`, gives idle connections a moment in
//! which a request that is already on its way still arrives, and ends when the last connection is gone.

use super::file_sender::FileSender;
use super::jobs::Job;
use super::Engine;
use crate::scheduler::start_monitor;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Engine {
    /// Starts the native threads of this worker. `hands_over` as in [`App::hands_over`](crate::App::hands_over).
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn start(self: &Arc<Self>, hands_over: bool) -> std::io::Result<()> {
        FileSender::start(self)?;
        self.services.spool.start(&self.worker)?;
        start_monitor(self, hands_over)
    }

    /// Stops accepting and ends when all that has arrived is answered. Returns at once.
    pub fn drain(&self) {
        self.worker.begin_drain();
        self.services.realtime.announce_shutdown();
        self.interrupt();
        self.scheduler.wake_monitor();
    }

    /// Closes every connection and ends; requests that run are finished, but their responses may be lost. Returns at once.
    pub fn stop(&self) {
        self.worker.stop();
        let held = self.connections.parked().take_all();
        held.into_iter().for_each(|connection| self.close(connection));
        self.stop_helpers();
        self.empty_queue();
        self.services.realtime.end_clients();
        // If a thread polls, it is woken by what follows and does this itself.
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.close_listeners(self);
        }
        self.finish();
    }

    fn stop_helpers(&self) {
        let left = self.file_sender.stop();
        left.into_iter().for_each(|connection| self.close(connection));
        self.services.spool.stop();
    }

    pub(super) fn empty_queue(&self) {
        while let Some(job) = self.scheduler.ready().pop() {
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
        self.worker.log.flush();
    }

    /// Ends draining when nothing is left to answer, here or, if nobody else serves it, in the waiting room.
    pub(super) fn finish_if_drained(&self) {
        let worker = &self.worker;
        if worker.is_draining() && !self.awaits_transfers() && worker.counters().connections.load(Relaxed) <= 0 {
            // The listeners have been emptied only if idle connections were given their deadline.
            if worker.drain_deadline().is_some() || worker.is_stopped() {
                worker.stop();
                self.finish();
            }
        }
    }

    fn finish(&self) {
        self.stop_helpers();
        self.write_gauges();
        *self.finished.0.lock() = true;
        self.finished.1.notify_all();
        self.interrupt();
        self.scheduler.wake_monitor();
    }
}
