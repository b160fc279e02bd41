//! Detects that an engine has drained, and that it has ended.
//!
//! ```text
//!   serving ──leave──▶ leaving ──drain──▶ draining ──no connection is left──▶ stopped
//!      ├───────────────drain──────────────────▲ ▲                              ▲
//!      └──retire──▶ migrating ────no other worker serves──┘                     │
//!                        └──────────────no connection is left──────────────────┘     stop: from each of them
//! ```
//! An engine that leaves still accepts connections, but each response ends its connection, so that clients connect to
//! other workers.
//!
//! Draining closes the listeners and responds to all requests that have arrived, with `connection: close`. Idle
//! connections stay open for a moment, because a request may still be on its way. Listeners that end with the engine
//! are shut down, because processes that the app has forked have copies of them. An engine that retires does not send
//! `connection: close`; it migrates its connections to other workers (`migration/connections.rs`). Either engine ends when it
//! has no connections left, and all tasks of the app have run.
//!
//! A process that the app has forked does none of this: it shares the poll set and the sockets of its parent.

use super::migration::Admission;
use crate::sync::{Condvar, Mutex};
use crate::transport::poller::Dispatching;
use crate::worker::Worker;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the head of this file.
pub(super) struct Drain {
    worker: Arc<Worker>,
    admission: Arc<Admission>,
    /// Number of tasks of the app that wait or run.
    tasks: Arc<AtomicUsize>,
    is_finished: Mutex<bool>,
    finished: Condvar,
}

/// A task of the app that waits or runs; counted until it is dropped.
pub(super) struct AwaitedTask(Arc<AtomicUsize>);

impl Drop for AwaitedTask {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Drain {
    pub(super) fn new(worker: &Arc<Worker>, admission: &Arc<Admission>) -> Drain {
        Drain {
            worker: Arc::clone(worker),
            admission: Arc::clone(admission),
            tasks: Arc::default(),
            is_finished: Mutex::default(),
            finished: Condvar::new(),
        }
    }

    /// Counts a task that is about to wait.
    pub(super) fn await_task(&self) -> AwaitedTask {
        self.tasks.fetch_add(1, SeqCst);
        AwaitedTask(Arc::clone(&self.tasks))
    }

    /// True if the engine drains, has no response left to send, and no task of the app waits or runs. Requests in the waiting
    /// room count if no other worker serves it. Called after each step that may have ended a connection; usually costs one load.
    pub(super) fn is_over(&self) -> bool {
        let worker = &self.worker;
        if !worker.is_draining() || worker.counters().connections.load(Relaxed) > 0 {
            return false;
        }
        if self.tasks.load(SeqCst) > 0 && !worker.is_stopped() {
            return false;
        }
        if worker.keeps_hijacked() || self.admission.awaits_requests() {
            return false;
        }
        if self.admission.awaits_clients() {
            return false;
        }
        if self.admission.awaits_connections() {
            // The poller takes over these requests. If this is its thread, it checks before the next poll.
            if !Dispatching::is_here() {
                worker.poller.wake();
            }
            return false;
        }
        // Idle connections get their deadline only after the listeners have been emptied.
        worker.drain_deadline().is_some() || worker.is_stopped()
    }

    /// Notes that the engine has ended.
    pub(super) fn finish(&self) {
        *self.is_finished.lock() = true;
        self.finished.notify_all();
    }

    /// Waits at most `timeout` for the end of the engine. Returns false if the engine has not ended.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> bool {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut is_finished = self.is_finished.lock();
        while !*is_finished {
            let Some(until) = until else {
                self.finished.wait(&mut is_finished);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if self.finished.wait_for(&mut is_finished, left) {
                return *is_finished;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Millis;
    use crate::config::Logs;
    use crate::support::{config, PATIENCE};
    use crate::worker::Count;

    fn drain() -> (Arc<Worker>, Drain) {
        let worker = Arc::new(Worker::new(config(), Logs::default(), None).expect("a poll set"));
        let drain = Drain::new(&worker, &Admission::new(&worker, None));
        (worker, drain)
    }

    #[test]
    fn a_drain_is_over_when_the_listeners_are_empty_and_no_connection_is_left() {
        let (worker, drain) = drain();
        assert!(!drain.is_over(), "the engine serves");
        worker.begin_drain(false, false);
        assert!(!drain.is_over(), "connections may wait at the listeners");
        worker.set_drain_deadline(Millis::now());
        let connection = Count::connection(&worker);
        assert!(!drain.is_over(), "a connection is open");
        drop(connection);
        assert!(drain.is_over());
    }

    #[test]
    fn a_drain_is_not_over_while_a_task_waits_unless_the_engine_is_stopped() {
        let (worker, drain) = drain();
        let [first, second] = [(); 2].map(|()| drain.await_task());
        worker.begin_drain(false, false);
        worker.set_drain_deadline(Millis::now());
        drop(first);
        assert!(!drain.is_over());
        drop(second);
        assert!(drain.is_over());
        let _third = drain.await_task();
        worker.stop();
        assert!(drain.is_over(), "it has had its time");
    }

    #[test]
    fn a_patient_drain_is_not_over_while_the_app_may_use_a_hijacked_connection() {
        let (worker, drain) = drain();
        worker.note_hijack();
        worker.begin_drain(true, true);
        worker.set_drain_deadline(Millis::now());
        assert!(!drain.is_over());
        worker.begin_drain(true, false);
        assert!(drain.is_over(), "another drain has the usual time");
    }

    #[test]
    fn a_stopped_engine_does_not_wait_for_its_listeners() {
        let (worker, drain) = drain();
        worker.stop();
        assert!(drain.is_over());
    }

    #[test]
    fn a_wait_lasts_until_the_engine_has_ended() {
        let (_, drain) = drain();
        assert!(!drain.wait(Some(Duration::ZERO)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| drain.wait(Some(PATIENCE)));
            drain.finish();
            assert!(waits.join().expect("no panic"));
        });
        assert!(drain.wait(Some(Duration::ZERO)));
    }
}
