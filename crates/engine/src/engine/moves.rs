//! The moves of a connection between its owners: the reactor, the ready queue, the native threads; and its end.

use super::job::Job;
use super::sessions::Streams;
use super::sink::{Onward, Sink};
use super::{ends, Engine};
use crate::clock::Millis;
use crate::connection::turns::TurnTaker;
use crate::connection::{Connection, Next};
use crate::reactor::Handler;
use crate::scheduler::{Workplace, PATIENCE};
use crate::spool::{Relief, Slowness, Verdict};
use crate::transport::poller::{Dispatching, Happened, Interest, Key};
use fairlead_wire::Version;

impl Engine {
    /// Moves a connection to where it has to go next.
    pub(super) fn settle(&self, mut connection: Box<Connection>, mut next: Next) {
        self.uploads.tell();
        if next == Next::Ready {
            next = self.without_app.serve(&mut connection);
        }
        if let Next::Refuse(refusal) = next {
            next = self.without_app.refuse(&mut connection, refusal);
        }
        // What is relayed is little, and the worker that has made it has counted it.
        let waits_for_client = matches!(next, Next::Send | Next::Wait(Interest::Write)) && !connection.is_relayed();
        if waits_for_client {
            let key = connection.key();
            connection.stream.settle_output(&self.services.spool, |peers| {
                self.budgets.budget_of(peers.owner(key), key)
            });
        }
        match next {
            Next::Ready => self.enqueue(connection),
            Next::Send => self.file_sender.push(connection),
            Next::Store => self.uploads.store(connection),
            Next::Shake => self.handshakes.push(connection),
            Next::Multiplex => self.sessions.begin(*connection, self),
            Next::Wait(Interest::Read) if connection.is_between_requests() => self.handoff.park_or_hand_off(connection),
            Next::Wait(Interest::Write) if connection.is_relayed() => self.relays.park_for_answer(connection, false),
            Next::AwaitAnswer => self.relays.park_for_answer(connection, true),
            Next::TakeOver => self.let_successor_take(connection),
            Next::GiveAway => self.relays.relay_both_ways(connection),
            Next::Wait(interest) => self.park(connection, interest),
            Next::HandOff => self.hand_off_or_go_on(connection),
            Next::PutOff => self.uploads.put_off(connection),
            Next::LookUp => self.go_on(self.look_ups.push(connection)),
            Next::LookedInVain => self.go_on(self.look_ups.go_on_without_file(connection)),
            Next::Close | Next::Refuse(_) => self.close(connection),
        }
        if waits_for_client {
            self.giving_way.keep_to_response_memory();
        }
        self.finish_if_drained();
    }

    fn go_on(&self, onward: Option<Onward>) {
        onward.into_iter().for_each(|onward| self.put(onward));
    }

    /// The request is none for a file.
    fn leave_to_app(&self, connection: Box<Connection>) {
        self.enqueue(connection);
        if !self.scheduler.ready().is_empty() {
            self.scheduler.notify();
        }
    }

    fn let_successor_take(&self, mut connection: Box<Connection>) {
        match connection.take_successor() {
            Some(successor) => successor.take_over(connection),
            None => self.close(connection),
        }
    }

    /// As [`Engine::settle`], on a native thread, which does not run the ready queue itself.
    pub(super) fn settle_elsewhere(&self, connection: Box<Connection>, next: Next) {
        let may_bring_work = next == Next::Ready;
        self.settle(connection, next);
        if may_bring_work && !self.scheduler.ready().is_empty() {
            self.scheduler.notify();
        }
    }

    /// Hands a connection to another worker, with what has arrived of its next request; or goes on with that.
    fn hand_off_or_go_on(&self, connection: Box<Connection>) {
        if let Err((mut connection, _)) = self.handoff.hand_off(connection) {
            let next = connection.parse_head(&self.worker.config, Millis::now());
            self.settle(connection, next);
        }
    }

    pub(super) fn enqueue(&self, mut connection: Box<Connection>) {
        self.parties.rank(&mut connection);
        if connection.stream.is_urgent {
            connection.end_turn();
        }
        if let Some(connection) = connection.or_in_line() {
            self.scheduler.ready().push(Job::Request(connection));
        }
        if self.worker.is_stopped() {
            self.empty_queue();
        }
    }

    /// Leaves a connection to the reactor until its next event or its deadline.
    pub(super) fn park(&self, connection: Box<Connection>, interest: Interest) {
        if let Err(connection) = self.connections.park(connection, interest) {
            self.close(connection);
        }
    }

    pub(super) fn close(&self, connection: Box<Connection>) {
        drop(connection);
        self.finish_if_drained();
    }

    pub(super) fn cut(&self, connection: Box<Connection>) {
        ends::cut(connection);
        self.finish_if_drained();
    }

    pub(super) fn abort(&self, connection: Box<Connection>) {
        ends::abort(connection);
        self.finish_if_drained();
    }

    pub(super) fn let_go(&self, connection: Box<Connection>) {
        ends::let_go(connection);
        self.finish_if_drained();
    }

    /// A thread is about to run a request: the next one of the same session may wait among those of others. This thread
    /// finds it afterwards, or wakes another one for it when the app blocks.
    pub(super) fn end_turn(&self, connection: &mut Connection) {
        let here = Dispatching::enter();
        connection.end_turn();
        drop(here);
        if connection.stream.request.version() == Version::Http2 {
            self.pass_on();
        }
    }

    /// Lets other workers take what waits here for longer than usual, if no thread here can: in its line it was not seen
    /// by them.
    fn pass_on(&self) {
        let are_all_busy = || self.scheduler.now().busy() >= self.scheduler.threads().most();
        if !self.scheduler.ready().is_empty() && are_all_busy() {
            self.shed(PATIENCE);
        }
    }

    /// Whether requests wait while all threads are busy.
    fn is_starving(&self) -> bool {
        let are_all_busy = self.scheduler.now().busy() >= self.scheduler.threads().most();
        are_all_busy && (!self.scheduler.ready().is_empty() || self.admission.has_transfers())
    }
}

impl TurnTaker for Engine {
    fn take_turn(&self, connection: Box<Connection>, is_leaving: bool) {
        self.scheduler.schedule(Job::Request(connection));
        if !is_leaving {
            self.pass_on();
        }
    }
}

impl Sink for Engine {
    fn put(&self, onward: Onward) {
        match onward {
            Onward::Settle(connection, next) => self.settle_elsewhere(connection, next),
            Onward::ToApp(connection) => self.leave_to_app(connection),
        }
    }
}

impl Streams for Engine {
    fn happened(&self, key: Key, happened: Happened, scratch: &mut [u8], now: Millis) {
        Handler::happened(self, key, happened, scratch, now);
    }
}

impl Relief for Engine {
    fn relieve(&self, own: Option<Slowness>) -> Verdict {
        let verdict = self.giving_way.relieve(own, self.is_starving());
        self.finish_if_drained();
        verdict
    }
}
