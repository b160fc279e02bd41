//! Whom a request counts for (`fair_by`), and whether it goes ahead of the others (`priority_paths`).

use crate::cluster::ledger::Ledger;
use crate::config::fair_by::{self, FairBy, Flow, Mark, Secret};
use crate::config::Config;
use crate::connection::Connection;
use crate::scheduler::Order;

/// Gives requests their flow and their priority.
pub(super) struct Flows(Option<Rules>);

/// The settings, if not every request has the same standing.
struct Rules {
    fair_by: FairBy,
    secret: Secret,
    priority_paths: Vec<Box<[u8]>>,
}

/// The order of the ready queue. `ledger`: that of all workers, if there are any.
pub(super) fn order(config: &Config, ledger: Option<&'static Ledger>) -> Order {
    match config.fair_by {
        FairBy::Connection => Order::Arrival,
        FairBy::Address | FairBy::Field(_) => Order::Flow(ledger),
    }
}

impl Flows {
    pub(super) fn new(config: &Config, ledger: Option<&'static Ledger>) -> Flows {
        if config.fair_by == FairBy::Connection && config.priority_paths.is_empty() {
            return Flows(None);
        }
        let paths = config.priority_paths.iter();
        Flows(Some(Rules {
            fair_by: config.fair_by.clone(),
            secret: ledger.map_or_else(fair_by::secret, Ledger::secret),
            priority_paths: paths.map(|path| path.as_bytes().into()).collect(),
        }))
    }

    /// Notes the standing of a request that is about to enter the ready queue.
    pub(super) fn rank(&self, connection: &mut Connection) {
        if let Some(rules) = &self.0 {
            connection.stream.flow = rules.flow(connection);
            connection.stream.is_urgent = rules.has_priority(connection);
        }
    }

    /// True if turns go by flow.
    pub(super) fn take_turns(&self) -> bool {
        let is_by_flow = |rules: &Rules| rules.fair_by != FairBy::Connection;
        self.0.as_ref().is_some_and(is_by_flow)
    }
}

impl Rules {
    /// Whom the request of a connection counts for.
    fn flow(&self, connection: &Connection) -> Option<Flow> {
        let stream = &connection.stream;
        let by_field = match &self.fair_by {
            FairBy::Connection => return None,
            FairBy::Address => None,
            FairBy::Field(name) => stream.request.field(name).map(Mark::Field),
        };
        let by_address = || stream.peer().map(|peer| Mark::of_address(peer.ip()));
        let mark = by_field.or_else(by_address);
        let mark = mark.unwrap_or_else(|| Mark::Connection(connection.key()));
        Some(Flow::new(mark, self.secret))
    }

    fn has_priority(&self, connection: &Connection) -> bool {
        let path = connection.stream.request.path();
        self.priority_paths.iter().any(|own| **own == *path)
    }
}
