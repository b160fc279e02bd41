//! When a total of all clients is used up, the client with the largest share gives way (`limits/budget.rs`): a session of
//! HTTP/2 ends; an HTTP/1 connection with a waiting response is aborted.

use super::Engine;
use crate::clock::Millis;
use crate::http2::{is_session, Session};
use crate::limits::budget::{Budget, Kind};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A burst is over when nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(1_000);

/// The streams of a session that was ended learn of it in the next turn of the poller. Until then nobody else has to give
/// way, but not for longer than this.
const LEAVING: Duration = Duration::from_millis(100);

/// A session that has taken no more than this always gets a request in.
const SMALL_BYTES: u64 = 32 * 1024;

#[derive(Default)]
pub(super) struct GivingWay(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The session that gives way at present, and the time at which it began.
    leaving: Option<(Weak<Budget>, Millis)>,
    /// What that session gives back, but for what others have been promised of it.
    left: u64,
    /// When somebody last gave way, and when a stream was last refused.
    last: [Option<Millis>; 2],
}

impl Inner {
    fn is_leaving(&self, kind: Kind, now: Millis) -> bool {
        let Some((budget, since)) = &self.leaving else {
            return false;
        };
        now - *since < LEAVING && budget.upgrade().is_some_and(|budget| budget.used(kind) > 0)
    }

    /// Promises some of what the leaving session gives back; false if there is not so much left.
    fn promise(&mut self, amount: u64) -> bool {
        let left = self.left.checked_sub(amount);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Notes an event; true if it is the first one of a burst.
    fn begins_burst(&mut self, number: usize, now: Millis) -> bool {
        let last = self.last[number].replace(now);
        last.is_none_or(|last| now - last >= QUIET)
    }
}

/// The option that limits it.
fn option(kind: Kind) -> &'static str {
    match kind {
        Kind::Requests => "request_memory_total_bytes",
        Kind::Responses => "response_memory_total_bytes",
        Kind::Bodies => "the files for request bodies",
        Kind::Files => "the files for responses",
    }
}

impl Engine {
    /// Called after unsent bytes were counted: they were there already.
    pub(super) fn keep_to_response_memory(&self) {
        if self.services.spool.is_memory_exceeded() {
            self.make_largest_give_way(Kind::Responses, 0);
        }
    }

    /// Makes the client with the largest share give way, if that is larger than `own`. Whether there is room now, or soon.
    pub(super) fn make_largest_give_way(&self, kind: Kind, own: u64) -> bool {
        let now = Millis::now();
        if self.giving_way.0.lock().is_leaving(kind, now) {
            return true;
        }
        let mut keys = self.budgets.largest(kind).into_iter();
        keys.any(|key| match is_session(key) {
            true => self.end_largest_session(key, kind, own, now),
            false => self.abort_largest_connection(key, kind, now),
        })
    }

    fn end_largest_session(&self, key: u64, kind: Kind, own: u64, now: Millis) -> bool {
        let session = self.sessions.get(key).filter(|session| !session.is_over());
        // HTTP/1 connections take memory and files for their bodies, too, and have no rank: the largest session may be small.
        let is_large = |session: &Arc<Session>| {
            let budget = session.budget();
            budget.used(kind) > own && (kind == Kind::Responses || budget.has_much(kind))
        };
        let Some(session) = session.filter(is_large) else {
            return false;
        };
        let mut inner = self.giving_way.0.lock();
        inner.leaving = Some((Arc::downgrade(session.budget()), now));
        inner.left = session.budget().used(kind);
        let begins = inner.begins_burst(0, now);
        drop(inner);
        if begins {
            let (peers, option) = (&session.peers, option(kind));
            self.worker.log.error(format_args!(
                "closed HTTP/2 connection from {peers}: it had the largest share of {option}, which is used up"
            ));
        }
        session.give_way(now);
        self.forget_if_over(&session);
        true
    }

    /// A thread may have it; then another one gives way.
    fn abort_largest_connection(&self, key: u64, kind: Kind, now: Millis) -> bool {
        let connection = self
            .connections
            .parked()
            .take_if(key, |connection| connection.is_flushing());
        let Some(connection) = connection else { return false };
        if self.giving_way.0.lock().begins_burst(0, now) {
            let (peers, option) = (&connection.stream.peers, option(kind));
            self.worker.log.error(format_args!(
                "aborted a response to {peers}: it had the largest share of {option}, which is used up"
            ));
        }
        self.abort(connection);
        true
    }

    /// True if a session may begin a request with a head of so many bytes.
    pub(super) fn admits_stream(&self, session: &Session, head_bytes: usize) -> bool {
        let budget = session.budget();
        let mut arriving = [Kind::Requests, Kind::Bodies].into_iter();
        let used_up = arriving.find(|kind| budget.is_used_up(*kind));
        if let Some(kind) = used_up.or_else(|| budget.waits_for_client()) {
            self.tell_of_refusal(session, kind);
            return false;
        }
        let own = budget.used(Kind::Requests) + head_bytes as u64;
        let has_room = || self.worker.config.request_totals.has_memory(head_bytes);
        let will_have_room =
            || self.make_largest_give_way(Kind::Requests, own) && self.giving_way.0.lock().promise(head_bytes as u64);
        let is_admitted = own <= SMALL_BYTES || has_room() || will_have_room();
        if !is_admitted {
            self.tell_of_refusal(session, Kind::Requests);
        }
        is_admitted
    }

    fn tell_of_refusal(&self, session: &Session, kind: Kind) {
        if self.giving_way.0.lock().begins_burst(1, Millis::now()) {
            let (peers, option) = (&session.peers, option(kind));
            self.worker.log.error(format_args!(
                "refused streams of HTTP/2 connection from {peers}: its share of {option} is used up"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_promised_than_a_session_gives_back() {
        let mut inner = Inner {
            left: 100,
            ..Inner::default()
        };
        assert_eq!(
            [60, 60, 40, 1].map(|amount| inner.promise(amount)),
            [true, false, true, false]
        );
    }

    #[test]
    fn a_burst_is_told_once() {
        let mut inner = Inner::default();
        let begin = Millis::START + Duration::from_secs(10);
        let mut told = |number, milliseconds| inner.begins_burst(number, begin + Duration::from_millis(milliseconds));
        assert!(told(0, 0));
        assert!((1..20).all(|count| !told(0, count * 900)));
        assert!(told(1, 17_200), "refusals are another burst");
        assert!(told(0, 19 * 900 + 1_000));
    }
}
