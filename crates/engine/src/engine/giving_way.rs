//! When a total of all clients is used up, the largest share of the address that has most gives way (`limits/budget.rs`): a
//! session of HTTP/2 ends; an HTTP/1 connection with a waiting response is aborted, and so is a WebSocket or an event stream.
//! Peers that would soon have taken what waits for them are spared as long as there is another one. Of incomplete messages the
//! one with the largest product of size and age gives way, of the address that has the largest one in sum.

use super::Engine;
use crate::clock::Millis;
use crate::http2::{is_session, Session};
use crate::limits::budget::{Budget, Kind, CANDIDATES};
use crate::limits::holders::Candidate;
use crate::observe::excess::About;
use crate::realtime::is_client;
use crate::spool::{GivesWay, Slowness, GRACE};
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

/// Candidates that are looked at, by [`CANDIDATES`] at a time, before one that takes what it is sent has to give way.
const MOST_LOOKS: usize = 128;

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
    /// Called after unsent bytes were counted: they were there already. Returns whether somebody has given way. If too many would have to at
    /// once, the next turn of the poller goes on: perhaps nothing else happens that leads here.
    pub(super) fn keep_to_response_memory(&self) -> bool {
        let mut have_given_way = 0;
        while have_given_way < MOST_AT_A_TIME && self.services.spool.is_memory_exceeded(self.comes_back()) {
            if !self.make_room_for_responses(Millis::now()) {
                break;
            }
            have_given_way += 1;
        }
        if have_given_way == MOST_AT_A_TIME {
            self.worker.expect(Millis::now());
        }
        have_given_way > 0
    }

    fn comes_back(&self) -> u64 {
        match self.services.spool.is_memory_exceeded(0) {
            true => self.giving_way.0.lock().comes_back(Millis::now()),
            false => 0,
        }
    }

    /// Makes the largest of those give way that would not have taken their responses within `write_timeout`. If nobody is slow, or
    /// nobody has been for long enough to tell, that is looked at again soon, unless too much is at stake.
    fn make_room_for_responses(&self, now: Millis) -> bool {
        let is_late = self.services.spool.is_memory_far_exceeded(self.comes_back());
        if is_late {
            self.budgets.begin_again(Kind::Responses);
        }
        let has_given_way = self.end_slow_response(is_late, now) || is_late && self.end_largest_response(now);
        if has_given_way {
            self.budgets.begin_again(Kind::Responses);
        } else {
            self.worker.expect(now + GRACE);
        }
        has_given_way
    }

    fn end_slow_response(&self, is_late: bool, now: Millis) -> bool {
        for _ in 0..if is_late { MOST_LOOKS } else { 1 } {
            let candidates = self.budgets.candidates(Kind::Responses);
            if self.end_first_response(&candidates, is_late, now) {
                return true;
            }
            if candidates.len() < CANDIDATES {
                break;
            }
        }
        false
    }

    /// Ends the first one that is slow. As long as one address has a large part, others give way only when it is late. If some of an
    /// address with a large part may still turn out to be slow by then, the slowest of these gives way.
    fn end_first_response(&self, candidates: &[Candidate], is_late: bool, now: Millis) -> bool {
        let limit = Some(self.worker.write_timeout());
        let is_large = |candidate: &Candidate| self.services.spool.is_large_part(candidate.sum);
        let mut first_is_large = is_late.then_some(false);
        let mut unknown: Option<(Slowness, &Candidate)> = None;
        for candidate in candidates {
            if unknown.is_some_and(|(_, unknown)| unknown.owner != candidate.owner) {
                break;
            }
            if !candidate.is_of_first && *first_is_large.get_or_insert_with(|| self.has_first_large_part()) {
                self.budgets.begin_again(Kind::Responses);
                return false;
            }
            match self.end_response(candidate.key, limit, now) {
                GivesWay::Yes => return true,
                // It is known soon. Until then no smaller one gives way.
                GivesWay::Perhaps(_) if !is_late => {
                    self.budgets.begin_again(Kind::Responses);
                }
                GivesWay::Perhaps(slowness) if is_large(candidate) => {
                    let is_slower = unknown.is_none_or(|(slowest, _)| slowness > slowest);
                    unknown = if is_slower {
                        Some((slowness, candidate))
                    } else {
                        unknown
                    };
                }
                GivesWay::Perhaps(_) | GivesWay::No => {}
            }
        }
        unknown.is_some_and(|(_, unknown)| self.end_response(unknown.key, None, now) == GivesWay::Yes)
    }

    /// Whether the address that has most has a large part of the memory for unsent responses.
    fn has_first_large_part(&self) -> bool {
        self.services
            .spool
            .is_large_part(self.budgets.largest_sum(Kind::Responses))
    }

    fn end_largest_response(&self, now: Millis) -> bool {
        self.budgets.begin_again(Kind::Responses);
        let candidates = self.budgets.candidates(Kind::Responses);
        let mut ended = candidates
            .iter()
            .map(|candidate| self.end_response(candidate.key, None, now));
        ended.any(|ended| ended == GivesWay::Yes)
    }

    /// Ends a connection, a session or a client unless it would have taken what waits for it within `limit`.
    fn end_response(&self, key: u64, limit: Option<Duration>, now: Millis) -> GivesWay {
        if is_client(key) {
            let client = self.services.realtime.clients().get(key);
            client.map_or(GivesWay::No, |client| client.give_way(limit, now))
        } else if is_session(key) {
            self.end_slow_session(key, limit, now)
        } else {
            self.abort_connection(key, limit, now)
        }
    }

    fn end_slow_session(&self, key: u64, limit: Option<Duration>, now: Millis) -> GivesWay {
        let Some(session) = self.sessions.get(key).filter(|session| !session.is_over()) else {
            return GivesWay::No;
        };
        if let Some(limit) = limit {
            let slowness = session.slowness(now);
            let verdict = slowness.map_or(GivesWay::No, |slowness| slowness.gives_way(limit));
            if verdict != GivesWay::Yes {
                return verdict;
            }
        }
        let leaving = (Arc::downgrade(session.budget()), now);
        self.giving_way.0.lock().gone.push(leaving);
        self.end_session(&session, Kind::Responses, now);
        GivesWay::Yes
    }

    /// A thread may have it; then another one gives way.
    fn abort_connection(&self, key: u64, limit: Option<Duration>, now: Millis) -> GivesWay {
        let taken = self.connections.parked().take_to_give_way(key, limit, now);
        let connection = match taken {
            Ok(connection) => connection,
            Err(verdict) => return verdict,
        };
        let (peers, option) = (&connection.stream.peers, option(Kind::Responses));
        self.worker.log.about_peer(
            About::GaveWay,
            peers.client(),
            format_args!("aborted a response to {peers}: others need its share of {option}, which is used up"),
        );
        self.abort(connection);
        GivesWay::Yes
    }

    /// Makes the incomplete message give way that is the first one to go.
    pub(super) fn make_room_for_messages(&self) -> bool {
        let clients = self.services.realtime.clients();
        let gives_way = |key: &u64| clients.get(*key).is_some_and(|client| client.give_message_up());
        self.budgets.longest_held_messages().iter().any(gives_way)
    }

    /// Makes the largest session of the address with most give way. Whether there is room now, or soon. `asker`: a session that
    /// is about to have so much itself; others give way to it only if their addresses have more.
    pub(super) fn make_session_give_way(&self, kind: Kind, asker: Option<(&Budget, u64)>) -> bool {
        let now = Millis::now();
        if self.giving_way.0.lock().is_leaving(kind, now) {
            return true;
        }
        let candidates = self.budgets.candidates(kind);
        let has_given_way = candidates
            .iter()
            .any(|candidate| self.end_largest_session(candidate.key, kind, asker, now));
        if has_given_way {
            self.budgets.begin_again(kind);
        }
        has_given_way
    }

    fn end_largest_session(&self, key: u64, kind: Kind, asker: Option<(&Budget, u64)>, now: Millis) -> bool {
        let session = self.sessions.get(key).filter(|session| !session.is_over());
        let gives_way = |session: &Arc<Session>| {
            let gives_way_to = |(asker, wanted)| self.budgets.gives_way_to(kind, session.budget(), asker, wanted);
            asker.is_none_or(gives_way_to)
        };
        let Some(session) = session.filter(gives_way) else {
            return false;
        };
        let mut inner = self.giving_way.0.lock();
        inner.leaving = Some((Arc::downgrade(session.budget()), now));
        inner.left = session.budget().used(kind);
        drop(inner);
        self.end_session(&session, kind, now);
        true
    }

    fn end_session(&self, session: &Arc<Session>, kind: Kind, now: Millis) {
        let (peers, option) = (&session.peers, option(kind));
        self.worker.log.about_peer(
            About::GaveWay,
            peers.client(),
            format_args!("closed HTTP/2 connection from {peers}: others need its share of {option}, which is used up"),
        );
        session.give_way(now);
        self.forget_if_over(session);
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
        let asker = Some((&**budget, own));
        let will_have_room =
            || self.make_session_give_way(Kind::Requests, asker) && self.giving_way.0.lock().promise(head_bytes as u64);
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
