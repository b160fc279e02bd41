//! Sockets, reactor and scheduling: serves the requests of any [`App`], a request at a time.
//!
//! # Layout
//! * [`Engine`] (`engine.rs`): what the threads of one worker share; `drain.rs` is the way out, `fault.rs` what a panic leaves.
//! * `scheduler/`: the queue of what is ready, the loop of a thread, the states of all threads and who wakes whom, and the
//!   monitor, a native thread that helps when all of them are busy.
//! * `reactor/`: polls, accepts and expires, keeps the connections that are parked, and sends files.
//! * `connection/`: one peer: bytes to requests, responses to bytes, and whether it is too slow.
//! * `http/`: one request and its response, as the app sees them, and sockets that it takes over.
//! * `limits/`: what all peers together may take of descriptors, memory and disk.
//! * `spool/`: what of responses waits for clients, and the native thread that writes temporary files.
//! * `files/`: what lies on disk, before the app is asked or because it has named it.
//! * `realtime/`: the connections that stay: WebSockets, event streams, streaming responses.
//! * `pubsub/`: takes what is published to all who subscribed, in every worker.
//! * `cluster/`: what all workers share: the waiting room, and the scoreboard with the statistics.
//! * `observe/`: the log and the access log.
//!
//! A connection is owned by exactly one of the reactor, the ready queue, or the thread that runs its request; it moves
//! as a `Box`, so it needs no lock of its own. Nothing here knows Ruby.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as fairlead_engine;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

mod app;
mod clock;
mod cluster;
mod config;
mod connection;
mod drain;
mod engine;
mod fault;
mod files;
mod home;
mod http;
mod limits;
mod observe;
pub mod pubsub;
mod reactor;
mod realtime;
mod scheduler;
mod spool;
mod sync;
mod work_queue;

pub use app::App;
pub use cluster::scoreboard::{Scoreboard, Slot, SLOTS};
pub use cluster::statistics::{Kind, Shown, Statistic, Stats};
pub use cluster::waiting_room::WaitingRoom;
pub use config::{Compression, Config, FilesConfig, Logs, Overflow, Symlinks};
pub use connection::body::Body;
pub use engine::Engine;
pub use fairlead_wire::content_encoding::Coding;
pub use fairlead_wire::websocket::Context;
pub use fairlead_wire::{Field, Framing, Head, Span, TargetForm, Version};
pub use home::{forks, note_fork};
pub use http::exchange::{Coder, Exchange, FieldError, Gone, Until, Wait, LONG_BYTES};
pub use limits::descriptors::Descriptors;
pub use limits::request_totals::RequestTotals;
pub use observe::access_log::Format;
pub use reactor::listener::{Listener, Origin};
pub use realtime::{Client, Event, Events, Offered, ProcessSubscription, Protocol};
