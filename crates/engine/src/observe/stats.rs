//! Figures of one worker, for people and for the other workers.

use crate::engine::Engine;
use std::sync::atomic::Ordering::Relaxed;

/// A snapshot; counters since the start of the worker, gauges of this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Open connections.
    pub connections: i64,
    /// Requests answered.
    pub requests: u64,
    /// Those of them that the public folder has answered, without the app.
    pub files: u64,
    /// Requests that wait for a thread.
    pub queued: usize,
    /// Threads that have been started.
    pub threads: usize,
    /// Threads that run the app.
    pub busy_threads: usize,
    /// Connections sent to other workers.
    pub moved_out: u64,
    /// Connections taken over from other workers.
    pub moved_in: u64,
    /// Requests refused by the server itself.
    pub refused_requests: u64,
    /// Connections for which there was no place.
    pub refused_connections: u64,
    /// Open clients: WebSockets, event streams, responses that go on.
    pub clients: u64,
    /// Events of clients and tasks that were run.
    pub events: u64,
    /// Bytes of messages of clients that wait for the app.
    pub pending_message_bytes: usize,
    /// Messages that were dropped because a client or a block did not keep up.
    pub dropped: u64,
    /// Clients that were closed for that.
    pub overflowed: u64,
    /// Messages published by this process.
    pub published: u64,
    /// Messages handed to subscribers.
    pub delivered: u64,
    /// Times that a publisher had to wait for another process.
    pub mail_waits: u64,
    /// Messages that another process did not take in time.
    pub mail_lost: u64,
    /// Log lines that were lost because their reader was too slow.
    pub lost_log_lines: u64,
}

impl Engine {
    /// The figures of this moment.
    pub fn stats(&self) -> Stats {
        let counters = self.counters();
        Stats {
            connections: counters.connections.load(Relaxed),
            requests: counters.requests.load(Relaxed),
            files: counters.files.load(Relaxed),
            queued: self.ready.len(),
            threads: self.threads.now().begun(),
            busy_threads: self.threads.now().busy(),
            moved_out: counters.moved_out.load(Relaxed),
            moved_in: counters.moved_in.load(Relaxed),
            refused_requests: counters.refused_requests.load(Relaxed),
            refused_connections: counters.refused_connections.load(Relaxed),
            clients: counters.clients.load(Relaxed).max(0) as u64,
            events: counters.events.load(Relaxed),
            pending_message_bytes: self.intake.bytes(),
            dropped: counters.dropped.load(Relaxed),
            overflowed: counters.overflowed.load(Relaxed),
            published: self.hub.counters().published.load(Relaxed),
            delivered: self.hub.counters().delivered.load(Relaxed),
            mail_waits: self.hub.counters().mail_waits.load(Relaxed),
            mail_lost: self.hub.counters().mail_lost.load(Relaxed),
            lost_log_lines: self.log.lost(),
        }
    }

    /// Writes the gauges to the scoreboard.
    pub(crate) fn publish_gauges(&self) {
        let counters = self.counters();
        counters.queued.store(self.ready.len() as u64, Relaxed);
        counters.busy_threads.store(self.threads.now().busy() as u64, Relaxed);
    }
}
