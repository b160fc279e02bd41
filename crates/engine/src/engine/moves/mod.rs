//! Moves a connection between its owners (the reactor, the ready queue, the native threads) and ends it. No other code
//! moves connections: the parts put a move into the sink, or return it.
//!
//! `pausing.rs`: requests that wait for the end of a pause. `steps.rs`: steps of connections and clients. `ending.rs`: the
//! end of the engine. `traits.rs`: the traits that the
//! parts use.

mod ending;
mod pausing;
mod steps;
mod traits;

use super::drain::Drain;
use super::ends;
use super::job::Job;
use super::parts::{Foundation, Parts, Upward};
use super::sink::{Move, Sink};
use crate::clock::{Millis, Nanos};
use crate::config::fair_by::Flow;
use crate::connection::{Connection, Next};
use crate::scheduler::PATIENCE;
use crate::transport::poller::{Dispatching, Interest};
use fairlead_wire::Version;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Most searches for overdue requests in a row.
const MOST_SWEEPS: usize = 64;

/// A request that has joined the ready queue.
struct Joined {
    flow: Option<Flow>,
    /// Length of the queue after a request has left it for this one.
    length: Option<usize>,
}

/// See the head of this file.
pub(super) struct Moves {
    parts: Arc<Parts>,
    drain: Drain,
}

impl Moves {
    pub(super) fn new(foundation: Foundation) -> Arc<Moves> {
        Arc::new_cyclic(|me: &Weak<Moves>| {
            let upward = Upward {
                sink: me.clone(),
                taker: me.clone(),
                host: me.clone(),
                relief: me.clone(),
            };
            let parts = Arc::new(Parts::new(foundation, upward));
            Moves {
                drain: Drain::new(&parts.worker, &parts.admission),
                parts,
            }
        })
    }

    pub(super) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// Moves a connection to its next owner.
    pub(super) fn settle(&self, connection: Box<Connection>, next: Next) {
        self.go(Move::Settle(connection, next));
    }

    /// Makes the move that a part has returned, if any.
    pub(super) fn go_on(&self, next: Option<Move>) {
        if let Some(next) = next {
            self.go(next);
        }
    }

    /// Makes a move, and the moves that follow from it. Returns true if a request may have joined the ready queue: a thread
    /// that handles no events then has to tell another one.
    fn go(&self, first: Move) -> bool {
        let mut next = Some(first);
        let mut may_bring_work = false;
        let mut joined = None;
        while let Some(current) = next.take().or_else(|| self.keep_to_limit(&mut joined)) {
            may_bring_work |= matches!(current, Move::Settle(_, Next::Ready));
            next = match current {
                Move::Settle(connection, next) => self.give_to_owner(connection, next, &mut joined),
                Move::ToApp(connection) => {
                    joined = Some(self.enqueue(connection));
                    self.tell_of_work();
                    None
                }
            };
        }
        self.end_if_drained();
        may_bring_work
    }

    /// Gives a connection to its next owner. Returns its next move if that owner does not take it.
    /// `joined`: gets the flow of a request that joins the ready queue.
    fn give_to_owner(
        &self,
        mut connection: Box<Connection>,
        mut next: Next,
        joined: &mut Option<Joined>,
    ) -> Option<Move> {
        let parts = &*self.parts;
        parts.uploads.tell();
        if next == Next::Ready {
            next = parts.without_app.serve(&mut connection);
        }
        if let Next::Refuse(refusal) = next {
            next = parts.without_app.refuse(&mut connection, refusal);
        }
        // A relayed response is small, and the worker that made it has counted it.
        let waits_for_client = matches!(next, Next::Send | Next::Wait(Interest::Write)) && !connection.is_relayed();
        if waits_for_client {
            let key = connection.key();
            connection.stream.settle_output(&parts.services.spool, |peers| {
                parts.budgets.budget_of(peers.owner(key), key)
            });
        }
        match next {
            Next::Ready => *joined = Some(self.enqueue(connection)),
            Next::Send => {
                if let Some(connection) = parts.connection_migration.keep_or_migrate(connection) {
                    parts.file_sender.push(connection);
                }
            }
            Next::Store => parts.uploads.store(connection),
            Next::Shake => parts.handshakes.push(connection),
            Next::Multiplex => parts.http2.begin(*connection, self),
            Next::Wait(Interest::Read) if connection.is_between_requests() => {
                parts.connection_migration.park_or_migrate(connection);
            }
            Next::Wait(Interest::Write) if connection.is_relayed() => parts.relays.park_for_answer(connection, false),
            Next::Wait(Interest::Write) if connection.is_flushing() => {
                parts.connection_migration.park_or_migrate(connection);
            }
            Next::AwaitAnswer => parts.relays.park_for_answer(connection, true),
            Next::TakeOver => let_successor_take(connection),
            Next::GiveAway => parts.relays.relay_both_ways(connection),
            Next::Wait(interest) => drop(parts.connections.park(connection, interest)),
            Next::Migrate => return self.migrate(connection),
            Next::PutOff => parts.uploads.put_off(connection),
            Next::LookUp => return parts.look_ups.push(connection),
            Next::LookedInVain => return parts.look_ups.go_on_without_file(connection),
            Next::Close | Next::Refuse(_) => drop(connection),
        }
        if waits_for_client {
            parts.giving_way.keep_to_response_memory();
        }
        None
    }

    /// Migrates a connection to another worker, with the bytes that have arrived of its next request. If this fails,
    /// returns the connection's next move here.
    fn migrate(&self, connection: Box<Connection>) -> Option<Move> {
        let (mut connection, _) = self.parts.connection_migration.migrate(connection).err()?;
        let next = connection.parse_head(&self.parts.worker.config, Millis::now());
        Some(Move::Settle(connection, next))
    }

    /// Adds a request to the ready queue.
    fn enqueue(&self, mut connection: Box<Connection>) -> Joined {
        self.parts.flows.rank(&mut connection);
        if connection.stream.is_urgent {
            connection.end_turn();
        }
        let flow = connection.stream.flow;
        if let Some(connection) = connection.or_in_line().and_then(|connection| self.hold(connection)) {
            self.parts.scheduler.ready().push(Job::Request(connection));
        }
        if self.parts.worker.is_stopped() {
            self.empty_queue();
        }
        Joined { flow, length: None }
    }

    /// Returns the next move of a request that gives its place in the full queue to the request that has joined. If the next request of
    /// its HTTP/2 connection then joins, another request leaves.
    fn keep_to_limit(&self, joined: &mut Option<Joined>) -> Option<Move> {
        let one = joined.as_mut()?;
        let ready = self.parts.scheduler.ready();
        let is_due = one.length.is_none_or(|length| ready.ordinary() > length);
        let leaves = is_due.then(|| self.parts.overload.keep_to_limit(one.flow)).flatten();
        match leaves {
            Some(_) => one.length = Some(ready.ordinary()),
            None => *joined = None,
        }
        leaves
    }

    /// Runs `run` with a request at its turn, unless the request has waited too long or its client has left.
    pub(super) fn at_turn(&self, connection: Box<Connection>, now: Nanos, run: impl FnOnce(Box<Connection>)) {
        match self.parts.overload.check_turn(connection, now) {
            Ok(connection) => run(connection),
            Err(next) => _ = self.go(next),
        }
    }

    /// Drops requests that wait in vain in this worker. A dropped request of an HTTP/2 connection lets the next one join the
    /// queue, which may be overdue as well. Only the monitor calls this: a request that joins the queue must not drop others,
    /// which would let further ones join, on the same stack.
    pub(super) fn sweep_queue(&self) {
        for _ in 0..MOST_SWEEPS {
            let dropped = self.parts.overload.sweep();
            if dropped.is_empty() {
                return;
            }
            dropped.into_iter().for_each(|next| self.put(next));
        }
    }

    /// Drops requests that wait in vain: see `overload.rs`.
    pub(super) fn drop_overdue(&self) {
        self.sweep_queue();
        let parts = &*self.parts;
        parts.overload.look_at_room();
        while parts.overload.is_room_overdue() {
            let Some(mut connection) = parts.request_migration.move_in() else {
                break;
            };
            parts.flows.rank(&mut connection);
            self.at_turn(connection, Nanos::now(), |connection| {
                parts.overload.pass_over_room();
                self.put(Move::ToApp(connection));
            });
        }
    }

    /// Makes a thread check the ready queue.
    fn tell_of_work(&self) {
        if !self.parts.scheduler.ready().is_empty() {
            self.parts.scheduler.notify();
        }
    }

    /// See [`ends::cut`].
    pub(super) fn cut(&self, connection: Box<Connection>) {
        ends::cut(connection);
        self.end_if_drained();
    }

    /// Ends a connection after the response at a deadline.
    pub(super) fn end_expired(&self, mut connection: Box<Connection>) {
        let next = match connection.stream.transport().is_for_one_response() {
            true => Next::Close,
            false => connection.linger(Millis::now()),
        };
        self.settle(connection, next);
    }

    /// See [`ends::abort`].
    pub(super) fn abort(&self, connection: Box<Connection>) {
        ends::abort(connection);
        self.end_if_drained();
    }

    /// See [`ends::let_go`].
    pub(super) fn let_go(&self, connection: Box<Connection>) {
        ends::let_go(connection);
        self.end_if_drained();
    }

    /// Called when a thread is about to run a request. The next request of the same HTTP/2 connection may wait in the
    /// ready queue. This thread finds it afterwards, or wakes another thread for it when the app blocks.
    pub(super) fn end_turn(&self, connection: &mut Connection) {
        let here = Dispatching::enter();
        connection.end_turn();
        drop(here);
        if connection.stream.request.version() == Version::Http2 {
            self.pass_on();
        }
    }

    /// Offers requests that have waited longer than usual to other workers, if no thread here can run them. Other
    /// workers did not see a request while it waited in the queue of its HTTP/2 connection.
    fn pass_on(&self) {
        if !self.parts.scheduler.ready().is_empty() && self.are_all_busy() {
            self.shed(PATIENCE);
        }
    }

    /// Sends requests that have waited for `patience` to the waiting room, because no thread here can run them.
    pub(super) fn shed(&self, patience: Duration) {
        let by_flow = self.parts.flows.take_turns();
        self.parts.request_migration.shed(patience, by_flow, self);
        self.end_if_drained();
    }

    fn are_all_busy(&self) -> bool {
        let scheduler = &self.parts.scheduler;
        scheduler.now().busy() >= scheduler.threads().most()
    }
}

fn let_successor_take(mut connection: Box<Connection>) {
    if let Some(successor) = connection.take_successor() {
        successor.take_over(connection);
    }
}
