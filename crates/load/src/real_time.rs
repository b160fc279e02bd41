//! WebSockets and event streams: many of them on one thread.
//!
//! `crowd` is the event loop, which opens the sockets and keeps them. `session` is one socket: its handshake, then its
//! messages, parsed in place. `outbox` has the data to send. An `activity` uses the sessions: `echo`, `idle`, and
//! `broadcast` beside this module. Every socket is opened once: if it is refused, breaks a rule or is closed by the
//! server, it is counted by the kind of its end (`ending`) and not replaced.

pub(crate) mod activity;
pub(crate) mod crowd;
pub(crate) mod echo;
pub(crate) mod ending;
pub(crate) mod idle;
pub(crate) mod outbox;
pub(crate) mod session;

use ending::Endings;
use serde::Serialize;

/// Socket counts of any run.
#[derive(Debug, Serialize)]
pub(crate) struct Sockets {
    /// Requested sockets.
    pub(crate) asked: usize,
    /// Handshakes that succeeded.
    pub(crate) opened: usize,
    /// Sockets of `opened` that count as subscribed (see `--ready`).
    pub(crate) subscribed: usize,
    /// Sockets of `subscribed` that were still open at the end.
    pub(crate) left: usize,
    #[serde(skip)]
    pub(crate) endings: Endings,
    #[serde(skip)]
    pub(crate) bytes: u64,
    /// `stop` was called before the end.
    #[serde(skip)]
    pub(crate) stopped: bool,
}

/// Results of a run.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) sockets: Sockets,
    pub(crate) task: T,
}

impl<T> Found<T> {
    /// Returns `true` if every socket was opened and none was lost.
    pub(crate) fn kept_all(&self) -> bool {
        self.sockets.subscribed == self.sockets.asked && self.sockets.endings.count() == 0
    }
}
