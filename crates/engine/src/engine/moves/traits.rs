//! Traits through which the parts use the moves.

use super::Moves;
use crate::connection::stream_queue::StreamTurns;
use crate::connection::{Connection, Next};
use crate::engine::job::Job;
use crate::engine::sink::{Move, Sink};
use crate::limits::budget::Kind;
use crate::realtime::{Host, Scheduled};
use crate::spool::{Decision, Relief, Slowness};

impl Sink for Moves {
    fn put(&self, next: Move) {
        let may_bring_work = matches!(next, Move::Settle(_, Next::Ready));
        self.go(next);
        if may_bring_work {
            self.tell_of_work();
        }
    }
}

impl StreamTurns for Moves {
    fn take_turn(&self, connection: Box<Connection>, is_leaving: bool) {
        self.parts.scheduler.schedule(Job::Request(connection));
        if !is_leaving {
            self.pass_on();
        }
    }
}

impl Host for Moves {
    fn schedule(&self, turn: Scheduled) {
        let job = match turn {
            Scheduled::Client(client) => Job::Client(client),
            Scheduled::Subscription(subscription) => Job::Subscription(subscription),
        };
        self.parts.scheduler.schedule(job);
    }

    fn make_room(&self, kind: Kind) -> bool {
        let has_given_way = self.parts.giving_way.make_room(kind);
        self.end_if_drained();
        has_given_way
    }
}

impl Relief for Moves {
    fn relieve(&self, own: Option<Slowness>) -> Decision {
        let has_requests = || !self.parts.scheduler.ready().is_empty() || self.parts.admission.has_requests();
        let is_starving = self.are_all_busy() && has_requests();
        let verdict = self.parts.giving_way.relieve(own, is_starving);
        self.end_if_drained();
        verdict
    }
}
