//! Figures of one worker, for people and for the other workers.

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
