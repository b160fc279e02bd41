//! Memory and files for requests, which the HTTP/2 connections share.

use super::{option, GivingWay};
use crate::clock::Millis;
use crate::http2::Http2Connection;
use crate::limits::budget::{Budget, Kind};
use crate::observe::excess::About;
use std::sync::Arc;

/// An HTTP/2 connection that uses no more than this may always begin a request.
const SMALL_BYTES: u64 = 32 * 1024;

impl GivingWay {
    /// Makes the largest HTTP/2 connection of the address that uses most give way. Returns true if there is room now or
    /// soon. `asker`: an HTTP/2 connection that is about to use this amount itself; others give way to it only if their
    /// addresses use more.
    pub(in crate::engine) fn make_http2_give_way(&self, kind: Kind, asker: Option<(&Budget, u64)>) -> bool {
        let now = Millis::now();
        if self.state.lock().is_leaving(kind, now) {
            return true;
        }
        let candidates = self.budgets.candidates(kind);
        let has_given_way = candidates
            .iter()
            .any(|candidate| self.end_largest_http2(candidate.key, kind, asker, now));
        if has_given_way {
            self.budgets.begin_again(kind);
        }
        has_given_way
    }

    fn end_largest_http2(&self, key: u64, kind: Kind, asker: Option<(&Budget, u64)>, now: Millis) -> bool {
        let http2 = self.http2_connections.get(key).filter(|http2| !http2.is_over());
        let gives_way = |http2: &Arc<Http2Connection>| {
            let gives_way_to = |(asker, wanted)| self.budgets.gives_way_to(kind, http2.budget(), asker, wanted);
            asker.is_none_or(gives_way_to)
        };
        let Some(http2) = http2.filter(gives_way) else {
            return false;
        };
        let mut state = self.state.lock();
        state.leaving = Some((Arc::downgrade(http2.budget()), now));
        state.left = http2.budget().used(kind);
        drop(state);
        self.end_http2(&http2, kind, now);
        true
    }

    pub(super) fn end_http2(&self, http2: &Arc<Http2Connection>, kind: Kind, now: Millis) {
        let (peers, option) = (&http2.peers, option(kind));
        self.services.worker.log.about_peer(
            About::GaveWay,
            peers.client(),
            format_args!("closed HTTP/2 connection from {peers}: others need its share of {option}, which is used up"),
        );
        http2.give_way(now);
        self.http2_connections.forget_if_over(http2, &self.services.worker);
    }

    /// True if an HTTP/2 connection may begin a request with a head of `head_bytes`.
    pub(in crate::engine) fn admits_stream(&self, http2: &Http2Connection, head_bytes: usize) -> bool {
        let budget = http2.budget();
        let mut arriving = [Kind::Requests, Kind::Bodies].into_iter();
        let used_up = arriving.find(|kind| budget.is_used_up(*kind));
        if let Some(kind) = used_up.or_else(|| budget.waits_for_client()) {
            self.tell_of_refusal(http2, kind);
            return false;
        }
        let own = budget.used(Kind::Requests) + head_bytes as u64;
        let has_room = || self.services.worker.config.request_totals.has_memory(head_bytes);
        let asker = Some((&**budget, own));
        let will_have_room =
            || self.make_http2_give_way(Kind::Requests, asker) && self.state.lock().promise(head_bytes as u64);
        let is_admitted = own <= SMALL_BYTES || has_room() || will_have_room();
        if !is_admitted {
            self.tell_of_refusal(http2, Kind::Requests);
        }
        is_admitted
    }

    /// Logs one line for each HTTP/2 connection, until no stream of it was refused for a while.
    fn tell_of_refusal(&self, http2: &Http2Connection, kind: Kind) {
        if http2.budget().begins_refusals(Millis::now()) {
            let (peers, option) = (&http2.peers, option(kind));
            self.services.worker.log.about_peer(
                About::RefusedStreams,
                peers.client(),
                format_args!("refused streams of HTTP/2 connection from {peers}: its share of {option} is used up"),
            );
        }
    }
}
