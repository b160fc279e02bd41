//! Start and end of an engine, see `drain.rs`.

use super::Engine;
use crate::app::Lock;
use crate::cluster::queues::Heirs;
use crate::realtime::Retirement;
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

    /// Ends each connection with its next response, but still accepts new ones. If called, call it before
    /// [`Engine::drain`].
    pub fn leave(&self) {
        if self.is_at_home() {
            self.parts.worker.begin_leave();
        }
    }

    /// Names the listeners, by their inodes, that end with this engine: no other process is to accept connections there
    /// any more. They are shut down when they have been emptied, or when the engine is stopped, so that processes that
    /// the app has forked do not keep them open. If called, call it before [`Engine::drain`] or [`Engine::stop`].
    pub fn end_listeners(&self, inodes: &[u64]) {
        if self.is_at_home() {
            self.parts.worker.end_listeners(inodes);
        }
    }

    /// Stops accepting, and ends after the responses to all requests that have arrived. Returns at once.
    pub fn drain(&self) {
        self.moves.begin_drain(None);
    }

    /// As [`Engine::drain`], in a worker that ends while other workers continue: its connections migrate to the others,
    /// as far as these have free slots.
    pub fn drain_and_migrate(&self) {
        self.retire(Retirement::default());
    }

    /// As [`Engine::drain_and_migrate`], with the time for clients that cannot migrate. A second call may shorten it.
    pub fn retire(&self, retirement: Retirement) {
        self.moves.begin_drain(Some(retirement));
    }

    /// Lets workers of another release continue with the connections and clients of this engine. Call it before
    /// [`Engine::retire`].
    pub fn set_heirs(&self, heirs: Heirs) {
        if self.is_at_home() {
            self.parts.worker.set_heirs(heirs);
        }
    }

    /// Closes every connection and ends. Running requests are finished, but their responses may be lost. Returns at
    /// once.
    pub fn stop(&self) {
        if !self.is_at_home() {
            return;
        }
        self.moves.stop();
        // If a thread polls, it is woken below and closes the listeners itself.
        self.jobs.close_listeners();
        self.moves.finish();
    }

    /// Waits at most `timeout` until every connection is closed. Returns false if some are left.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        self.moves.wait(timeout)
    }

    /// Waits for a limited time until all earlier log lines are written; later lines are lost. Returns true if the
    /// descriptors of the logs are no longer in use.
    pub fn close_logs(&self) -> bool {
        self.parts.worker.log.close()
    }
}
