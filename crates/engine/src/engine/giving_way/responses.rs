//! Memory for responses that their clients have not taken.

use super::{option, GivingWay};
use crate::clock::Millis;
use crate::engine::ends;
use crate::http2::is_http2;
use crate::limits::budget::{Kind, CANDIDATES};
use crate::limits::holders::Candidate;
use crate::observe::excess::About;
use crate::realtime::is_client;
use crate::spool::{GivesWay, Slowness, GRACE};
use std::sync::Arc;
use std::time::Duration;

/// Clients that give way in one go. Each may have little.
const MOST_AT_A_TIME: usize = 32;

/// Candidates that are looked at, by [`CANDIDATES`] at a time, before one that takes what it is sent has to give way.
const MOST_LOOKS: usize = 128;

impl GivingWay {
    /// Called after unsent bytes were counted: they were there already. Returns true if a client has given way. If too many
    /// would have to at once, the next turn of the poller goes on: perhaps nothing else happens that leads here.
    pub(in crate::engine) fn keep_to_response_memory(&self) -> bool {
        let mut have_given_way = 0;
        while have_given_way < MOST_AT_A_TIME && self.services.spool.is_memory_exceeded(self.comes_back()) {
            if !self.make_room_for_responses(Millis::now()) {
                break;
            }
            have_given_way += 1;
        }
        if have_given_way == MOST_AT_A_TIME {
            self.services.worker.expect(Millis::now());
        }
        have_given_way > 0
    }

    fn comes_back(&self) -> u64 {
        match self.services.spool.is_memory_exceeded(0) {
            true => self.state.lock().comes_back(Millis::now()),
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
            self.services.worker.expect(now + GRACE);
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
        let limit = Some(self.services.worker.write_timeout());
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

    /// True if the address that has most has a large part of the memory for unsent responses.
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
        } else if is_http2(key) {
            self.end_slow_http2(key, limit, now)
        } else {
            self.abort_connection(key, limit, now)
        }
    }

    fn end_slow_http2(&self, key: u64, limit: Option<Duration>, now: Millis) -> GivesWay {
        let Some(http2) = self.http2_connections.get(key).filter(|http2| !http2.is_over()) else {
            return GivesWay::No;
        };
        if let Some(limit) = limit {
            let slowness = http2.slowness(now);
            let verdict = slowness.map_or(GivesWay::No, |slowness| slowness.gives_way(limit));
            if verdict != GivesWay::Yes {
                return verdict;
            }
        }
        let leaving = (Arc::downgrade(http2.budget()), now);
        self.state.lock().gone.push(leaving);
        self.end_http2(&http2, Kind::Responses, now);
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
        self.services.worker.log.about_peer(
            About::GaveWay,
            peers.client(),
            format_args!("aborted a response to {peers}: others need its share of {option}, which is used up"),
        );
        ends::abort(connection);
        GivesWay::Yes
    }
}
