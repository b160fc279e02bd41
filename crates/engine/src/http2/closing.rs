//! The end of an HTTP/2 connection for its engine: gives its slot back, counts and logs the end, and forgets the
//! connection.

use super::connection::{End, Http2Connection};
use super::connections::Http2Connections;
use crate::cluster::scoreboard::Slot;
use crate::connection::place::Place;
use crate::observe::excess::About;
use crate::worker::Worker;
use fairlead_wire::http2::Flood;
use std::sync::atomic::Ordering::Relaxed;

impl Http2Connections {
    /// Forgets an HTTP/2 connection that has ended, once all its streams know of the end.
    pub(crate) fn forget_if_over(&self, connection: &Http2Connection, worker: &Worker) {
        if !connection.is_over() {
            return;
        }
        if let Some((place, end)) = connection.close_for_engine() {
            close_for_engine(connection, place, end, worker);
        }
        if connection.is_forgettable() {
            self.remove(connection);
        }
    }
}

/// Gives back the slot of an HTTP/2 connection that has ended, and logs an unusual reason.
fn close_for_engine(connection: &Http2Connection, mut place: Place, end: End, worker: &Worker) {
    let counters = worker.counters();
    connection.queue.clear();
    connection.budget().close();
    let why = match end {
        End::Usual | End::Idle => None,
        End::Flood(flood) => {
            count_flood(counters, flood);
            Some(format!("{} (ENHANCE_YOUR_CALM)", flood.name()))
        }
        End::Violation(reason) => {
            counters.http2_violations.fetch_add(1, Relaxed);
            Some(format!("{} ({reason:?})", reason.description()))
        }
        End::GaveWay => {
            counters.http2_slow.fetch_add(1, Relaxed);
            place.reset();
            None
        }
        End::Slow => {
            counters.http2_slow.fetch_add(1, Relaxed);
            place.reset();
            Some("it takes or sends too little (ENHANCE_YOUR_CALM)".to_string())
        }
    };
    if let Some(why) = why {
        let peers = &connection.peers;
        let log = &worker.log;
        log.about_peer(
            About::Http2,
            peers.client(),
            format_args!("closed HTTP/2 connection from {peers}: {why}"),
        );
    }
    drop(place);
    connection.look_later();
}

fn count_flood(counters: &Slot, flood: Flood) {
    let counter = match flood {
        Flood::Resets => &counters.http2_reset_floods,
        Flood::ProvokedResets => &counters.http2_provoked_reset_floods,
        Flood::Settings => &counters.http2_settings_floods,
        Flood::Pings => &counters.http2_ping_floods,
        Flood::Priorities => &counters.http2_priority_floods,
        Flood::WindowUpdates => &counters.http2_window_floods,
        Flood::Continuations => &counters.http2_continuation_floods,
        Flood::EmptyData => &counters.http2_empty_data_floods,
    };
    counter.fetch_add(1, Relaxed);
}
