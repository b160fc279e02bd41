//! Requests that wait for a thread, and are not worth a thread any more: because they have waited too long, because the
//! server is overloaded, or because their client has left. A thread checks each request at its turn; the monitor checks
//! requests that wait while no thread is free.
//!
//! * `queue_timeout` limits the wait of each request.
//! * `queue_target`: while even the shortest wait of an interval exceeds it, requests that have waited twice as long are
//!   refused ([`QueueDelay`]). The others are then served in time, instead of all of them too late.
//! * `queue_limit` limits the length of the queue.
//!
//! Requests for `priority_paths` are never refused. With turns by flow, the requests of the flow that has used most wait
//! longest, so they are refused first; and the flow with most waiting requests loses one if the queue is too long.

use super::job::Job;
use super::migration::{AbandonedRequests, Admission};
use super::record;
use super::sink::Move;
use super::without_app::WithoutApp;
use crate::clock::{AtomicMillis, Millis, Nanos};
use crate::cluster::queue_delay::{QueueDelay, Target};
use crate::cluster::queues::WaitingRoom;
use crate::config::fair_by::Flow;
use crate::connection::{Connection, Next};
use crate::http::refusal::Refusal;
use crate::scheduler::Scheduler;
use crate::worker::Worker;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// Wait after which a client may have lost its patience: only then a system call finds out if it has left.
const SHORT: Duration = Duration::from_millis(10);

/// Waiting requests that the monitor checks in a tick.
const SWEPT: usize = 8;

/// Pause after a request of the waiting room that is never refused.
const ROOM_PAUSE: Duration = Duration::from_secs(1);

/// See the head of this file.
pub(super) struct Overload {
    worker: Arc<Worker>,
    scheduler: Arc<Scheduler<Job>>,
    admission: Arc<Admission>,
    without_app: Arc<WithoutApp>,
    abandoned: Arc<AbandonedRequests>,
    /// The wait in the queue of a single process.
    own: QueueDelay,
    /// The waiting room is left alone until this time.
    next_room_check: AtomicMillis,
    target: Option<Target>,
}

/// Time since when a request has waited for the server. A client of HTTP/2 that sends many requests at once makes them
/// wait for each other; a proxy sends requests of many clients.
fn waits_since(connection: &Connection) -> Nanos {
    match connection.stream.peers.is_trusted() {
        true => connection.arrived(),
        false => connection.waits_since(),
    }
}

/// The reason why a request is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    Refused(Refusal),
    /// Its client has left.
    Abandoned,
}

impl Overload {
    pub(super) fn new(
        scheduler: &Arc<Scheduler<Job>>,
        admission: &Arc<Admission>,
        without_app: &Arc<WithoutApp>,
        abandoned: &Arc<AbandonedRequests>,
    ) -> Overload {
        let worker = Arc::clone(scheduler.worker());
        let (wait, interval) = (worker.config.queue_target, worker.config.queue_interval);
        Overload {
            scheduler: Arc::clone(scheduler),
            admission: Arc::clone(admission),
            without_app: Arc::clone(without_app),
            abandoned: Arc::clone(abandoned),
            own: QueueDelay::default(),
            next_room_check: AtomicMillis::new(Millis::LONG_AGO),
            target: (!wait.is_zero()).then_some(Target { wait, interval }),
            worker,
        }
    }

    /// Checks a request that a thread is about to run. Returns its next move if it is not run.
    pub(super) fn check_turn(&self, connection: Box<Connection>, now: Nanos) -> Result<Box<Connection>, Move> {
        // An urgent request overtakes the others: its wait says nothing about them.
        if let Some(target) = self.target.filter(|_| !connection.stream.is_urgent) {
            self.delay().note(now - waits_since(&connection), now, target);
        }
        if connection.stream.is_abandoned() {
            return Err(self.drop(connection, Dropped::Abandoned));
        }
        if now - connection.arrived() <= SHORT {
            return Ok(connection);
        }
        self.check(connection, now)
    }

    /// Checks a request that has waited for long.
    fn check(&self, mut connection: Box<Connection>, now: Nanos) -> Result<Box<Connection>, Move> {
        if let Some(refusal) = self.refusal(&connection, now) {
            return Err(self.drop(connection, Dropped::Refused(refusal)));
        }
        match connection.stream.has_left_or_ask() {
            true => Err(self.drop(connection, Dropped::Abandoned)),
            false => Ok(connection),
        }
    }

    /// Checks some of the requests that wait in this worker. Returns the next moves of the dropped ones. Called every
    /// millisecond while a thread runs something.
    pub(super) fn sweep(&self) -> Vec<Move> {
        let ready = self.scheduler.ready();
        if ready.is_empty() {
            return Vec::new();
        }
        let now = Nanos::now();
        self.note_standstill(now);
        let mut leaves = |job: &mut Job| match job {
            Job::Request(connection) if now - connection.arrived() > SHORT => {
                self.refusal(connection, now).is_some() || connection.stream.has_left_or_ask()
            }
            _ => false,
        };
        let dropped = ready.sweep(SWEPT, &mut leaves).into_iter();
        let dropped = dropped.filter_map(|job| match job {
            Job::Request(connection) => Some(connection),
            _ => None,
        });
        let dropped = dropped.map(|connection| match self.refusal(&connection, now) {
            Some(refusal) => self.drop(connection, Dropped::Refused(refusal)),
            None => self.drop(connection, Dropped::Abandoned),
        });
        dropped.collect()
    }

    /// Notes the wait of the next request, because no other request may leave the queue before the interval ends.
    fn note_standstill(&self, now: Nanos) {
        let (Some(target), Some(since)) = (self.target, self.scheduler.ready().first_waits_since()) else {
            return;
        };
        // The wait has not ended: a shorter one would say nothing.
        if now - since > target.wait {
            self.delay().note(now - since, now, target);
        }
    }

    /// Notes clients that have left while their requests are in the waiting room.
    pub(super) fn look_at_room(&self) {
        self.admission
            .waiting_room()
            .into_iter()
            .for_each(|room| self.abandoned.look(room));
    }

    /// True if the first request in the waiting room would be refused: no worker has a free thread for it.
    pub(super) fn is_room_overdue(&self) -> bool {
        if !self.admission.has_requests() || Millis::now() < self.next_room_check.load(Relaxed) {
            return false;
        }
        let Some(limit) = self.longest_wait() else { return false };
        let first = self.admission.waiting_room().and_then(WaitingRoom::first_waits_since);
        first.is_some_and(|since| Nanos::now() - since > limit)
    }

    /// True if a request that has waited for others of its connection until now has waited for so long that it will be refused.
    pub(super) fn is_overdue(&self, connection: &Connection) -> bool {
        self.refusal(connection, connection.waits_since()).is_some()
    }

    /// Drops a request that waits elsewhere, because its client has left.
    pub(super) fn abandon(&self, connection: Box<Connection>) -> Move {
        self.drop(connection, Dropped::Abandoned)
    }

    /// Leaves the waiting room alone for a while: its first request has waited for long, and is not refused.
    pub(super) fn pass_over_room(&self) {
        self.next_room_check.store(Millis::now() + ROOM_PAUSE, Relaxed);
    }

    /// Refuses a request if the queue is too long, because a request of `flow` has joined it. With turns by flow, the few requests in
    /// the waiting room do not count: none of them could leave instead of the first request of another flow.
    pub(super) fn keep_to_limit(&self, flow: Option<Flow>) -> Option<Move> {
        let (limit, ready) = (self.worker.config.queue_limit, self.scheduler.ready());
        if limit == 0 {
            return None;
        }
        let room = self.admission.waiting_room();
        let room = room.filter(|_| !self.worker.config.fair_by.has_flows());
        let in_room = room.map_or(0, |room| room.scoreboard().waiting() as usize);
        let excess = (ready.ordinary() + in_room).saturating_sub(limit);
        if excess == 0 || (excess <= in_room && room.is_some_and(|room| self.abandoned.are_in(room, excess))) {
            return None;
        }
        match ready.pop_last(flow)? {
            Job::Request(connection) => Some(self.drop(connection, Dropped::Refused(Refusal::QueueFull))),
            _ => None,
        }
    }

    /// The reason to refuse a request that waits.
    fn refusal(&self, connection: &Connection, now: Nanos) -> Option<Refusal> {
        if connection.stream.is_urgent {
            return None;
        }
        let timeout = self.worker.config.queue_timeout;
        if !timeout.is_zero() && now - connection.arrived() > timeout {
            return Some(Refusal::QueueTimeout);
        }
        let limit = self.limit_of_overload()?;
        (now - waits_since(connection) > limit).then_some(Refusal::Overload)
    }

    /// The shortest of the limits that apply now.
    fn longest_wait(&self) -> Option<Duration> {
        let timeout = Some(self.worker.config.queue_timeout).filter(|timeout| !timeout.is_zero());
        timeout.into_iter().chain(self.limit_of_overload()).min()
    }

    /// The longest wait while the server is overloaded.
    fn limit_of_overload(&self) -> Option<Duration> {
        let target = self.target.filter(|_| self.delay().is_standing())?;
        Some(target.wait * 2)
    }

    fn delay(&self) -> &QueueDelay {
        match self.worker.shared() {
            Some((scoreboard, _)) => &scoreboard.queue_delay,
            None => &self.own,
        }
    }

    fn drop(&self, mut connection: Box<Connection>, dropped: Dropped) -> Move {
        connection.stream.request.begin(Nanos::now());
        let next = match dropped {
            Dropped::Refused(refusal) => self.without_app.decline(&mut connection, refusal),
            Dropped::Abandoned => {
                self.worker.counters().abandoned_requests.fetch_add(1, Relaxed);
                record::abandoned(&self.worker, &connection);
                Next::Close
            }
        };
        Move::Settle(connection, next)
    }
}
