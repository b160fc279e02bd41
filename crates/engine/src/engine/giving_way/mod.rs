//! Chooses the client to end when a total of all clients is used up: the client with the largest share, from the
//! address that uses most (`limits/budget.rs`). The client gives way: an HTTP/2 connection is closed; an HTTP/1
//! connection with a waiting response is aborted, and so is a WebSocket or an event stream. Peers that would soon have
//! taken their responses are spared as long as there is another candidate. Among incomplete messages, the message with
//! the largest product of size and age gives way, from the address with the largest sum of these products.
//!
//! `responses.rs`: memory for responses; `http2.rs`: memory and files for the requests of HTTP/2 connections;
//! `relief.rs`: the slowest reader, if threads wait for memory.

mod http2;
mod relief;
mod responses;

use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::exchange::Services;
use crate::http2::Http2Connections;
use crate::limits::budget::{Budget, Budgets, Kind};
use crate::sync::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The streams of a closed HTTP/2 connection release their memory in the next turn of the poller. No other client has
/// to give way in this time, but the wait lasts no longer than this.
const LEAVING: Duration = Duration::from_millis(100);

/// See the head of this file.
pub(super) struct GivingWay {
    services: Arc<Services>,
    connections: Arc<Connections>,
    http2_connections: Arc<Http2Connections>,
    /// The budgets of all clients.
    budgets: Arc<Budgets>,
    state: Mutex<GivingWayState>,
}

#[derive(Default)]
struct GivingWayState {
    /// The HTTP/2 connection that is giving way, and the time at which it began.
    leaving: Option<(Weak<Budget>, Millis)>,
    /// Bytes or files that this HTTP/2 connection releases, less the amounts promised to others.
    left: u64,
    /// HTTP/2 connections that gave way for their responses, and the time: their memory is released soon.
    gone: Vec<(Weak<Budget>, Millis)>,
}

impl GivingWayState {
    fn is_leaving(&self, kind: Kind, now: Millis) -> bool {
        let Some((budget, since)) = &self.leaving else {
            return false;
        };
        now - *since < LEAVING && budget.upgrade().is_some_and(|budget| budget.used(kind) > 0)
    }

    /// Returns the memory for responses that will be released soon.
    fn comes_back(&mut self, now: Millis) -> u64 {
        self.gone
            .retain(|(budget, since)| now - *since < LEAVING && budget.strong_count() > 0);
        let budgets = self.gone.iter().filter_map(|(budget, _)| budget.upgrade());
        budgets.map(|budget| budget.used(Kind::Responses)).sum()
    }

    /// Promises a part of the amount that the closing HTTP/2 connection releases. Returns false if the amount left is
    /// too small.
    fn promise(&mut self, amount: u64) -> bool {
        let left = self.left.checked_sub(amount);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The option that sets the limit.
fn option(kind: Kind) -> &'static str {
    match kind {
        Kind::Requests => "request_memory_total_bytes",
        Kind::Responses => "response_memory_total_bytes",
        Kind::Bodies => "the files for request bodies",
        Kind::Files => "the files for responses",
        Kind::Messages => "the memory for incomplete messages",
    }
}

impl GivingWay {
    pub(super) fn new(
        services: &Arc<Services>,
        connections: &Arc<Connections>,
        http2_connections: &Arc<Http2Connections>,
        budgets: &Arc<Budgets>,
    ) -> Arc<GivingWay> {
        Arc::new(GivingWay {
            services: Arc::clone(services),
            connections: Arc::clone(connections),
            http2_connections: Arc::clone(http2_connections),
            budgets: Arc::clone(budgets),
            state: Mutex::default(),
        })
    }

    /// Makes the first candidate give way; false if there is none.
    pub(super) fn make_room(&self, kind: Kind) -> bool {
        match kind {
            Kind::Responses => self.keep_to_response_memory(),
            Kind::Messages => self.make_room_for_messages(),
            _ => self.make_http2_give_way(kind, None),
        }
    }

    /// Makes the first incomplete message give way; false if there is none.
    fn make_room_for_messages(&self) -> bool {
        let clients = self.services.realtime.clients();
        let gives_way = |key: &u64| clients.get(*key).is_some_and(|client| client.give_message_up());
        self.budgets.longest_held_messages().iter().any(gives_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_promised_than_a_session_gives_back() {
        let mut state = GivingWayState {
            left: 100,
            ..GivingWayState::default()
        };
        assert_eq!(
            [60, 60, 40, 1].map(|amount| state.promise(amount)),
            [true, false, true, false]
        );
    }
}
