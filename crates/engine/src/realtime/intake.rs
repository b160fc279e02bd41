//! The bytes that all clients of an engine have sent and the app has not processed yet: their limit, and the clients
//! that are read again without an event of the poller.
//!
//! ```text
//!            own inbox full                        an event of it has run
//!   read ────────────────────▶ paused ─────────────────────────────────────────┐
//!    ▲ │     all inboxes full                there is room, longest wait first ▼
//!    │ ├────────────────────▶ paused, in the queue ────────────────────────▶ resumed
//!    │ └─ turn over ─▶ behind ◀── bytes were read and not decoded ─────────────┤
//!    └────────────────────┴───────────── the poller reports more to read ──────┘
//! ```
//! A paused client is not read; its data stays in the kernel's buffer and slows its peer down.

use super::client::Client;
use crate::sync::Mutex;
use crate::transport::poller::{Dispatching, Poller};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

#[derive(Default)]
struct ClientQueue {
    clients: Mutex<VecDeque<Arc<Client>>>,
    /// The length, readable without the lock; written only while the lock is held.
    length: AtomicUsize,
}

impl ClientQueue {
    fn push(&self, client: Arc<Client>) {
        let mut clients = self.clients.lock();
        clients.push_back(client);
        self.length.store(clients.len(), SeqCst);
    }

    fn pop(&self) -> Option<Arc<Client>> {
        if self.len() == 0 {
            return None;
        }
        let mut clients = self.clients.lock();
        let client = clients.pop_front();
        self.length.store(clients.len(), SeqCst);
        client
    }

    fn len(&self) -> usize {
        self.length.load(SeqCst)
    }
}

/// See the head of this file.
pub(crate) struct Intake {
    most_bytes: usize,
    /// Bytes of the messages in all inboxes, and of the messages that the app is processing.
    bytes: AtomicUsize,
    /// Clients that have undecoded bytes and may continue.
    behind: ClientQueue,
    /// Clients that continue when there is room in `bytes`.
    waiting: ClientQueue,
}

impl Intake {
    pub(crate) fn new(most_bytes: usize) -> Intake {
        Intake {
            most_bytes,
            bytes: AtomicUsize::new(0),
            behind: ClientQueue::default(),
            waiting: ClientQueue::default(),
        }
    }

    /// Bytes of messages that wait for the app or are processed.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    /// Bytes that may still be added.
    pub(super) fn room(&self) -> usize {
        self.most_bytes.saturating_sub(self.bytes())
    }

    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, SeqCst);
    }

    /// Subtracts bytes that the app has processed.
    pub(super) fn remove(&self, bytes: usize, poller: &Poller) {
        let before = self.bytes.fetch_sub(bytes, SeqCst);
        debug_assert!(before >= bytes, "{bytes} of {before} waiting bytes were processed");
        self.call_in(poller);
    }

    /// Lets a client wait for room.
    pub(super) fn wait(&self, client: Arc<Client>, poller: &Poller) {
        self.waiting.push(client);
        // A thread that has made room in between has not seen this client in the queue.
        self.call_in(poller);
    }

    /// Makes the poller decode the rest of a client's bytes in its next turn.
    pub(super) fn read_on(&self, client: Arc<Client>, poller: &Poller) {
        self.behind.push(client);
        if !Dispatching::is_here() {
            poller.wake();
        }
    }

    fn call_in(&self, poller: &Poller) {
        if self.waiting.len() > 0 && self.room() > 0 && !Dispatching::is_here() {
            poller.wake();
        }
    }

    /// Returns true if the poller has a client to read.
    pub(crate) fn is_due(&self) -> bool {
        self.behind.len() > 0 || (self.waiting.len() > 0 && self.room() > 0)
    }

    /// The number of clients in both queues.
    pub(crate) fn len(&self) -> usize {
        self.behind.len() + self.waiting.len()
    }

    /// The next client to be read.
    pub(crate) fn next(&self) -> Option<Arc<Client>> {
        if let Some(client) = self.behind.pop() {
            return Some(client);
        }
        if self.room() == 0 {
            return None;
        }
        let client = self.waiting.pop()?;
        client.leave_queue();
        Some(client)
    }
}
