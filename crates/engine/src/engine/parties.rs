//! Whom a request counts for (`fair_by`), and whether it goes ahead of the others (`priority_paths`).

use super::Engine;
use crate::cluster::ledger::Ledger;
use crate::config::fair_by::{self, FairBy, Mark, Party, Secret};
use crate::config::Config;
use crate::connection::Connection;
use crate::scheduler::Order;

/// What the engine needs to know of the settings for each request.
pub(super) struct Parties {
    fair_by: FairBy,
    secret: Secret,
    priority_paths: Vec<Box<[u8]>>,
}

/// The order of the ready queue. `ledger`: that of all workers, if there are any.
pub(super) fn order(config: &Config, ledger: Option<&'static Ledger>) -> Order {
    match config.fair_by {
        FairBy::Connection => Order::Arrival,
        FairBy::Address | FairBy::Field(_) => Order::Party(ledger),
    }
}

impl Parties {
    /// `None` if every request has the same standing.
    pub(super) fn new(config: &Config, ledger: Option<&'static Ledger>) -> Option<Parties> {
        if config.fair_by == FairBy::Connection && config.priority_paths.is_empty() {
            return None;
        }
        let paths = config.priority_paths.iter();
        Some(Parties {
            fair_by: config.fair_by.clone(),
            secret: ledger.map_or_else(fair_by::secret, Ledger::secret),
            priority_paths: paths.map(|path| path.as_bytes().into()).collect(),
        })
    }

    /// Whom the request of a connection counts for.
    fn party(&self, connection: &Connection) -> Option<Party> {
        let stream = &connection.stream;
        let by_field = match &self.fair_by {
            FairBy::Connection => return None,
            FairBy::Address => None,
            FairBy::Field(name) => stream.request.field(name).map(Mark::Field),
        };
        let by_address = || stream.peer().map(|peer| Mark::of_address(peer.ip()));
        let mark = by_field.or_else(by_address);
        let mark = mark.unwrap_or_else(|| Mark::Connection(connection.key()));
        Some(Party::new(mark, self.secret))
    }

    fn has_priority(&self, connection: &Connection) -> bool {
        let path = connection.stream.request.path();
        self.priority_paths.iter().any(|own| **own == *path)
    }
}

impl Engine {
    /// Notes the standing of a request that is about to enter the ready queue.
    pub(super) fn rank(&self, connection: &mut Connection) {
        if let Some(parties) = &self.parties {
            connection.stream.party = parties.party(connection);
            connection.stream.is_urgent = parties.has_priority(connection);
        }
    }

    /// Whether turns go by party.
    pub(super) fn has_parties(&self) -> bool {
        self.worker.config.fair_by != FairBy::Connection
    }
}
