//! Requests that wait because the server is paused (`cluster/pause.rs`), in the order of their arrival. They enter the
//! ready queue at the end of the pause, and are refused if they have waited for too long. Requests for `priority_paths`
//! and events of clients go on, and so do requests that have entered the ready queue before.

use super::job::Job;
use crate::clock::Nanos;
use crate::cluster::pause::Pause;
use crate::connection::Connection;
use crate::scheduler::{sweep, Scheduler};
use crate::sync::Mutex;
use crate::worker::Worker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// Requests that are checked in a tick.
const SWEPT: usize = 8;

/// See the head of this file.
pub(super) struct Held {
    worker: Arc<Worker>,
    scheduler: Arc<Scheduler<Job>>,
    requests: Mutex<VecDeque<Box<Connection>>>,
    /// Position at which the next [`Held::take_abandoned`] continues.
    swept_to: AtomicUsize,
    /// Their number, readable without the lock; written only while the lock is held.
    count: AtomicUsize,
}

impl Held {
    pub(super) fn new(scheduler: &Arc<Scheduler<Job>>) -> Arc<Held> {
        Arc::new(Held {
            worker: Arc::clone(scheduler.worker()),
            scheduler: Arc::clone(scheduler),
            requests: Mutex::default(),
            count: AtomicUsize::new(0),
            swept_to: AtomicUsize::new(0),
        })
    }

    /// Number of requests.
    pub(super) fn count(&self) -> usize {
        self.count.load(SeqCst)
    }

    /// The pause, while this worker takes part in it: a worker that ends does not.
    fn pause(&self) -> Option<&'static Pause> {
        let pause = self.worker.pause().filter(|pause| pause.is_on())?;
        (!self.worker.is_leaving()).then_some(pause)
    }

    /// True if no request has to wait any longer.
    pub(super) fn is_over(&self) -> bool {
        self.pause().is_none()
    }

    /// Keeps a request during a pause; otherwise returns it.
    pub(super) fn hold(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let concerns = |pause: &Pause| pause.concerns(connection.arrived());
        if connection.stream.is_urgent || !self.pause().is_some_and(concerns) {
            return Some(connection);
        }
        let mut requests = self.requests.lock();
        let arrived = connection.arrived();
        let later = requests.iter().rev().take_while(|other| other.arrived() > arrived);
        let index = requests.len() - later.count();
        requests.insert(index, connection);
        self.count.store(requests.len(), SeqCst);
        drop(requests);
        self.scheduler.wake_monitor(); // it notices the end
        None
    }

    /// Takes all requests, in their order.
    pub(super) fn take_all(&self) -> VecDeque<Box<Connection>> {
        let mut requests = self.requests.lock();
        self.count.store(0, SeqCst);
        std::mem::take(&mut *requests)
    }

    /// Takes the requests of clients that have left, among the next few ones.
    pub(super) fn take_abandoned(&self) -> VecDeque<Box<Connection>> {
        let mut requests = self.requests.lock();
        let mut position = self.swept_to.load(Relaxed);
        let taken = sweep(&mut requests, &mut position, SWEPT, |next| {
            next.stream.has_left_or_ask()
        });
        self.swept_to.store(position, Relaxed);
        self.count.store(requests.len(), SeqCst);
        taken
    }

    /// Takes the next request that has waited for too long.
    pub(super) fn take_overdue(&self) -> Option<Box<Connection>> {
        let pause = self.pause()?;
        let mut requests = self.requests.lock();
        let first = requests.front()?.arrived();
        if Nanos::now() < pause.deadline(first) {
            return None;
        }
        let connection = requests.pop_front();
        self.count.store(requests.len(), SeqCst);
        connection
    }
}
