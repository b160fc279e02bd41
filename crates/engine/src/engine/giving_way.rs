//! When a total of all clients is used up, the client with the largest share gives way (`limits/budget.rs`): a session of
//! HTTP/2 ends; an HTTP/1 connection with a waiting response is aborted, and so is a WebSocket or an event stream unless it
//! would soon be done. Of incomplete messages the one with the largest product of size and age gives way, of the address that
//! has the largest one in sum.

use super::Engine;
use crate::clock::Millis;
use crate::http2::{is_session, Session};
use crate::limits::budget::{Budget, Kind};
use crate::observe::excess::About;
use crate::realtime::is_client;
use crate::spool::GRACE;
use crate::sync::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The streams of a session that was ended learn of it in the next turn of the poller. Until then nobody else has to give
/// way, but not for longer than this.
const LEAVING: Duration = Duration::from_millis(100);

/// A session that has taken no more than this always gets a request in.
const SMALL_BYTES: u64 = 32 * 1024;

/// Clients that give way in one go. Each may have little.
const MOST_AT_A_TIME: usize = 32;

#[derive(Default)]
pub(super) struct GivingWay(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The session that gives way at present, and the time at which it began.
    leaving: Option<(Weak<Budget>, Millis)>,
    /// What that session gives back, but for what others have been promised of it.
    left: u64,
    /// Sessions that have given way for their responses, and when: their memory comes back soon.
    gone: Vec<(Weak<Budget>, Millis)>,
}

impl Inner {
    fn is_leaving(&self, kind: Kind, now: Millis) -> bool {
        let Some((budget, since)) = &self.leaving else {
            return false;
        };
        now - *since < LEAVING && budget.upgrade().is_some_and(|budget| budget.used(kind) > 0)
    }

    /// Memory for responses that comes back soon.
    fn comes_back(&mut self, now: Millis) -> u64 {
        self.gone
            .retain(|(budget, since)| now - *since < LEAVING && budget.strong_count() > 0);
        let budgets = self.gone.iter().filter_map(|(budget, _)| budget.upgrade());
        budgets.map(|budget| budget.used(Kind::Responses)).sum()
    }

    /// Promises some of what the leaving session gives back; false if there is not so much left.
    fn promise(&mut self, amount: u64) -> bool {
        let left = self.left.checked_sub(amount);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The option that limits it.
fn option(kind: Kind) -> &'static str {
    match kind {
        Kind::Requests => "request_memory_total_bytes",
        Kind::Responses => "response_memory_total_bytes",
        Kind::Bodies => "the files for request bodies",
        Kind::Files => "the files for responses",
        Kind::Messages => "the memory for incomplete messages",
    }
}

impl Engine {
    /// Called after unsent bytes were counted: they were there already.
    /// Whether somebody has given way.
    pub(super) fn keep_to_response_memory(&self) -> bool {
        let mut have_given_way = 0;
        while have_given_way < MOST_AT_A_TIME && self.services.spool.is_memory_exceeded(self.comes_back()) {
            if !self.make_largest_give_way(Kind::Responses, 0) {
                break;
            }
            have_given_way += 1;
        }
        have_given_way > 0
    }

    fn comes_back(&self) -> u64 {
        match self.services.spool.is_memory_exceeded(0) {
            true => self.giving_way.0.lock().comes_back(Millis::now()),
            false => 0,
        }
    }

    /// Makes the client with the largest share give way, if that is larger than `own`. Whether there is room now, or soon.
    pub(super) fn make_largest_give_way(&self, kind: Kind, own: u64) -> bool {
        let now = Millis::now();
        if kind != Kind::Responses && self.giving_way.0.lock().is_leaving(kind, now) {
            return true;
        }
        let keys = self.budgets.largest(kind);
        let gives_way = |key: u64| match key {
            _ if is_client(key) => self.end_client(key, kind, Some(self.worker.write_timeout()), now),
            _ if is_session(key) => self.end_largest_session(key, kind, own, now),
            _ => self.abort_largest_connection(key, kind),
        };
        let has_given_way =
            keys.iter().any(|key| gives_way(*key)) || kind == Kind::Responses && self.end_spared_client(&keys, now);
        if has_given_way {
            self.budgets.begin_again(kind);
        }
        has_given_way
    }

    /// Nobody is slow, or nobody has been for long enough to tell: that is looked at again soon, unless too much is at stake.
    fn end_spared_client(&self, keys: &[u64], now: Millis) -> bool {
        let mut clients = keys.iter().filter(|key| is_client(**key));
        if !self.services.spool.is_memory_far_exceeded(self.comes_back()) {
            self.worker.expect(now + GRACE);
            return false;
        }
        clients.any(|key| self.end_client(*key, Kind::Responses, None, now))
    }

    /// Spares a client that would have taken everything within `limit`.
    fn end_client(&self, key: u64, kind: Kind, limit: Option<Duration>, now: Millis) -> bool {
        let client = self.services.realtime.clients().get(key);
        client.is_some_and(|client| match kind {
            Kind::Messages => client.give_message_up(),
            _ => client.give_way(limit, now),
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
        let leaving = (Arc::downgrade(session.budget()), now);
        if kind == Kind::Responses {
            inner.gone.push(leaving);
        } else {
            inner.leaving = Some(leaving);
            inner.left = session.budget().used(kind);
        }
        drop(inner);
        let (peers, option) = (&session.peers, option(kind));
        self.worker.log.about_peer(
            About::GaveWay,
            peers.client(),
            format_args!(
                "closed HTTP/2 connection from {peers}: it had the largest share of {option}, which is used up"
            ),
        );
        session.give_way(now);
        self.forget_if_over(&session);
        true
    }

    /// A thread may have it; then another one gives way.
    fn abort_largest_connection(&self, key: u64, kind: Kind) -> bool {
        let connection = self
            .connections
            .parked()
            .take_if(key, |connection| connection.is_flushing());
        let Some(connection) = connection else { return false };
        let (peers, option) = (&connection.stream.peers, option(kind));
        self.worker.log.about_peer(
            About::GaveWay,
            peers.client(),
            format_args!("aborted a response to {peers}: it had the largest share of {option}, which is used up"),
        );
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

    /// One line about each session, until it has had no stream refused for a while.
    fn tell_of_refusal(&self, session: &Session, kind: Kind) {
        if session.budget().begins_refusals(Millis::now()) {
            let (peers, option) = (&session.peers, option(kind));
            self.worker.log.about_peer(
                About::RefusedStreams,
                peers.client(),
                format_args!("refused streams of HTTP/2 connection from {peers}: its share of {option} is used up"),
            );
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
}
