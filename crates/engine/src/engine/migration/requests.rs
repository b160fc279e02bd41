//! Migration of requests: takes requests from the waiting room, and sends requests there.
//!
//! The kernel wakes one worker for each request, so a worker that leaves a request to others wakes another worker. A
//! request that was taken out and cannot be served is refused or logged, never lost silently.

use super::admission::NONE;
use super::outgoing::outgoing;
use super::{AbandonedRequests, Admission, IncomingConnections, Relays};
use crate::clock::{AtomicMillis, Millis, Nanos};
use crate::cluster::queues::{IncomingMigration, OutgoingMigration, Received, Sent, Stage, WaitingRoom};
use crate::connection::adopting::Adopted;
use crate::connection::Connection;
use crate::engine::ends;
use crate::engine::job::Job;
use crate::engine::sink::Sink;
use crate::http::refusal::Refusal;
use crate::limits::descriptors::Counted;
use crate::scheduler::{Position, Scheduler, PATIENCE};
use crate::transport::listener::{refuse, Endpoint, NO_PLACE};
use crate::transport::{AfterResponse, Link, RelayedSocket, Socket};
use crate::worker::Worker;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Time for a worker that was woken for a request. Then another worker is woken, because the thread may be waiting for
/// the lock of the language.
const PROMISE: Duration = Duration::from_millis(2);

/// If threads are shared by flow: most requests in the waiting room.
const MOST_OFFERED: u64 = 4;

/// If threads are shared by flow: time for which a request waits for its turn before it is offered to other workers.
const OFFER_PATIENCE: Duration = Duration::from_nanos(1_000_000);

/// If threads are shared by flow: pause between two offers of requests that leave free threads to others.
const HELD_BACK: Duration = Duration::from_millis(20);

/// Most requests that are too long for the waiting room at the moment, before the search for one that may leave ends.
const MOST_TOO_LONG: usize = 16;

/// See the head of this file.
pub(in crate::engine) struct RequestMigration {
    worker: Arc<Worker>,
    scheduler: Arc<Scheduler<Job>>,
    admission: Arc<Admission>,
    arrivals: Arc<IncomingConnections>,
    relays: Arc<Relays>,
    abandoned: Arc<AbandonedRequests>,
    /// Time since when this worker has been about to take a request: the kernel has woken no other worker for it.
    promised_since: AtomicMillis,
    /// Time from which on a request that leaves the free threads here to others may be offered.
    next_offer: AtomicMillis,
}

impl RequestMigration {
    pub(in crate::engine) fn new(
        scheduler: &Arc<Scheduler<Job>>,
        admission: &Arc<Admission>,
        arrivals: &Arc<IncomingConnections>,
        relays: &Arc<Relays>,
        abandoned: &Arc<AbandonedRequests>,
    ) -> RequestMigration {
        RequestMigration {
            worker: Arc::clone(scheduler.worker()),
            scheduler: Arc::clone(scheduler),
            admission: Arc::clone(admission),
            arrivals: Arc::clone(arrivals),
            relays: Arc::clone(relays),
            abandoned: Arc::clone(abandoned),
            promised_since: AtomicMillis::new(NONE),
            next_offer: AtomicMillis::new(NONE),
        }
    }
}

/// Signals between workers.
impl RequestMigration {
    /// Clears the signal of a worker that left a request to others. It has woken the poller.
    pub(in crate::engine) fn clear_signal(&self) {
        self.admission
            .waiting_room()
            .into_iter()
            .for_each(WaitingRoom::clear_signal);
    }

    /// Called when the poll that watched the waiting room has ended. It may have been woken for a request there; then
    /// no other worker was. This worker takes the request soon, or wakes another worker.
    pub(in crate::engine) fn promise(&self) {
        if !self.admission.is_room_occupied() {
            return;
        }
        if self.admission.serves_room() {
            self.promised_since.store(Millis::now(), SeqCst);
            self.scheduler.wake_monitor();
        } else {
            self.leave_to_others();
        }
    }

    /// True if a thread of this worker is about to take a request.
    pub(in crate::engine) fn has_promised(&self) -> bool {
        self.promised_since.load(SeqCst) != NONE
    }

    /// Wakes another worker if that thread is late. Called every millisecond while it is expected.
    pub(in crate::engine) fn check_promise(&self) {
        let promised_since = self.promised_since.load(SeqCst);
        if promised_since != NONE && Millis::now() >= promised_since + PROMISE {
            self.leave_to_others();
        }
    }

    fn leave_to_others(&self) {
        self.promised_since.store(NONE, SeqCst);
        self.admission.waiting_room().into_iter().for_each(WaitingRoom::signal);
    }
}

/// Requests to other workers.
impl RequestMigration {
    /// Sends requests that have waited for `patience` to the waiting room, because no thread here can run them.
    /// `by_flow`: threads are shared by flow.
    pub(in crate::engine) fn shed(&self, patience: Duration, by_flow: bool, sink: &dyn Sink) {
        let keeps_all = self.keeps_all();
        let has_room = self.admission.waiting_room().is_some();
        if !has_room || self.scheduler.ready().is_empty() || keeps_all {
            return;
        }
        if by_flow {
            return self.offer(patience, sink);
        }
        let time = Nanos::now() - patience;
        while self.move_out(time, sink) {}
    }

    /// True if this worker ends together with all others: then it responds to all its requests itself.
    fn keeps_all(&self) -> bool {
        self.worker.is_draining() && !self.worker.migrates()
    }

    /// Sends a request that is not in the ready queue to the waiting room. Returns it if it cannot migrate.
    pub(in crate::engine) fn move_one(&self, connection: Box<Connection>, sink: &dyn Sink) -> Option<Box<Connection>> {
        let (Some(room), Some((_, slot))) = (self.admission.waiting_room(), self.worker.shared()) else {
            return Some(connection);
        };
        if self.keeps_all() {
            return Some(connection);
        }
        match self.send_out(connection, room, slot, sink) {
            Ok(()) => {
                self.worker.counters().moved_out.fetch_add(1, Relaxed);
                None
            }
            Err((connection, _)) => Some(connection),
        }
    }

    /// As [`RequestMigration::shed`], if threads are shared by flow: keeps few requests in the waiting room, so that each of
    /// them is the next request of some worker. All others wait in the queues of their workers, which are fair.
    fn offer(&self, patience: Duration, sink: &dyn Sink) {
        if self.scheduler.ready().is_held_back() {
            // Threads are free here, and perhaps in the other workers, too.
            let now = Millis::now();
            if now < self.next_offer.load(Relaxed) {
                return;
            }
            self.next_offer.store(now + HELD_BACK, Relaxed);
        }
        let (patience, mut most) = match patience > OFFER_PATIENCE {
            // Jobs end sooner or later, and then take a request that another worker offers.
            true => (OFFER_PATIENCE, 1),
            false => (patience, MOST_OFFERED),
        };
        let time = Nanos::now() - patience;
        let is_wanted = || {
            let room = self.admission.waiting_room();
            room.is_none_or(|room| room.scoreboard().waiting() < MOST_OFFERED)
        };
        while most > 0 && is_wanted() && self.move_out(time, sink) {
            most -= 1;
        }
    }

    /// Returns the request that should leave next, if it has waited since before `time`. An urgent request leaves only
    /// if the waiting room is empty; here it is next.
    fn next_to_leave(&self, time: Nanos) -> Option<(Job, Position)> {
        let ready = self.scheduler.ready();
        let urgent = (ready.has_urgent() && !self.admission.is_room_occupied())
            .then(|| ready.pop_urgent_older_than(time))
            .flatten();
        urgent.or_else(|| ready.pop_older_than(time))
    }

    /// Sends the next request that should leave to the waiting room, if it can migrate and has waited since before
    /// `time`. Returns false if there is no such request, or the room is full.
    fn move_out(&self, time: Nanos, sink: &dyn Sink) -> bool {
        let (Some(room), Some((_, slot))) = (self.admission.waiting_room(), self.worker.shared()) else {
            return false;
        };
        let mut too_long = Vec::new();
        let mut is_room_full = false;
        let mut has_left = false;
        while !has_left && !is_room_full && too_long.len() < MOST_TOO_LONG {
            let Some((Job::Request(connection), position)) = self.next_to_leave(time) else {
                break;
            };
            match self.send_out(connection, room, slot, sink) {
                Ok(()) => has_left = true,
                // It returns to its place at once, and is not found again if it has to stay.
                Err((connection, sent)) if connection.stream.request.has_to_stay || sent != Sent::TooLong => {
                    is_room_full = sent != Sent::TooLong;
                    self.put_back(connection, position);
                }
                Err((connection, _)) => too_long.push((connection, position)),
            }
        }
        for (connection, position) in too_long.into_iter().rev() {
            self.put_back(connection, position);
        }
        if has_left {
            self.worker.counters().moved_out.fetch_add(1, Relaxed);
        }
        has_left
    }

    /// Puts a request that could not leave back in its position. Meanwhile a thread may have found no job, and waits.
    fn put_back(&self, connection: Box<Connection>, position: Position) {
        self.scheduler.ready().put_back(Job::Request(connection), position);
        self.scheduler.notify();
    }

    /// Sends a connection with its request, or only the request, if the connection has to stay.
    fn send_out(
        &self,
        connection: Box<Connection>,
        room: &WaitingRoom,
        slot: usize,
        sink: &dyn Sink,
    ) -> Result<(), (Box<Connection>, Sent)> {
        let send = |outgoing: OutgoingMigration<'_>| self.abandoned.send(outgoing, room, slot);
        let Some(outgoing) = outgoing(&connection) else {
            return self.relays.relay(connection, send, sink);
        };
        match send(outgoing) {
            Sent::Done => {
                ends::let_go(connection);
                Ok(())
            }
            sent => Err((connection, sent)),
        }
    }
}

/// Requests from other workers.
impl RequestMigration {
    /// True if this worker should take a request out of the waiting room now: the room has one, and the next job here
    /// has not waited longer.
    pub(in crate::engine) fn are_due(&self) -> bool {
        self.admission.has_requests() && !self.is_own_job_first()
    }

    /// True if the next job of this worker has waited longer than the first request in the waiting room.
    fn is_own_job_first(&self) -> bool {
        let Some(since) = self.scheduler.ready().first_waits_since() else {
            return false;
        };
        // Every request in the room has waited at least this long.
        if Nanos::now() < since + PATIENCE {
            return false;
        }
        let first = self.admission.waiting_room().and_then(WaitingRoom::first_waits_since);
        first.is_some_and(|first| since < first)
    }

    /// Takes the oldest request out of the waiting room.
    pub(in crate::engine) fn move_in(&self) -> Option<Box<Connection>> {
        let (Some(room), Some((_, slot))) = (self.admission.waiting_room(), self.worker.shared()) else {
            return None;
        };
        self.promised_since.store(NONE, SeqCst);
        match room.receive(slot) {
            Received::Migration(incoming) => return self.take_in(incoming),
            Received::Nobody if room.is_occupied() => self.admission.recheck_soon(),
            Received::Nobody => {}
            Received::Short => {
                self.admission.lack_descriptors("requests in the waiting room");
                self.leave_to_others();
            }
            Received::Spoiled(spoiled) => self.refuse(spoiled.socket, "out of file descriptors"),
        }
        None
    }

    fn take_in(&self, incoming: IncomingMigration) -> Option<Box<Connection>> {
        let IncomingMigration {
            socket,
            origin,
            peer,
            stage,
            ..
        } = incoming;
        let Stage::Request { arrived } = stage else { return None };
        let (back_channel, session) = (incoming.back_channel, incoming.session);
        let to_link = |_: &Endpoint, socket: Counted<OwnedFd>| -> Result<Link, &'static str> {
            let socket = Socket::new(socket);
            Ok(match back_channel {
                Some(back_channel) => {
                    Arc::new(RelayedSocket::new(socket, back_channel, session).in_turn(incoming.is_http2))
                }
                None => Arc::new(socket),
            })
        };
        let endpoint = self.arrivals.endpoint_of(origin, peer);
        let mut connection = match self.arrivals.connection_of(socket, endpoint, peer, None, to_link) {
            Ok(connection) => connection,
            Err((transport, reason)) => {
                transport
                    .iter()
                    .for_each(|transport| transport.give_back(AfterResponse::Close));
                self.refuse(transport, reason);
                return None;
            }
        };
        connection.await_proxy_header(incoming.awaited);
        connection.stream.request.body_wait = incoming.body_wait;
        connection.stream.request.waits.waiting_room = Nanos::now() - incoming.entered;
        let config = &self.worker.config;
        let request = Adopted {
            input: incoming.input,
            body: incoming.body,
            is_http2: incoming.is_http2,
            arrived,
            waits_since: incoming.waits_since,
        };
        let Some(mut connection) = connection.adopted(request, incoming.served, config) else {
            self.refuse(None::<OwnedFd>, "its data is invalid");
            return None;
        };
        connection.stream.request.head.keep_alive &= !incoming.is_last;
        self.worker.counters().moved_in.fetch_add(1, Relaxed);
        Some(Box::new(connection))
    }

    /// Refuses a request that was taken out of the waiting room and cannot be served.
    fn refuse(&self, socket: Option<impl AsFd>, reason: &str) {
        let outcome = match &socket {
            Some(_) => "refused 503",
            None => "lost",
        };
        if let Some(socket) = socket {
            refuse(socket, NO_PLACE);
        }
        self.worker.counters().refused_connections.fetch_add(1, Relaxed);
        self.worker.count_refusal(Refusal::NotTaken);
        self.admission
            .log(&format!("{outcome} a request from the waiting room ({reason})"));
    }
}
