//! Statistics: one table of everything that is counted. The atomics of a [`Slot`](crate::Slot), the snapshot [`Stats`],
//! and the names and texts for people are generated from it. A new statistic is one row here, and the line that counts
//! it.

/// Calls another macro with the table, in the order in which people see it.
///
/// * `Counter`: only grows while the process lives. `Gauge`: the current value; the engine stores some gauges only on
///   request and on each tick of its monitor. `Histogram`: the number of times up to each bound; it only grows, too.
/// * `Engine`: each engine counts for itself. `Process`: all engines of a process count together.
/// * `Everywhere`, `Engines`, `Nowhere`: see [`Shown`].
macro_rules! statistics {
    ($macro:ident) => {
        $macro! {
            connections: Gauge, Engine, Everywhere, "Open connections.";
            open_http2_connections: Gauge, Engine, Everywhere, "Open connections that use HTTP/2.";
            requests: Counter, Engine, Everywhere, "Requests served, by the application or from `public_dir`.";
            files: Counter, Engine, Engines, "Requests served from `public_dir`.";
            queued: Gauge, Engine, Everywhere, "Requests that wait for a thread.";
            queued_clients: Gauge, Engine, Engines, "Clients with requests that wait for a thread, if `fair_by` tells clients apart.";
            overtaken: Counter, Engine, Everywhere, "Requests for `priority_paths` that went ahead of others.";
            threads: Gauge, Engine, Everywhere, "Threads that have started.";
            busy_threads: Gauge, Engine, Everywhere, "Threads that run the application.";
            idle_threads: Gauge, Engine, Engines, "Threads that do not run the application.";
            queue_time: Histogram, Engine, Everywhere, "Time that each request of the application waited for a thread, without its time in the waiting room.";
            waiting_room_time: Histogram, Engine, Everywhere, "Time that each request spent in the waiting room, if it went through it.";
            lock_wait: Histogram, Engine, Everywhere, "Total time that the thread of each request waited for Ruby's lock; empty before Ruby 3.2.";
            time_slices: Counter, Engine, Everywhere, "Number of times that Ruby's lock was taken from a thread after a `time_slice`.";
            moved_out: Counter, Engine, Everywhere, "Connections sent to the waiting room.";
            moved_in: Counter, Engine, Everywhere, "Connections taken from the waiting room.";
            handed_off: Counter, Engine, Everywhere, "Connections that migrated to other workers in a drain.";
            taken_over: Counter, Engine, Everywhere, "Connections taken over from draining workers.";
            refused_requests: Counter, Engine, Everywhere, "Requests refused with a 4xx or 5xx by the server itself.";
            timed_out_requests: Counter, Engine, Everywhere, "Requests that got a 504 because the application had not responded within `request_timeout`.";
            abandoned_requests: Counter, Engine, Everywhere, "Requests that were dropped while they waited, because their clients had left.";
            refused_connections: Counter, Engine, Everywhere, "Connections refused because of `max_connections` or too few descriptors.";
            handshakes: Counter, Engine, Everywhere, "TLS handshakes.";
            resumed_handshakes: Counter, Engine, Everywhere, "TLS handshakes that resumed an earlier session.";
            failed_handshakes: Counter, Engine, Everywhere, "Connections that ended during their TLS handshake.";
            http2_connections: Counter, Engine, Everywhere, "Connections that have spoken HTTP/2.";
            http2_requests: Counter, Engine, Everywhere, "Requests over HTTP/2.";
            http2_violations: Counter, Engine, Everywhere, "HTTP/2 connections closed because the client violated the protocol.";
            http2_slow: Counter, Engine, Everywhere, "HTTP/2 connections closed because the client was too slow to send a frame or to read, or had to give way.";
            http2_reset_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because the client reset too many streams.";
            http2_provoked_reset_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because the client made the server reset too many streams.";
            http2_settings_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because of too many SETTINGS frames.";
            http2_ping_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because of too many PING frames.";
            http2_priority_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because of too many frames without effect, such as PRIORITY.";
            http2_window_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because of too many WINDOW_UPDATE frames for the sent data.";
            http2_continuation_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because of too many CONTINUATION frames.";
            http2_empty_data_floods: Counter, Engine, Everywhere, "HTTP/2 connections closed because of too many DATA frames with little or no data.";
            clients: Gauge, Engine, Everywhere, "Open clients: WebSockets, event streams, and responses that continue after the request.";
            websockets: Gauge, Engine, Everywhere, "Open WebSockets.";
            event_streams: Gauge, Engine, Everywhere, "Open streams of server-sent events.";
            immovable: Gauge, Engine, Everywhere, "Open clients that cannot migrate, and connections that the application has ever hijacked.";
            messages_received: Counter, Engine, Everywhere, "Messages of WebSockets received.";
            messages_sent: Counter, Engine, Everywhere, "Messages and events that the application has sent to single clients; `delivered` counts published ones.";
            events: Counter, Engine, Everywhere, "Events and deferred blocks run.";
            pending_message_bytes: Gauge, Engine, Everywhere, "Bytes of messages of clients that wait for callbacks.";
            dropped: Counter, Engine, Everywhere, "Messages dropped because a client or a block did not keep up.";
            overflowed: Counter, Engine, Everywhere, "Clients closed because they did not keep up.";
            channels: Gauge, Engine, Everywhere, "Channels with subscribers in this process.";
            subscriptions: Gauge, Engine, Everywhere, "Subscriptions in this process, to channels and patterns.";
            refused_subscriptions: Counter, Engine, Everywhere, "Subscriptions of clients refused because of `max_subscriptions` or a total.";
            published: Counter, Process, Everywhere, "Messages published.";
            delivered: Counter, Process, Everywhere, "Messages delivered to subscribers.";
            mail_sent: Counter, Process, Nowhere, "Messages sent to other processes.";
            mail_received: Counter, Process, Nowhere, "Messages received from other processes.";
            mail_waits: Counter, Process, Everywhere, "Number of times that a publisher waited for the full mailbox of another process.";
            mail_lost: Counter, Process, Everywhere, "Messages that another process did not take in time, or that could not be read.";
            response_memory_bytes: Gauge, Engine, Everywhere, "Memory that unsent responses take.";
            response_disk_bytes: Gauge, Engine, Everywhere, "Space in the temporary folder that unsent responses take.";
            request_memory_bytes: Gauge, Engine, Everywhere, "Memory that requests take, in all engines of the process.";
            request_disk_bytes: Gauge, Engine, Everywhere, "Space in the temporary folder that request bodies take, in all engines of the process.";
            limit_connections: Gauge, Engine, Everywhere, "Most open connections: `max_connections`.";
            limit_threads: Gauge, Engine, Everywhere, "Most threads: `max_threads`.";
            limit_response_memory_bytes: Gauge, Engine, Everywhere, "Most memory for unsent responses: `response_memory_total_bytes`.";
            limit_response_disk_bytes: Gauge, Engine, Everywhere, "Most space for unsent responses: `response_disk_total_bytes`.";
            limit_request_memory_bytes: Gauge, Engine, Everywhere, "Most memory for requests.";
            limit_request_disk_bytes: Gauge, Engine, Everywhere, "Most space for request bodies.";
            gc_runs: Counter, Engine, Everywhere, "Garbage collections of the process.";
            gc_milliseconds: Counter, Engine, Everywhere, "Time of these garbage collections, in milliseconds.";
            lost_log_lines: Counter, Engine, Everywhere, "Log lines lost because the disk or the pipe was too slow, or failed.";
            lost_log_bytes: Counter, Engine, Everywhere, "Bytes of lost log lines.";
        }
    };
}
pub(crate) use statistics;

use super::histogram::Histogram;

/// Row of the table, without its value.
#[derive(Clone, Copy, Debug)]
pub struct Statistic {
    /// Name, the same everywhere.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: Kind,
    /// Places where it is shown.
    pub shown: Shown,
    /// Description: a sentence.
    pub help: &'static str,
}

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Current value.
    Gauge,
    /// Total since the start.
    Counter,
    /// Times since the start, by their length.
    Histogram,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Value of a gauge or a counter.
    Number(i64),
    /// Value of a histogram.
    Histogram(Histogram),
}

impl From<i64> for Figure {
    fn from(number: i64) -> Figure {
        Figure::Number(number)
    }
}

impl From<u64> for Figure {
    fn from(number: u64) -> Figure {
        Figure::Number(number as i64)
    }
}

impl From<Histogram> for Figure {
    fn from(histogram: Histogram) -> Figure {
        Figure::Histogram(histogram)
    }
}

/// Places where people see a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In the statistics of an engine, in its own process, and in the statistics of all workers.
    Everywhere,
    /// In the statistics of an engine only.
    Engines,
    /// In tests and examples only.
    Nowhere,
}

macro_rules! value {
    (Gauge) => {
        i64
    };
    (Counter) => {
        u64
    };
    (Histogram) => {
        Histogram
    };
}

macro_rules! stats {
    ($($name:ident: $kind:ident, $owner:ident, $shown:ident, $help:literal;)*) => {
        const TABLE: &[Statistic] = &[$(Statistic {
            name: stringify!($name),
            kind: Kind::$kind,
            shown: Shown::$shown,
            help: $help,
        },)*];

        /// Snapshot of the statistics of one engine.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $(#[doc = $help] pub $name: value!($kind),)*
        }

        impl Stats {
            /// All values, in the order of the table.
            pub fn iter(&self) -> impl Iterator<Item = (&'static Statistic, Figure)> {
                TABLE.iter().zip([$(Figure::from(self.$name),)*])
            }
        }
    };
}
statistics!(stats);

impl Stats {
    /// Histograms among the values.
    pub fn histograms(&self) -> impl Iterator<Item = (&'static Statistic, Histogram)> {
        self.iter().filter_map(|(statistic, figure)| match figure {
            Figure::Histogram(histogram) => Some((statistic, histogram)),
            Figure::Number(_) => None,
        })
    }
}

impl Statistic {
    /// Statistics of a process, in the order of the table.
    pub const fn all() -> &'static [Statistic] {
        TABLE
    }
}
