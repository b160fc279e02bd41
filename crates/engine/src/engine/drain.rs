//! The end of an engine: serving, leaving, draining, stopped.
//!
//! An engine that leaves still accepts, but each response ends its connection, so that clients go elsewhere.
//! Draining stops the listeners and answers what has arrived with `connection: close`. Idle connections stay open for a
//! moment, in which a request on its way may still arrive. Draining ends when the last connection is closed.

use super::file_sender::FileSender;
use super::jobs::Job;
use super::Engine;
use crate::app::Lock;
use crate::scheduler::start_monitor;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Engine {
    /// Starts the native threads of this worker. `lock` is that of the language of the app.
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn start(self: &Arc<Self>, lock: Box<dyn Lock>) -> std::io::Result<()> {
        FileSender::start(self)?;
        self.services.spool.start(&self.worker)?;
        start_monitor(self, lock)
    }

    /// Ends each connection with its next response, and goes on accepting. Called before [`Engine::drain`], if at all.
    pub fn leave(&self) {
        self.worker.begin_leave();
    }

    /// Stops accepting, and ends when all requests that have arrived are answered. Returns at once.
    pub fn drain(&self) {
        self.worker.begin_drain();
        self.services.realtime.announce_shutdown();
        self.interrupt();
        self.scheduler.wake_monitor();
    }

    /// Closes every connection and ends. Running requests are finished, but their responses may be lost. Returns at
    /// once.
    pub fn stop(&self) {
        self.worker.stop();
        let held = self.connections.parked().take_all();
        held.into_iter().for_each(|connection| self.close(connection));
        self.stop_helpers();
        self.empty_queue();
        self.services.realtime.end_clients();
        // A thread that polls is woken below and closes the listeners itself.
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

    /// Waits until every connection is closed, for at most `timeout`. False if some are left.
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

    /// Waits until all earlier log lines are written, but for a limited time. The descriptors may be closed afterwards.
    pub fn flush_logs(&self) {
        self.worker.log.flush();
    }

    /// Ends draining if nothing is left to answer here, nor in the waiting room if no other worker serves it.
    pub(super) fn finish_if_drained(&self) {
        let worker = &self.worker;
        if worker.is_draining() && !self.awaits_transfers() && worker.counters().connections.load(Relaxed) <= 0 {
            // The listeners have been emptied only if idle connections have got their deadline.
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
