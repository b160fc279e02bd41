//! Sockets, reactor and scheduling: serves the requests of any [`App`], a request at a time.
//!
//! # Layout
//! From below; each knows only what stands above it here, which `docs/architecture.md` lists and a test checks.
//! * `clock.rs`, `home.rs`, `sync.rs`, `work_queue.rs`: small things that many need.
//! * `limits/`: what all peers together may take of descriptors, memory and disk, and how fast they have to be.
//! * `config.rs`: what an engine is told.
//! * `transport/`: sockets, and what the kernel says of them.
//! * `http/`: what requests and responses are, whatever carries them.
//! * `observe/`: the log and the access log.
//! * `cluster/`: what all workers share: the waiting room, and the scoreboard with the statistics.
//! * `worker.rs`: what all parts of one engine share.
//! * `pubsub/`: takes what is published to all who subscribed, in every worker.
//! * `spool/`: what of responses waits for clients, and the native thread that writes temporary files.
//! * `stream/`: a request and its response, over a transport.
//! * `connection/`: one peer: bytes to requests, responses to bytes, and whether it is too slow.
//! * `realtime/`: the connections that stay: WebSockets, event streams, streaming responses.
//! * `files/`: what lies on disk, before the app is asked or because it has named it.
//! * `exchange/`: one request that is answered, by the app or from disk.
//! * `app.rs`: what a language has to bring.
//! * `scheduler/`: the queue of what is ready, the loop of a thread, the states of all threads and who wakes whom, and the
//!   monitor, a native thread that helps when all of them are busy.
//! * `reactor/`: polls, accepts, and has dealt with what has happened.
//! * `engine/`: puts all of this together; [`Engine`] is what a program sees of it.
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
mod engine;
mod exchange;
#[cfg(test)]
mod fault;
mod files;
mod home;
mod http;
mod limits;
mod observe;
#[cfg(test)]
mod over_memory;
pub mod pubsub;
mod reactor;
mod realtime;
mod scheduler;
mod spool;
mod stream;
mod sync;
mod transport;
mod work_queue;
mod worker;

pub use app::App;
pub use cluster::scoreboard::{Scoreboard, Slot, SLOTS};
pub use cluster::statistics::{Kind, Shown, Statistic, Stats};
pub use cluster::waiting_room::WaitingRoom;
pub use config::{Compression, Config, FilesConfig, Format, Logs, Overflow, Setting, Symlinks};
pub use engine::Engine;
pub use exchange::{Coder, Exchange, Gone, Until, Wait, LONG_BYTES};
pub use fairlead_wire::content_encoding::Coding;
pub use fairlead_wire::websocket::Context;
pub use fairlead_wire::{TargetForm, Version};
pub use home::{forks, note_fork};
pub use http::body::Body;
pub use http::request::Request;
pub use http::response::FieldError;
pub use limits::descriptors::Descriptors;
pub use limits::request_totals::RequestTotals;
pub use realtime::{Client, Event, Events, Offered, ProcessSubscription, Protocol};
pub use transport::listener::{Listener, Origin};
