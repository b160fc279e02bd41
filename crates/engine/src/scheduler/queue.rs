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

/// Places that are kept when a burst is over.
const USUAL_PLACES: usize = 64;

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
        let is_younger = |job: &Job| matches!(job, Job::Request(other) if other.arrived() > connection.arrived());
        let index = queue.iter().position(is_younger).unwrap_or(0);
        queue.insert(index, Job::Request(connection));
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

    /// Takes the oldest request but `skipped` ones if it came before `time` (nanoseconds).
    pub(crate) fn pop_older_than(&self, time: u64, skipped: usize) -> Option<Box<Connection>> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let is_request = |(_, job): &(usize, &Job)| matches!(job, Job::Request(_));
        let (index, _) = queue.iter().enumerate().filter(is_request).nth(skipped)?;
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

    /// Gives back places that a burst has left.
    pub(crate) fn shrink(&self) {
        self.queue.lock().shrink_to(USUAL_PLACES);
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::place::Place;
    use crate::limits::descriptors::Counted;
    use crate::reactor::listener::Origin;
    use rustix::event::{eventfd, EventfdFlags};

    /// Requests that came one after another, by their keys.
    fn queue(count: u64) -> ReadyQueue {
        let queue = ReadyQueue::default();
        let origin = Arc::new(Origin {
            scheme: "http".into(),
            host: "localhost".into(),
            port: 80,
            unix: true,
        });
        for key in 0..count {
            let socket = Arc::new(Counted::alone(eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor")));
            let connection = Connection::new(socket, Place::nowhere(key), Arc::clone(&origin), None, 0);
            queue.push(Job::Request(Box::new(connection.complete_at(key))));
            queue.push(Job::Task);
        }
        queue
    }

    fn keys(queue: &ReadyQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop())
            .filter_map(|job| match job {
                Job::Request(connection) => Some(connection.key()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn who_cannot_leave_lets_the_next_one_go_and_keeps_its_place() {
        let queue = queue(4);
        let first = queue.pop_older_than(9, 0).expect("the first");
        let second = queue.pop_older_than(9, 0).expect("the second");
        queue.put_back(second);
        queue.put_back(first);
        let third = queue.pop_older_than(9, 2).expect("the third");
        assert_eq!(third.key(), 2);
        assert_eq!(keys(&queue), [0, 1, 3]);
    }

    #[test]
    fn only_what_has_waited_since_before_a_time_is_taken() {
        let queue = queue(3);
        assert!(queue.pop_older_than(1, 2).is_none());
        assert!(queue.pop_older_than(9, 3).is_none());
        assert_eq!(queue.pop_older_than(1, 1).expect("the second").key(), 1);
    }
}
