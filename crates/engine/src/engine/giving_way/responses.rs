//! Memory for responses that clients have not taken yet.

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

/// Most clients that give way at once. Each may use little memory.
const MOST_AT_A_TIME: usize = 32;

/// Most candidates to examine, [`CANDIDATES`] at a time, before a client that reads its response has to give way.
const MOST_LOOKS: usize = 128;

impl GivingWay {
    /// Called after unsent bytes were counted; the bytes exist already. Returns true if a client has given way. If too
    /// many clients would have to give way at once, the next turn of the poller continues, because no other event may
    /// lead here.
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

    /// Makes the largest client give way among the clients that would not have taken their responses within
    /// `write_timeout`. If none is slow, or none has waited long enough to tell, a later turn checks again soon, unless
    /// the memory in use is far above the limit.
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

    /// Ends the first slow client. While one address has a large part, clients of other addresses give way only if
    /// `is_late`. If `is_late`, and some clients of an address with a large part may still turn out to be slow, the
    /// slowest of them gives way.
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
                // The result will be known soon. Until then no smaller client gives way.
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

    /// True if the address that uses most has a large part of the memory for unsent responses.
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

    /// Ends an HTTP/1 or HTTP/2 connection or a client unless its peer would have taken the waiting bytes within
    /// `limit`.
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

    /// Aborts an HTTP/1 connection. If a thread has it at present, another client has to give way.
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
