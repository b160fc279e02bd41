//! Sockets, reactor and scheduling: serves requests with any [`App`], one request at a time on each thread.
//!
//! # Layout
//! In dependency order: a module uses only modules listed before it. `docs/architecture.md` lists what each module
//! uses, and a test checks it.
//! * `clock.rs`, `home.rs`, `sync.rs`, `work_queue.rs`: time, forks, locks, and the queue of a native thread.
//! * `agenda.rs`: deadlines of which most are postponed.
//! * `limits/`: limits of all peers together (descriptors, memory, disk), and the minimum rate of each.
//! * `config.rs`: settings of an engine.
//! * `acme.rs`: responses to the challenges of certificate authorities.
//! * `tls/`: TLS settings of listeners, and the results of handshakes.
//! * `transport/`: sockets, TLS on them, and the kernel's poll set.
//! * `http/`: requests and responses, independent of the transport.
//! * `observe/`: the log and the access log.
//! * `cluster/`: memory that all workers share: the waiting room, and the scoreboard with the statistics.
//! * `worker.rs`: state that all parts of one engine share.
//! * `pubsub/`: delivers published messages to all subscribers, in every worker.
//! * `spool/`: the parts of responses that wait for clients, and the native thread that writes temporary files.
//! * `stream/`: a request and its response, over a transport.
//! * `files/`: files that are served before the app is called, or that the app has named.
//! * `connection/`: one peer: parses requests, sends responses, and checks deadlines and rates.
//! * `http2/`: HTTP/2 connections and their streams.
//! * `realtime/`: long-lived connections: WebSockets, event streams, streaming responses.
//! * `exchange/`: one request and its response, from the app or from disk.
//! * `app.rs`: the interface that a language has to implement.
//! * `scheduler/`: the ready queue, the loop of a thread, the states of all threads and the rules by which they wake
//!   each other, and the monitor, a native thread that helps when all of them are busy.
//! * `reactor/`: polls, accepts, and passes on events and timeouts.
//! * `engine/`: combines all modules; [`Engine`] is the interface for a program.
//!
//! Only tests use `fault.rs`, `over_memory.rs` and `slow_disk.rs`.
//!
//! A connection is owned by exactly one of the reactor, the ready queue, a native thread, or the thread that runs its
//! request. It moves as a `Box`, so it needs no lock of its own. Nothing here depends on Ruby.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as fairlead_engine;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

mod acme;
mod agenda;
mod app;
mod clock;
mod cluster;
mod config;
mod connection;
mod engine;
mod exchange;
#[cfg(test)]
mod fault;
mod files;
mod home;
mod http;
mod http2;
mod limits;
mod observe;
#[cfg(test)]
mod over_memory;
pub mod pubsub;
mod reactor;
mod realtime;
mod scheduler;
#[cfg(test)]
mod slow_disk;
mod spool;
mod stream;
mod sync;
mod tls;
mod transport;
mod work_queue;
mod worker;

pub use app::{App, Garbage, Lock, LockUse};
pub use cluster::histogram::{AtomicHistogram, Histogram};
pub use cluster::membership::Membership;
pub use cluster::pause::Pause;
pub use cluster::queues::{Heirs, SharedQueues, WaitingRoom};

/// The version of the state of clients that migrate: a process reads no other.
pub const CLIENT_FORMAT: u32 = realtime::CLIENT_FORMAT as u32;

pub use cluster::responses::{RequestKind, ResponseKind, ResponseSeries};
pub use cluster::running::{RunningRequest, RunningRequests, SHOWN_THREADS};
pub use cluster::scoreboard::{Scoreboard, Slot, SLOTS};
pub use cluster::statistics::{Figure, Kind, Shown, Statistic, Stats};
pub use config::{
    Compression, Config, FairBy, FilesConfig, Format, ForwardedFields, HttpsRedirect, LogSample, Logs, Overflow,
    RemoteAddress, Scheme, ServerTiming, Setting, Symlinks, TrustedProxies,
};
pub use engine::Engine;
pub use exchange::{Coder, Deadline, Exchange, Gone, Search, StartTime, Until, Wait, LONG_BYTES};
pub use fairlead_wire::content_encoding::Coding;
pub use fairlead_wire::websocket::Context;
pub use fairlead_wire::{ProxyVersions, TargetForm, Version};
pub use home::{forks, note_fork};
pub use http::body::Body;
pub use http::request::{Request, Waits};
pub use http::response::FieldError;
pub use limits::descriptors::Descriptors;
pub use limits::request_totals::RequestTotals;
pub use realtime::{
    Client, Event, Events, Handover, Offered, ProcessSubscription, Protocol, Retirement, SignedStreams, StreamOptions,
    StreamStart, Streamed,
};
pub use tls::{
    CertificateSettings, ClientAuthentication, Details, Fingerprint, Identity, Session, Source, TicketKeys, Tls,
    TlsSettings, Verification,
};
pub use transport::listener::{Listener, Origin};
pub use transport::{measure_send_queues, SendQueue};
