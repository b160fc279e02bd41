//! The connection under HTTP/2: its transport, and its part of the shared limits. Any thread may use it.

use crate::agenda::Agenda;
use crate::clock::{AtomicMillis, Millis};
use crate::http2::pipe::PipeState;
use crate::limits::budget::Budget;
use crate::spool::Spool;
use crate::sync::Mutex;
use crate::transport::poller::Key;
use crate::transport::Link;
use crate::worker::Worker;
use rustix::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

/// See the head of this file.
pub(super) struct Carrier {
    pub(super) key: Key,
    pub(super) worker: Arc<Worker>,
    pub(super) transport: Link,
    pub(super) pipe: Arc<PipeState>,
    /// Its part of the shared limits.
    pub(super) budget: Arc<Budget>,
    pub(super) spool: Arc<Spool>,
    /// Nothing can be sent or received any more. Set by the thread that has locked the core.
    pub(super) is_over: AtomicBool,
    /// The deadlines of all HTTP/2 connections.
    pub(super) agenda: Arc<Mutex<Agenda<Key>>>,
    /// The time for which the connection is in the agenda. Written only while the agenda is locked.
    pub(super) noted: AtomicMillis,
}

impl Carrier {
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }

    /// The time since when the client has taken nothing, if there is something to take.
    pub(super) fn stuck_since(&self) -> Option<Millis> {
        self.pipe.blocked_since().or_else(|| self.pipe.unsent.since())
    }

    /// Makes sure that the connection is checked at `deadline`. Costs a comparison in the usual case.
    pub(super) fn expect(&self, deadline: Millis) {
        self.worker.expect(deadline);
        if deadline < self.noted.load(SeqCst) {
            let mut agenda = self.agenda.lock();
            let noted = agenda.note(self.key, self.noted.load(SeqCst), deadline);
            self.noted.store(noted, SeqCst);
        }
    }

    /// The agenda, which is locked, does not have the connection any more.
    pub(super) fn is_not_noted(&self) {
        self.noted.store(Millis::NEVER, SeqCst);
    }

    /// Removes the connection from the agenda.
    pub(super) fn forget_deadline(&self) {
        let mut agenda = self.agenda.lock();
        agenda.remove(self.key, self.noted.load(SeqCst));
        self.is_not_noted();
    }

    /// Tells the poller which events to watch for.
    ///
    /// # Errors
    /// If the poller fails.
    pub(super) fn watch(&self, reads: bool, writes: bool) -> io::Result<()> {
        self.worker
            .poller
            .change_client(&self.transport, self.key, reads, writes)
    }
}
