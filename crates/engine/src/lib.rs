//! Sockets, reactor and scheduling: serves the requests of any [`App`], a request at a time.
//!
//! # Layout
//! * [`Engine`] (`engine.rs`): what the threads of one worker share; `serve.rs` is the loop of a thread, `schedule/` has its
//!   states and the rules of who wakes whom, `watchdog.rs` is the native thread that helps when all of them are busy, `drain.rs`
//!   the way out.
//! * `reactor.rs` polls and expires; `accepting.rs` takes connections in, as `courtesy.rs` leaves them to other workers;
//!   `holding.rs` keeps the connections that it owns; `ready.rs` queues those that have a request to run.
//! * `connection.rs` is one peer: bytes to requests (`body.rs`), answers to bytes (`exchange.rs`, `output.rs`);
//!   `meter.rs` finds out whether it is too slow.
//! * `descriptors.rs` is what may be open for all peers together, `request_totals.rs` what their requests may take of memory and
//!   disk; `uploads.rs` has those that wait.
//! * `files/` serves what lies on disk before the app is asked, and what the app names; `sender.rs` is the native thread that
//!   sends it.
//! * `spool/` has what of answers waits for clients, and the native thread that writes temporary files.
//! * `realtime/` has the connections that stay: WebSockets, event streams, streaming answers. `tunnel.rs` is for sockets that
//!   are given away.
//! * `pubsub/` takes what is published to all who subscribed, in every worker.
//! * `memory.rs` gives back what a burst has left.
//! * `room.rs` and `board.rs` are shared by all workers: the waiting room and the counters. `guests.rs` sends there who waits,
//!   and takes in who comes from there.
//!
//! A connection is owned by exactly one of the reactor, the ready queue, or the thread that runs its request; it moves
//! as a `Box`, so it needs no lock of its own. Nothing here knows Ruby.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as fairlead_engine;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

mod accepting;
mod access_log;
mod board;
mod body;
mod clock;
mod config;
mod connection;
mod courtesy;
mod descriptors;
mod drain;
mod engine;
mod exchange;
mod fault;
mod files;
mod guests;
mod holding;
mod home;
mod journal;
mod listener;
mod memory;
mod meter;
mod output;
mod place;
mod poller;
pub mod pubsub;
mod reactor;
mod ready;
mod realtime;
mod request_totals;
mod room;
mod schedule;
mod sender;
mod serve;
mod spool;
mod stats;
mod sync;
mod tunnel;
mod uploads;
mod watchdog;
mod work_queue;

pub use access_log::Format;
pub use board::{Board, Slot, SLOTS};
pub use body::Body;
pub use config::{Compression, Config, FilesConfig, Logs, Overflow, Symlinks};
pub use descriptors::Descriptors;
pub use engine::Engine;
pub use exchange::{Coder, Exchange, FieldError, Gone, Until, Wait, LONG_BYTES};
pub use fairlead_wire::content_encoding::Coding;
pub use fairlead_wire::websocket::Context;
pub use fairlead_wire::{Field, Framing, Head, Span, TargetForm, Version};
pub use home::{forks, note_fork};
pub use listener::{Listener, Origin};
pub use realtime::{Client, Event, Events, Offered, ProcessSubscription, Protocol};
pub use request_totals::RequestTotals;
pub use room::Room;
pub use serve::App;
pub use stats::Stats;
