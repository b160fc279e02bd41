//! The start and the end of an engine, see `drain.rs`.

use super::Engine;
use crate::app::Lock;
use crate::scheduler::start_monitor;
use std::time::Duration;

impl Engine {
    /// Starts the native threads of this worker. `lock`: the lock of the language of the app.
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn start(&self, lock: Box<dyn Lock>) -> std::io::Result<()> {
        self.parts.start()?;
        start_monitor(&self.jobs, lock)
    }

    /// Ends each connection with its next response, and goes on accepting. Called before [`Engine::drain`], if at all.
    pub fn leave(&self) {
        if self.is_at_home() {
            self.parts.worker.begin_leave();
        }
    }

    /// Names the listeners, by their inodes, that end with this engine: nobody is to accept there any more. They are shut down when they
    /// have been emptied, or the engine is stopped, so that processes that the app has forked do not keep them open. Called before [`Engine::drain`]
    /// or [`Engine::stop`], if at all.
    pub fn end_listeners(&self, inodes: &[u64]) {
        if self.is_at_home() {
            self.parts.worker.end_listeners(inodes);
        }
    }

    /// Stops accepting, and ends when all requests that have arrived are answered. Returns at once.
    pub fn drain(&self) {
        self.moves.begin_drain(false);
    }

    /// As [`Engine::drain`], in a worker that ends while others go on: these get its connections, as far as they have
    /// places for them.
    pub fn drain_and_migrate(&self) {
        self.moves.begin_drain(true);
    }

    /// Closes every connection and ends. Running requests are finished, but their responses may be lost. Returns at
    /// once.
    pub fn stop(&self) {
        if !self.is_at_home() {
            return;
        }
        self.moves.stop();
        // A thread that polls is woken below and closes the listeners itself.
        self.jobs.close_listeners();
        self.moves.finish();
    }

    /// Waits until every connection is closed, for at most `timeout`. False if some are left.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        self.moves.wait(timeout)
    }

    /// Waits until all earlier log lines are written, but for a limited time; later lines are lost. True if nothing uses
    /// the descriptors of the logs any more.
    pub fn close_logs(&self) -> bool {
        self.parts.worker.log.close()
    }
}
