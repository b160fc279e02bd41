//! End of the engine: begins a drain, and closes the remaining connections after the drain, or at once.

use super::Moves;
use crate::engine::ends;
use crate::engine::job::Job;
use crate::realtime::Retirement;
use std::time::Duration;

impl Moves {
    /// Stops accepting. `retirement`: other workers continue, and get the connections.
    pub(in crate::engine) fn begin_drain(&self, retirement: Option<Retirement>) {
        let worker = &self.parts.worker;
        if !worker.is_at_home() {
            return;
        }
        let is_patient = retirement.is_some_and(|retirement| retirement.patient);
        worker.begin_drain(retirement.is_some(), is_patient);
        self.parts.client_migration.begin(retirement.unwrap_or_default());
        self.parts.scheduler.interrupt();
        self.parts.scheduler.wake_monitor();
    }

    /// Retires if the supervisor has given up this worker. The app may not be able to report this, if one of its
    /// threads keeps the lock of the language. Native threads migrate the connections nevertheless.
    pub(in crate::engine) fn check_if_given_up(&self) {
        let worker = &self.parts.worker;
        if worker.counters().is_given_up() && !worker.is_draining() && worker.is_at_home() {
            self.begin_drain(Some(Retirement::default()));
        }
    }

    /// Puts a task of the app into the ready queue.
    pub(in crate::engine) fn defer(&self) {
        self.parts.scheduler.schedule(Job::Task(self.drain.await_task()));
    }

    /// Ends the engine if it has drained. Called after each step that may have ended a connection, and after
    /// each task.
    pub(in crate::engine) fn end_if_drained(&self) {
        if self.drain.is_over() {
            self.parts.worker.stop();
            self.finish();
        }
    }

    /// Closes every connection. [`Moves::finish`] must follow.
    pub(in crate::engine) fn stop(&self) {
        let parts = &self.parts;
        parts.worker.stop();
        // Before the HTTP/2 connections: the last frames of clients may go over them.
        parts.services.realtime.end_clients();
        let held = parts.connections.parked().take_all();
        for connection in held {
            match connection.is_flushing() {
                true => ends::cut(connection),
                false => drop(connection),
            }
        }
        parts.http2.stop();
        self.stop_native_threads();
        self.empty_queue();
    }

    /// Ends the native threads, the waits of the app's threads, and [`Moves::wait`].
    pub(in crate::engine) fn finish(&self) {
        self.stop_native_threads();
        self.parts.statistics.write_gauges();
        self.drain.finish();
        self.parts.scheduler.interrupt();
        self.parts.scheduler.wake_monitor();
    }

    /// Waits at most `timeout` until every connection is closed. Returns false if some are left.
    pub(in crate::engine) fn wait(&self, timeout: Option<Duration>) -> bool {
        self.drain.wait(timeout)
    }

    fn stop_native_threads(&self) {
        let sent = self.parts.file_sender.stop();
        sent.into_iter().for_each(ends::cut);
        drop(self.parts.handshakes.stop());
        self.parts.look_ups.stop();
        self.parts.services.body_sender.stop();
        self.parts.services.spool.stop();
    }

    pub(super) fn empty_queue(&self) {
        drop(self.parts.scheduler.ready().take_all());
        drop(self.parts.held.take_all());
    }
}
