//! Transfers: requests that this worker takes from the waiting room, and those that it sends there.
//!
//! A worker leaves the waiting room to others while it drains, while `max_connections` are open, and for a moment after
//! it has found too few descriptors for one more. The kernel wakes one worker for each request, so a worker that leaves
//! one to others wakes another one. New connections leave the last free places to requests in the waiting room, so that
//! there is always a worker with a place. A request that was taken out and cannot be served is refused or logged, never
//! lost silently.

use super::jobs::Job;
use super::Engine;
use crate::clock::{AtomicMillis, Millis, Nanos};
use crate::cluster::waiting_room::{Departure, Received, Sent, Stage, Transfer, WaitingRoom};
use crate::connection::adopting::Adopted;
use crate::connection::Connection;
use crate::limits::descriptors::Counted;
use crate::reactor::Reactor;
use crate::transport::listener::{refuse, Endpoint, NO_PLACE};
use crate::transport::poller::Interest;
use crate::transport::{Afterwards, Link, RelayedSocket, Socket};
use fairlead_wire::Version;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// How long the waiting room is left to workers that have more descriptors.
const SHORTAGE: Duration = Duration::from_millis(100);

/// How long the count of the waiting room is ignored after the room was found empty although its count was above zero:
/// another worker is just taking the request out, or was killed while it did.
const RECHECK: Duration = Duration::from_millis(2);

/// How long a worker that was woken for a request may take before another one is woken: its thread may wait for the
/// lock of the language.
const PROMISE: Duration = Duration::from_millis(2);

/// If turns go by party: most requests in the waiting room.
const MOST_OFFERED: u64 = 4;

/// If turns go by party: how long a request waits for its turn before it is offered to other workers.
const OFFER_PATIENCE: Duration = Duration::from_nanos(1_000_000);

/// If turns go by party: pause between two offers of requests that leave the free threads to others.
const HELD_BACK: Duration = Duration::from_millis(20);

/// Minimum pause between two log lines about transfers.
const QUIET: Duration = Duration::from_millis(1_000);

/// Whether transfers may come in.
pub(super) struct Admission {
    /// Until when this worker is short of descriptors.
    short_until: AtomicMillis,
    /// Until when the count is ignored.
    recheck_at: AtomicMillis,
    /// Since when this worker has been about to take a request: the kernel has woken no other worker for it.
    promised_since: AtomicMillis,
    quiet_until: AtomicMillis,
    /// When a request may be offered that leaves the free threads here to others.
    next_offer: AtomicMillis,
}

/// No time is set.
const NONE: Millis = Millis::LONG_AGO;

impl Default for Admission {
    fn default() -> Admission {
        let none = || AtomicMillis::new(NONE);
        Admission {
            short_until: none(),
            recheck_at: none(),
            promised_since: none(),
            quiet_until: none(),
            next_offer: none(),
        }
    }
}

impl Admission {
    /// When the poller has to look again, if transfers are not admitted until then.
    pub(super) fn opens_at(&self, now: Millis) -> Millis {
        let times = [&self.short_until, &self.recheck_at].map(|time| time.load(Relaxed));
        times
            .into_iter()
            .filter(|time| *time > now)
            .min()
            .unwrap_or(Millis::NEVER)
    }
}

/// Whether `time` has come. Reads the clock only if a time is set.
fn is_over(time: &AtomicMillis) -> bool {
    let until = time.load(Relaxed);
    until == NONE || Millis::now() >= until
}

impl Engine {
    /// Whether the waiting room has a request that this worker should take now.
    pub(super) fn has_transfers(&self) -> bool {
        self.is_room_occupied() && self.serves_room() && is_over(&self.admission.recheck_at)
    }

    /// Whether the waiting room has a request that depends on this worker. A worker that drains leaves requests to the
    /// others if one of them does not drain: otherwise it would never end while there is more to do than the others
    /// can.
    pub(super) fn awaits_transfers(&self) -> bool {
        self.is_room_occupied() && !self.leaves_transfers()
    }

    /// Whether this worker takes requests from the waiting room.
    pub(super) fn serves_room(&self) -> bool {
        self.waiting_room.is_some() && self.admits_transfers()
    }

    /// Whether this worker takes connections from others.
    pub(super) fn admits_transfers(&self) -> bool {
        !self.leaves_transfers() && is_over(&self.admission.short_until) && self.has_place_for_transfer()
    }

    /// Whether connections of other workers wait for a place.
    fn is_anybody_waiting(&self) -> bool {
        let are_handed = |room: &Arc<WaitingRoom>| room.handoffs().is_occupied();
        self.is_room_occupied() || self.room.as_ref().is_some_and(are_handed)
    }

    fn is_room_occupied(&self) -> bool {
        self.waiting_room.as_ref().is_some_and(|room| room.is_occupied())
    }

    pub(super) fn leaves_transfers(&self) -> bool {
        let others_serve = || {
            let shared = self.worker.shared();
            shared.is_some_and(|(scoreboard, slot)| scoreboard.others_serve(slot))
        };
        self.worker.is_draining() && others_serve()
    }

    /// Registers the waiting room with the poller, or removes it.
    pub(super) fn watch_room(&self, reactor: &mut Reactor, watch: bool) {
        if let Some(room) = &self.waiting_room {
            reactor.watch_room(room, &self.worker.poller, watch);
        }
    }

    /// The poller has seen a request in the waiting room.
    pub(super) fn expect_transfers(&self) {
        self.admission.recheck_at.store(NONE, Relaxed);
    }

    /// The poller was woken by a worker that leaves a request to others.
    pub(super) fn clear_signal(&self) {
        self.waiting_room.iter().for_each(|room| room.clear_signal());
    }

    /// The poll that watched the waiting room has ended. It may have been woken for a request there, and then no other
    /// worker was: this one takes the request soon, or wakes another worker.
    pub(super) fn promise_transfer(&self) {
        if !self.is_room_occupied() {
            return;
        }
        if self.serves_room() {
            self.admission.promised_since.store(Millis::now(), SeqCst);
            self.scheduler.wake_monitor();
        } else {
            self.leave_to_others();
        }
    }

    /// Whether a thread of this worker is about to take a request.
    pub(super) fn has_promised_transfer(&self) -> bool {
        self.admission.promised_since.load(SeqCst) != NONE
    }

    /// Wakes another worker if that thread is late. To be called every millisecond while it is expected.
    pub(super) fn check_promise(&self) {
        let promised_since = self.admission.promised_since.load(SeqCst);
        if promised_since != NONE && Millis::now() >= promised_since + PROMISE {
            self.leave_to_others();
        }
    }

    fn leave_to_others(&self) {
        self.admission.promised_since.store(NONE, SeqCst);
        self.waiting_room.iter().for_each(|room| room.signal());
    }

    fn has_place(&self) -> bool {
        let is_below = self.worker.counters().connections.load(SeqCst) < self.worker.config.max_connections as i64;
        is_below && self.worker.config.descriptors.has_place()
    }

    /// Whether one more connection may come from the waiting room.
    fn has_place_for_transfer(&self) -> bool {
        self.has_place() || {
            self.worker.want_place();
            // A connection may have closed in between.
            self.has_place()
        }
    }

    /// Whether one more connection may be accepted.
    pub(super) fn has_place_for_new(&self) -> bool {
        let leaves_others_theirs = || match self.worker.shared() {
            Some((scoreboard, _)) => scoreboard.has_place(self.worker.config.max_connections as u64),
            None => true,
        };
        self.has_place() && (!self.is_anybody_waiting() || leaves_others_theirs())
    }

    /// As `shed`, if turns go by party: keeps few requests in the waiting room, so that those in it are the ones whose
    /// turn is next somewhere, and all others wait where turns are kept.
    pub(super) fn offer(&self, patience: Duration) {
        if self.scheduler.ready().is_held_back() {
            // Threads are free here, and the others may be in the same position.
            let now = Millis::now();
            if now < self.admission.next_offer.load(Relaxed) {
                return;
            }
            self.admission.next_offer.store(now + HELD_BACK, Relaxed);
        }
        let (patience, mut most) = match patience > OFFER_PATIENCE {
            // Jobs do end, and each of them takes in what another worker offers.
            true => (OFFER_PATIENCE, 1),
            false => (patience, MOST_OFFERED),
        };
        let time = Nanos::now() - patience;
        let is_wanted = || {
            self.waiting_room
                .iter()
                .all(|room| room.scoreboard().waiting() < MOST_OFFERED)
        };
        while most > 0 && is_wanted() && self.move_out(time) {
            most -= 1;
        }
    }

    /// The request that should leave next, if it has waited since before `time`. An urgent one leaves only if nothing
    /// is ahead of it there; here it is next.
    fn next_to_leave(&self, time: Nanos, skipped: usize) -> Option<Job> {
        let ready = self.scheduler.ready();
        let urgent = (skipped == 0 && ready.has_urgent() && !self.is_room_occupied())
            .then(|| ready.pop_urgent_older_than(time))
            .flatten();
        urgent.or_else(|| ready.pop_older_than(time, skipped))
    }

    /// Sends the request that should leave next to the waiting room, if it can travel and has waited since before
    /// `time`. False if there is no such request, or the room is full.
    pub(super) fn move_out(&self, time: Nanos) -> bool {
        let (Some(room), Some((_, slot))) = (&self.waiting_room, self.worker.shared()) else {
            return false;
        };
        let mut skipped = 0;
        while let Some(Job::Request(connection)) = self.next_to_leave(time, skipped) {
            let (connection, sent) = match self.send_out(connection, room, slot) {
                Ok(()) => {
                    self.worker.counters().moved_out.fetch_add(1, Relaxed);
                    return true;
                }
                Err(unsent) => unsent,
            };
            match sent {
                Sent::TooLong => skipped += 1,
                _ => skipped = usize::MAX,
            }
            self.scheduler.ready().put_back(Job::Request(connection));
        }
        false
    }

    /// Sends a connection with its request, or the request alone, if the connection has to stay.
    fn send_out(
        &self,
        connection: Box<Connection>,
        room: &WaitingRoom,
        slot: usize,
    ) -> Result<(), (Box<Connection>, Sent)> {
        let Some(departure) = self.departure(&connection) else {
            return self.lend(connection);
        };
        match room.send(&departure, slot) {
            Sent::Done => {
                self.let_go(connection);
                Ok(())
            }
            sent => Err((connection, sent)),
        }
    }

    /// What another worker has to know to go on with a connection. `None` if it cannot take over the transport, or not at
    /// this stage.
    pub(super) fn departure<'a>(&self, connection: &'a Connection) -> Option<Departure<'a>> {
        let transport = connection.stream.transport();
        let departure = self.departure_with(connection, transport.as_plain()?)?;
        Some(Departure {
            // What another worker has lent goes on as it came.
            afterwards: transport.word(),
            session: transport.session().map(|session| &**session),
            is_last: transport.is_relayed() && !connection.stream.request.head.keep_alive,
            ..departure
        })
    }

    /// The same with another socket.
    pub(super) fn departure_with<'a>(&self, connection: &'a Connection, socket: &'a OwnedFd) -> Option<Departure<'a>> {
        let stream = &connection.stream;
        let (introduction, awaited) = connection.introduction();
        Some(Departure {
            socket: socket.as_fd(),
            afterwards: None,
            is_last: false,
            session: None,
            origin: stream.origin().fingerprint(),
            peer: stream.peers.socket(),
            awaited,
            stage: connection.stage()?,
            body_wait: stream.request.body_wait,
            entered: Nanos::now() - stream.request.waits.waiting_room,
            waits_since: connection.waits_since(),
            served: connection.served(),
            input: [introduction, stream.request.head_bytes(), &stream.input],
            body: &stream.request.body,
            is_http2: stream.request.version() == Version::Http2,
        })
    }

    /// Takes the request that has waited longest out of the waiting room.
    pub(super) fn move_in(&self) -> Option<Box<Connection>> {
        let (Some(room), Some((_, slot))) = (&self.waiting_room, self.worker.shared()) else {
            return None;
        };
        self.admission.promised_since.store(NONE, SeqCst);
        match room.receive(slot) {
            Received::Transfer(transfer) => return self.take_in(transfer),
            Received::Nobody if room.is_occupied() => self.pause_admission(&self.admission.recheck_at, RECHECK),
            Received::Nobody => {}
            Received::Short => {
                self.lack_descriptors("requests in the waiting room");
                self.leave_to_others();
            }
            Received::Spoiled(socket) => self.refuse_transfer(socket, "descriptors ran out while it was received"),
        }
        self.finish_if_drained();
        None
    }

    /// Leaves what comes from others to workers that have more descriptors, for a moment. `what`: for the log.
    pub(super) fn lack_descriptors(&self, what: &str) {
        self.pause_admission(&self.admission.short_until, SHORTAGE);
        self.log_transfer(&format!("{what} are left to others: too few descriptors"));
    }

    /// For `time`, after which the poller looks again.
    fn pause_admission(&self, until: &AtomicMillis, time: Duration) {
        let deadline = Millis::now() + time;
        until.store(deadline, Relaxed);
        self.worker.expect(deadline);
    }

    fn take_in(&self, transfer: Transfer) -> Option<Box<Connection>> {
        let Transfer {
            socket,
            origin,
            peer,
            stage,
            ..
        } = transfer;
        let Stage::Request { arrived } = stage else { return None };
        let (afterwards, session) = (transfer.afterwards, transfer.session);
        let to_link = |_: &Endpoint, socket| -> Link {
            let socket = Socket::new(socket);
            match afterwards {
                Some(afterwards) => {
                    Arc::new(RelayedSocket::new(socket, afterwards, session).in_turn(transfer.is_http2))
                }
                None => Arc::new(socket),
            }
        };
        let mut connection = match self.connection_of((socket, origin, peer), None, to_link) {
            Ok(connection) => connection,
            Err((transport, reason)) => {
                transport.give_back(Afterwards::Close);
                self.refuse_transfer(Some(transport), reason);
                return None;
            }
        };
        connection.await_introduction(transfer.awaited);
        connection.stream.request.body_wait = transfer.body_wait;
        connection.stream.request.waits.waiting_room = Nanos::now() - transfer.entered;
        let config = &self.worker.config;
        let request = Adopted {
            input: transfer.input,
            body: transfer.body,
            is_http2: transfer.is_http2,
            arrived,
            waits_since: transfer.waits_since,
        };
        let Some(mut connection) = connection.adopted(request, transfer.served, config) else {
            self.refuse_transfer(None::<OwnedFd>, "it cannot be read");
            return None;
        };
        connection.stream.request.head.keep_alive &= !transfer.is_last;
        self.counters().moved_in.fetch_add(1, Relaxed);
        Some(Box::new(connection))
    }

    /// A connection that another worker had: its socket, the fingerprint of its origin, and its peer. Or the socket, and
    /// what is wrong with it.
    pub(super) fn connection_of(
        &self,
        (socket, origin, peer): (OwnedFd, u32, Option<SocketAddr>),
        interest: Option<Interest>,
        to_link: impl FnOnce(&Endpoint, Counted<OwnedFd>) -> Link,
    ) -> Result<Connection, (Link, &'static str)> {
        let socket = Counted::new(socket, self.worker.config.descriptors.for_transfer());
        let mut known = self.endpoints.iter();
        let known = known.find(|one| one.origin.fingerprint() == origin);
        let Some(endpoint) = known.filter(|endpoint| endpoint.origin.unix || peer.is_some()) else {
            return Err((Arc::new(Socket::new(socket)), "its origin is unknown"));
        };
        let transport = to_link(endpoint, socket);
        match self
            .connections
            .open(&transport, interest, endpoint, peer, Millis::now())
        {
            Ok(connection) => Ok(connection),
            Err(_) => Err((transport, "it cannot be watched")),
        }
    }

    /// Refuses a request that was taken out of the waiting room and cannot be served.
    fn refuse_transfer(&self, socket: Option<impl AsFd>, reason: &str) {
        let outcome = match &socket {
            Some(_) => "refused 503",
            None => "lost",
        };
        if let Some(socket) = socket {
            refuse(socket, NO_PLACE);
        }
        self.worker.counters().refused_connections.fetch_add(1, Relaxed);
        self.log_transfer(&format!("{outcome} a request of the waiting room ({reason})"));
    }

    /// Logs at most one line a second.
    pub(super) fn log_transfer(&self, line: &str) {
        let now = Millis::now();
        let quiet_until = self.admission.quiet_until.load(Relaxed);
        if now >= quiet_until && self.admission.quiet_until.fetch_max(now + QUIET, Relaxed) == quiet_until {
            self.worker.log.error(format_args!("{line}"));
        }
    }
}
