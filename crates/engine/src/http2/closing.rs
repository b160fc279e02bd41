//! The end of a session for its engine: its place is given up, its end counted and logged, and it is forgotten.

use super::connection::{End, Http2Connection};
use super::connections::Http2Connections;
use crate::cluster::scoreboard::Slot;
use crate::connection::place::Place;
use crate::observe::excess::About;
use crate::worker::Worker;
use fairlead_wire::http2::Flood;
use std::sync::atomic::Ordering::Relaxed;

impl Http2Connections {
    /// Forgets a session that has ended, once all its streams know of it.
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

/// Gives up the place of a session that has ended, and logs why it has if that is of interest.
fn close_for_engine(connection: &Http2Connection, mut place: Place, end: End, worker: &Worker) {
    let counters = worker.counters();
    connection.queue.clear();
    connection.budget().close();
    let why = match end {
        End::Usual | End::Idle => None,
        End::Flood(flood) => {
            count_flood(counters, flood);
            Some(format!("{}: closed 11", flood.name()))
        }
        End::Violation(reason) => {
            counters.http2_violations.fetch_add(1, Relaxed);
            Some(format!("{}: closed {}", reason.description(), u32::from(reason)))
        }
        End::GaveWay => {
            counters.http2_slow.fetch_add(1, Relaxed);
            place.reset();
            None
        }
        End::Slow => {
            counters.http2_slow.fetch_add(1, Relaxed);
            place.reset();
            Some("it takes or sends too little: closed 11".to_string())
        }
    };
    if let Some(why) = why {
        let peers = &connection.peers;
        let log = &worker.log;
        log.about_peer(
            About::Http2,
            peers.client(),
            format_args!("ended HTTP/2 with {peers} ({why})"),
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
