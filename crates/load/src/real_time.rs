//! WebSockets and event streams: many of them on one thread.
//!
//! `crowd` is the event loop; it opens the sockets and keeps them. `session` is one of them: its handshake, then its
//! messages, out of the bytes where they were read. `outbox` is what it has to send. An `activity` is what is done with
//! them: `echo`, `idle`, and `broadcast` beside this module. Every socket is opened once: one that is refused, breaks a
//! rule or is closed by the server is counted by what happened (`ending`) and not replaced.

pub(crate) mod activity;
pub(crate) mod crowd;
pub(crate) mod echo;
pub(crate) mod ending;
pub(crate) mod idle;
pub(crate) mod outbox;
pub(crate) mod session;

use ending::Endings;
use serde::Serialize;

/// What all runs have in common.
#[derive(Debug, Serialize)]
pub(crate) struct Sockets {
    /// Wanted.
    pub(crate) asked: usize,
    /// Handshakes that succeeded.
    pub(crate) opened: usize,
    /// Of these, counted as subscribed (see `--ready`).
    pub(crate) subscribed: usize,
    /// Of these, still there at the end.
    pub(crate) left: usize,
    #[serde(skip)]
    pub(crate) endings: Endings,
    #[serde(skip)]
    pub(crate) bytes: u64,
    /// `stop` was called before the end.
    #[serde(skip)]
    pub(crate) stopped: bool,
}

/// What a run found.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) sockets: Sockets,
    pub(crate) task: T,
}

impl<T> Found<T> {
    /// Whether every socket was opened and none was lost.
    pub(crate) fn kept_all(&self) -> bool {
        self.sockets.subscribed == self.sockets.asked && self.sockets.endings.count() == 0
    }
}
