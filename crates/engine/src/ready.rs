//! The ready queue: connections that have one whole request to run, first come, first served.

use crate::connection::Connection;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[derive(Default)]
pub(crate) struct ReadyQueue {
    queue: Mutex<VecDeque<Box<Connection>>>,
    /// The length, readable without the lock; written only while it is held.
    length: AtomicUsize,
}

impl ReadyQueue {
    pub(crate) fn push(&self, connection: Box<Connection>) {
        let mut queue = self.queue.lock();
        queue.push_back(connection);
        self.length.store(queue.len(), SeqCst);
    }

    /// Puts back at its place in the order of arrival what could not leave.
    pub(crate) fn put_back(&self, connection: Box<Connection>) {
        let mut queue = self.queue.lock();
        queue.push_front(connection);
        self.length.store(queue.len(), SeqCst);
    }

    pub(crate) fn pop(&self) -> Option<Box<Connection>> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let connection = queue.pop_front();
        self.length.store(queue.len(), SeqCst);
        connection
    }

    /// Takes the oldest connection if its request came before `time` (nanoseconds).
    pub(crate) fn pop_older_than(&self, time: u64) -> Option<Box<Connection>> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        if queue.front()?.arrived() > time {
            return None;
        }
        let connection = queue.pop_front();
        self.length.store(queue.len(), SeqCst);
        connection
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
