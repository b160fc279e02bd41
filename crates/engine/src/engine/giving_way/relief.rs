//! The slowest reader is aborted if threads of the app wait for memory for responses.

use super::GivingWay;
use crate::clock::Millis;
use crate::connection::Connection;
use crate::engine::ends;
use crate::spool::{Decision, GivesWay, Slowness};

impl GivingWay {
    /// Aborts the slowest reader. `own`: the slowness of the caller's client. `is_starving`: requests wait while all
    /// threads are busy.
    pub(in crate::engine) fn relieve(&self, own: Option<Slowness>, is_starving: bool) -> Decision {
        let (spool, worker) = (&self.services.spool, &self.services.worker);
        if !spool.is_starved(is_starving) {
            return Decision::Wait;
        }
        let now = Millis::now();
        let limit = worker.write_timeout();
        let from_disk = spool.is_disk_full();
        let slowness = |connection: &Connection| {
            let slowness = connection.slowness(now, from_disk)?;
            slowness.is_too_much(limit).then_some(slowness)
        };
        let mut parked = self.connections.parked();
        if spool.is_offer_due(now) {
            parked.offer_more();
        }
        let client = self.services.realtime.slowest(now, limit);
        let is_slower = |slowness: &Slowness| client.as_ref().is_none_or(|(slowest, _)| slowness > slowest);
        let worst = parked.take_worst(|connection| slowness(connection).filter(is_slower));
        drop(parked);
        match worst {
            Some((connection, _)) => {
                self.services.log_abort();
                ends::abort(connection);
                Decision::Relieved
            }
            None if client.is_some_and(|(_, client)| client.give_way(Some(limit), now) == GivesWay::Yes) => {
                Decision::Relieved
            }
            None if own.is_some_and(|own| own.is_too_much(limit)) => Decision::Own,
            None => Decision::Wait,
        }
    }
}
