//! The ready queue: what a thread of the app can run, first come, first served: whole requests, events of clients, what
//! was published for the process, tasks.

use crate::connection::Connection;
use crate::realtime::{Client, ProcessSubscription};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

/// One turn.
pub(crate) enum Job {
    /// A connection with a whole request.
    Request(Box<Connection>),
    /// A client with at least one event.
    Client(Arc<Client>),
    /// Something was published for the process.
    Subscription(Arc<ProcessSubscription>),
    /// Something of the app's own.
    Task,
}

#[derive(Default)]
pub(crate) struct ReadyQueue {
    queue: Mutex<VecDeque<Job>>,
    /// The length, readable without the lock; written only while it is held.
    length: AtomicUsize,
}

impl ReadyQueue {
    pub(crate) fn push(&self, job: Job) {
        let mut queue = self.queue.lock();
        queue.push_back(job);
        self.length.store(queue.len(), SeqCst);
    }

    /// Puts back at its place in the order of arrival what could not leave.
    pub(crate) fn put_back(&self, connection: Box<Connection>) {
        let mut queue = self.queue.lock();
        queue.push_front(Job::Request(connection));
        self.length.store(queue.len(), SeqCst);
    }

    pub(crate) fn pop(&self) -> Option<Job> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let job = queue.pop_front();
        self.length.store(queue.len(), SeqCst);
        job
    }

    /// Takes the oldest request if it came before `time` (nanoseconds).
    pub(crate) fn pop_older_than(&self, time: u64) -> Option<Box<Connection>> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let is_request = |job: &Job| matches!(job, Job::Request(_));
        let index = queue.iter().position(is_request)?;
        if matches!(&queue[index], Job::Request(connection) if connection.arrived() > time) {
            return None;
        }
        let job = queue.remove(index);
        self.length.store(queue.len(), SeqCst);
        match job {
            Some(Job::Request(connection)) => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
