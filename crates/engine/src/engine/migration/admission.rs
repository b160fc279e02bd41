//! Decides if this worker takes requests from the waiting room, connections that other workers migrate, and new
//! connections.
//!
//! A worker leaves the waiting room to others while it drains, while `max_connections` are open, and for a moment after
//! it has found too few descriptors for one more connection. New connections leave the last free slots to requests in
//! the waiting room, so that there is always a worker with a slot.

use crate::clock::{AtomicMillis, Millis};
use crate::cluster::queues::{SharedQueues, WaitingRoom};
use crate::reactor::{Line, Migrating, Reactor};
use crate::worker::Worker;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// Time for which the waiting room is left to workers that have more descriptors.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Time for which the count of the waiting room is ignored, after the room was found empty although its count was above
/// zero: another worker is removing the request at this moment, or was killed while it did.
const RECHECK: Duration = Duration::from_millis(2);

/// The longest time that a worker waits until another worker takes over the last client that it has sent.
const CLIENT_WAY: Duration = Duration::from_secs(2);

/// Minimum pause between two log lines about migrated requests and connections.
const QUIET: Duration = Duration::from_millis(1_000);

/// No time is set.
pub(super) const NONE: Millis = Millis::LONG_AGO;

/// See the head of this file.
pub(in crate::engine) struct Admission {
    worker: Arc<Worker>,
    /// Memory that all workers share; `None` for a single process.
    queues: Option<Arc<SharedQueues>>,
    /// True if requests may migrate.
    has_waiting_room: bool,
    /// This worker is short of descriptors until this time.
    short_until: AtomicMillis,
    /// Another worker has until this time to take over the clients that this worker has sent.
    clients_awaited_until: AtomicMillis,
    /// Clients wait since this time, and this worker has no room.
    clients_stand_since: AtomicMillis,
    /// Clients are left to other workers until this time.
    clients_left_until: AtomicMillis,
    /// The count of the waiting room is ignored until this time.
    recheck_at: AtomicMillis,
    /// Nothing is logged until this time.
    quiet_until: AtomicMillis,
}

impl Admission {
    pub(in crate::engine) fn new(worker: &Arc<Worker>, queues: Option<&Arc<SharedQueues>>) -> Arc<Admission> {
        let none = || AtomicMillis::new(NONE);
        Arc::new(Admission {
            worker: Arc::clone(worker),
            queues: queues.cloned(),
            has_waiting_room: worker.config.waiting_room,
            short_until: none(),
            clients_awaited_until: none(),
            clients_left_until: none(),
            clients_stand_since: none(),
            recheck_at: none(),
            quiet_until: none(),
        })
    }

    /// Memory that all workers share; `None` for a single process.
    pub(in crate::engine) fn queues(&self) -> Option<&SharedQueues> {
        self.queues.as_deref()
    }

    /// The waiting room, if requests may migrate.
    pub(in crate::engine) fn waiting_room(&self) -> Option<&WaitingRoom> {
        let queues = self.queues.as_deref().filter(|_| self.has_waiting_room)?;
        Some(queues.waiting_room())
    }

    /// True if the waiting room has a request that this worker should take now.
    pub(in crate::engine) fn has_requests(&self) -> bool {
        self.is_room_occupied() && self.serves_room() && is_over(&self.recheck_at)
    }

    /// True if the waiting room has a request that depends on this worker. A worker that drains leaves requests to the
    /// others if one of them does not drain: otherwise it would not end as long as the others have too much work.
    pub(in crate::engine) fn awaits_requests(&self) -> bool {
        self.is_room_occupied() && !self.leaves_to_others()
    }

    /// True if migrated connections depend on this worker, because no other worker continues.
    pub(in crate::engine) fn awaits_connections(&self) -> bool {
        self.are_connections_migrating() && !self.leaves_to_others()
    }

    /// True if migrated clients depend on this worker: it is the only one, or it has sent them. A worker that begins after its
    /// end might not have the messages that they have missed.
    pub(in crate::engine) fn awaits_clients(&self) -> bool {
        self.are_clients_migrating() && (!self.leaves_to_others() || !is_over(&self.clients_awaited_until))
    }

    /// True if this worker takes over clients although it drains, because no other worker continues.
    pub(super) fn inherits_clients(&self) -> bool {
        self.are_clients_migrating() && !self.leaves_to_others()
    }

    fn are_clients_migrating(&self) -> bool {
        let is_occupied = |queues: &Arc<SharedQueues>| queues.clients().is_occupied();
        self.queues.as_ref().is_some_and(is_occupied)
    }

    /// Notes that this worker has sent a client.
    pub(super) fn await_client(&self) {
        self.clients_awaited_until.store(Millis::now() + CLIENT_WAY, Relaxed);
    }

    /// True if this worker takes requests from the waiting room.
    pub(in crate::engine) fn serves_room(&self) -> bool {
        self.waiting_room().is_some() && self.admits_migration()
    }

    /// True if this worker takes over connections.
    pub(in crate::engine) fn admits_connections(&self) -> bool {
        self.queues.is_some() && !self.worker.is_stopped() && self.admits_migration()
    }

    /// True if this worker takes over clients: no other worker has newer code.
    pub(in crate::engine) fn admits_clients(&self) -> bool {
        let is_open = self.queues.is_some() && !self.worker.is_stopped() && !self.leaves_to_others();
        let is_due = is_open && is_over(&self.clients_left_until) && is_over(&self.short_until);
        is_due && self.worker.is_newest() && self.has_place_for_clients()
    }

    /// The queue of these connections, and the workers that take them; `None` for a single process.
    pub(in crate::engine) fn line(&self, kind: Migrating) -> Option<Line> {
        let (queues, (scoreboard, slot)) = self.queues().zip(self.worker.shared())?;
        let (waiting, as_new) = match kind {
            Migrating::Connections => (queues.connections().len(), false),
            Migrating::Clients => (queues.clients().len(), true),
        };
        let is_ahead = waiting > 0 && scoreboard.is_clearly_ahead(slot, as_new);
        Some(Line {
            is_ahead,
            waiting,
            // Of interest only then, and each costs a look at all slots.
            taken_elsewhere: if is_ahead { scoreboard.taken_elsewhere(slot) } else { 0 },
        })
    }

    /// True if this worker has room for a client, or takes it in spite of that.
    fn has_place_for_clients(&self) -> bool {
        if !self.has_place_for_migration() {
            return self.have_clients_stood_still();
        }
        self.clients_stand_since.store(NONE, Relaxed);
        true
    }

    /// True if clients have waited for a worker with room for long. Then this worker takes them beyond `max_connections`: the
    /// server has had these connections all the time, and otherwise nobody would serve or close them.
    fn have_clients_stood_still(&self) -> bool {
        let now = Millis::now();
        let since = match self.clients_stand_since.load(Relaxed) {
            _ if !self.are_clients_migrating() => {
                self.clients_stand_since.store(NONE, Relaxed);
                return false;
            }
            NONE => {
                self.clients_stand_since.store(now, Relaxed);
                self.worker.expect(now + CLIENT_WAY);
                now
            }
            since => since,
        };
        now - since >= CLIENT_WAY && self.worker.config.descriptors.has_place()
    }

    /// True if this worker takes requests or connections from others.
    fn admits_migration(&self) -> bool {
        !self.leaves_to_others() && is_over(&self.short_until) && self.has_place_for_migration()
    }

    /// True if one more connection may be accepted.
    pub(in crate::engine) fn has_place_for_new(&self) -> bool {
        let leaves_others_theirs = || match self.worker.shared() {
            Some((scoreboard, _)) => scoreboard.has_place(self.worker.config.max_connections as u64),
            None => true,
        };
        self.has_place() && (!self.is_anybody_waiting() || leaves_others_theirs())
    }

    /// True if `max_connections` are open. Then the poller is woken when one is closed.
    pub(in crate::engine) fn is_full(&self) -> bool {
        !self.is_below_limit() && {
            self.worker.want_place();
            // A connection may have closed in between.
            !self.is_below_limit()
        }
    }

    /// Returns the time at which the poller has to check again, if nothing is taken from others until then.
    pub(in crate::engine) fn opens_at(&self, now: Millis) -> Millis {
        let times = [&self.short_until, &self.recheck_at, &self.clients_left_until].map(|time| time.load(Relaxed));
        times
            .into_iter()
            .filter(|time| *time > now)
            .min()
            .unwrap_or(Millis::NEVER)
    }

    /// Registers the waiting room with the poller, or removes it.
    pub(in crate::engine) fn watch_room(&self, reactor: &mut Reactor, watch: bool) {
        if let Some(room) = self.waiting_room() {
            reactor.watch_room(room, &self.worker.poller, watch);
        }
    }

    /// The poller has seen a request in the waiting room.
    pub(in crate::engine) fn expect_transfers(&self) {
        self.recheck_at.store(NONE, Relaxed);
    }

    /// True if migrated connections wait for a worker.
    pub(super) fn are_connections_migrating(&self) -> bool {
        self.queues
            .as_ref()
            .is_some_and(|queues| queues.connections().is_occupied())
    }

    pub(super) fn is_room_occupied(&self) -> bool {
        self.waiting_room().is_some_and(WaitingRoom::is_occupied)
    }

    /// Ignores the count of the waiting room for a moment, because the room was empty.
    pub(super) fn recheck_soon(&self) {
        self.pause(&self.recheck_at, RECHECK);
    }

    /// Leaves clients to other workers for a moment.
    pub(super) fn leave_clients_to_others(&self) {
        self.pause(&self.clients_left_until, RECHECK);
    }

    /// Leaves requests and connections to workers that have more descriptors, for a moment. `what`: for the log.
    pub(super) fn lack_descriptors(&self, what: &str) {
        self.pause(&self.short_until, SHORTAGE);
        self.log(&format!("left {what} to other workers: too few descriptors"));
    }

    /// Logs at most one line a second.
    pub(super) fn log(&self, line: &str) {
        let now = Millis::now();
        let quiet_until = self.quiet_until.load(Relaxed);
        if now >= quiet_until && self.quiet_until.fetch_max(now + QUIET, Relaxed) == quiet_until {
            self.worker.log.error(format_args!("{line}"));
        }
    }

    fn leaves_to_others(&self) -> bool {
        let others_serve = || {
            let shared = self.worker.shared();
            shared.is_some_and(|(scoreboard, slot)| scoreboard.others_serve(slot))
        };
        self.worker.is_draining() && others_serve()
    }

    /// True if requests or connections of other workers wait for a slot.
    fn is_anybody_waiting(&self) -> bool {
        self.is_room_occupied() || self.are_connections_migrating() || self.are_clients_migrating()
    }

    fn has_place(&self) -> bool {
        self.is_below_limit() && self.worker.config.descriptors.has_place()
    }

    fn is_below_limit(&self) -> bool {
        self.free_places() > 0
    }

    /// Number of connections that may be opened before `max_connections` are open.
    pub(in crate::engine) fn free_places(&self) -> usize {
        let open = self.worker.counters().connections.load(SeqCst);
        usize::try_from(self.worker.config.max_connections as i64 - open).unwrap_or(0)
    }

    /// True if one more connection may come from another worker.
    fn has_place_for_migration(&self) -> bool {
        self.has_place() || {
            self.worker.want_place();
            // A connection may have closed in between.
            self.has_place()
        }
    }

    /// Sets `until` to `time` from now, when the poller checks again.
    fn pause(&self, until: &AtomicMillis, time: Duration) {
        let deadline = Millis::now() + time;
        until.store(deadline, Relaxed);
        self.worker.expect(deadline);
    }
}

/// True if `time` has come. Reads the clock only if a time is set.
fn is_over(time: &AtomicMillis) -> bool {
    let until = time.load(Relaxed);
    until == NONE || Millis::now() >= until
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::membership::Membership;
    use crate::cluster::queues::Sent;
    use crate::cluster::scoreboard::Scoreboard;
    use crate::config::Logs;
    use crate::support::config;

    #[test]
    fn a_worker_is_ahead_in_a_line_if_one_that_takes_from_it_has_fewer_connections() {
        let scoreboard: &'static Scoreboard = Box::leak(Box::default());
        let queues = Arc::new(SharedQueues::new(scoreboard).expect("socket pairs"));
        let membership = Membership::Worker(Arc::clone(&queues), 0);
        let worker = Arc::new(Worker::new(config(), Logs::default(), Some(&membership)).expect("a poll set"));
        worker.announce();
        worker.counters().connections.store(10, Relaxed);
        let other = scoreboard.slot(1);
        other.serving.store(1, Relaxed);
        other.most_connections.store(100, Relaxed);
        other.generation.store(worker.config.generation + 1, Relaxed);
        other.taken_over.store(7, Relaxed);
        let admission = Admission::new(&worker, Some(&queues));
        let line = |kind| {
            let line = admission.line(kind);
            line.map(|line| (line.is_ahead, line.waiting, line.taken_elsewhere))
        };
        assert_eq!(line(Migrating::Clients), Some((false, 0, 0)), "nothing waits");
        let socket = std::fs::File::open("/dev/null").expect("a file").into();
        assert_eq!(queues.clients().send(&socket, &vec![1].into(), false, 1), Sent::Done);
        assert_eq!(
            line(Migrating::Clients),
            Some((false, 1, 0)),
            "the other one has other code"
        );
        other.generation.store(worker.config.generation, Relaxed);
        assert_eq!(line(Migrating::Clients), Some((true, 1, 7)));
        assert_eq!(line(Migrating::Connections), Some((false, 0, 0)));
    }
}
