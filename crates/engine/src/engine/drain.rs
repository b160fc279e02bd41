//! The end of an engine.
//!
//! ```text
//!   serving ──leave──▶ leaving ──drain──▶ draining ──no connection is left──▶ stopped
//!      ├───────────────drain──────────────────▲ ▲                              ▲
//!      └──retire──▶ handing off ──no other worker serves──┘                     │
//!                        └──────────────no connection is left──────────────────┘     stop: from each of them
//! ```
//! An engine that leaves still accepts, but each response ends its connection, so that clients go elsewhere.
//! Draining stops the listeners and answers what has arrived with `connection: close`. Idle connections stay open for a
//! moment, in which a request on its way may still arrive. Listeners that end with the engine are shut down, because processes that the
//! app has forked have copies. An engine that retires answers without that, and hands its
//! connections to other workers (`sharing/handoff.rs`). Both end when it has no connection any more.
//!
//! Nothing of this happens in a process that the app has forked: it has the same poll set and sockets.

use super::job::Job;
use super::Engine;
use crate::app::Lock;
use crate::scheduler::start_monitor;
use crate::transport::poller::Dispatching;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Engine {
    /// Starts the native threads of this worker. `lock` is that of the language of the app.
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn start(self: &Arc<Self>, lock: Box<dyn Lock>) -> std::io::Result<()> {
        self.file_sender.start()?;
        self.look_ups.start()?;
        if self.endpoints.iter().any(|endpoint| endpoint.tls.is_some()) {
            self.handshakes.start()?;
        }
        self.services.spool.start(&self.worker)?;
        start_monitor(self, lock)
    }

    /// Ends each connection with its next response, and goes on accepting. Called before [`Engine::drain`], if at all.
    pub fn leave(&self) {
        if self.is_at_home() {
            self.worker.begin_leave();
        }
    }

    /// Names the listeners, by their inodes, that end with this engine: nobody is to accept there any more. They are shut down when they
    /// have been emptied, or the engine is stopped, so that processes that the app has forked do not keep them open. Called before [`Engine::drain`]
    /// or [`Engine::stop`], if at all.
    pub fn end_listeners(&self, inodes: &[u64]) {
        if self.is_at_home() {
            self.worker.end_listeners(inodes);
        }
    }

    /// Stops accepting, and ends when all requests that have arrived are answered. Returns at once.
    pub fn drain(&self) {
        self.begin_drain(false);
    }

    /// As [`Engine::drain`], in a worker that ends while others go on: these get its connections, as far as they have
    /// places for them.
    pub fn retire(&self) {
        self.begin_drain(true);
    }

    /// Retires if the supervisor has given this worker up: a thread that keeps the lock of the language, and that the app
    /// needs in order to hear of it, does not keep native threads from handing over the connections.
    pub(super) fn check_if_given_up(&self) {
        if self.counters().is_given_up() && !self.worker.is_draining() && self.is_at_home() {
            self.retire();
        }
    }

    fn begin_drain(&self, retires: bool) {
        if !self.is_at_home() {
            return;
        }
        self.worker.begin_drain(retires);
        self.services.realtime.announce_shutdown();
        self.interrupt();
        self.scheduler.wake_monitor();
    }

    /// Closes every connection and ends. Running requests are finished, but their responses may be lost. Returns at
    /// once.
    pub fn stop(&self) {
        if !self.is_at_home() {
            return;
        }
        self.worker.stop();
        // Before the sessions: their last frames may go over one.
        self.services.realtime.end_clients();
        let held = self.connections.parked().take_all();
        for connection in held {
            match connection.is_flushing() {
                true => self.cut(connection),
                false => self.close(connection),
            }
        }
        self.sessions.stop();
        self.stop_helpers();
        self.empty_queue();
        // A thread that polls is woken below and closes the listeners itself.
        if let Some(mut reactor) = self.reactor.try_lock() {
            reactor.close_listeners(self);
        }
        self.finish();
    }

    fn stop_helpers(&self) {
        let sent = self.file_sender.stop();
        sent.into_iter().for_each(|connection| self.cut(connection));
        let begun = self.handshakes.stop();
        begun.into_iter().for_each(|connection| self.close(connection));
        self.look_ups.stop();
        self.services.spool.stop();
    }

    pub(super) fn empty_queue(&self) {
        for job in self.scheduler.ready().take_all() {
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
            let Some(until) = until else {
                self.finished.1.wait(&mut finished);
                continue;
            };
            if self
                .finished
                .1
                .wait_for(&mut finished, until.saturating_duration_since(Instant::now()))
            {
                return *finished;
            }
        }
        true
    }

    /// Waits until all earlier log lines are written, but for a limited time; later lines are lost. True if nothing uses
    /// the descriptors of the logs any more.
    pub fn close_logs(&self) -> bool {
        self.worker.log.close()
    }

    /// Ends draining if nothing is left to answer here, nor in the waiting room if no other worker serves it.
    pub(super) fn finish_if_drained(&self) {
        let worker = &self.worker;
        if !worker.is_draining() || worker.counters().connections.load(Relaxed) > 0 {
            return;
        }
        if self.admission.awaits_transfers() {
            return;
        }
        if self.admission.awaits_handoffs() {
            // The poller takes them over. If this is its thread, it looks before the next poll.
            if !Dispatching::is_here() {
                worker.poller.wake();
            }
            return;
        }
        // The listeners have been emptied only if idle connections have got their deadline.
        if worker.drain_deadline().is_some() || worker.is_stopped() {
            worker.stop();
            self.finish();
        }
    }

    fn finish(&self) {
        self.stop_helpers();
        self.statistics.write_gauges();
        *self.finished.0.lock() = true;
        self.finished.1.notify_all();
        self.interrupt();
        self.scheduler.wake_monitor();
    }
}
