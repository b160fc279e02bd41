//! Flow of a request (`fair_by`), and its priority over other requests (`priority_paths`).

use crate::cluster::ledger::Ledger;
use crate::config::fair_by::{self, FairBy, Flow, Mark, Secret};
use crate::config::Config;
use crate::connection::Connection;
use crate::scheduler::Order;

/// Gives requests their flow and their priority.
pub(super) struct Flows(Option<Rules>);

/// Settings, unless all requests have the same flow and priority.
struct Rules {
    fair_by: FairBy,
    secret: Secret,
    priority_paths: Vec<Box<[u8]>>,
}

/// Order of the ready queue. `ledger`: the ledger of all workers, if there are any.
pub(super) fn order(config: &Config, ledger: Option<&'static Ledger>) -> Order {
    match config.fair_by {
        FairBy::Connection => Order::Arrival,
        FairBy::Address | FairBy::Field(_) => Order::Flow(ledger),
    }
}

impl Flows {
    pub(super) fn new(config: &Config, ledger: Option<&'static Ledger>) -> Flows {
        if !config.fair_by.has_flows() && config.priority_paths.is_empty() {
            return Flows(None);
        }
        let paths = config.priority_paths.iter();
        Flows(Some(Rules {
            fair_by: config.fair_by.clone(),
            secret: ledger.map_or_else(fair_by::secret, Ledger::secret),
            priority_paths: paths.map(|path| path.as_bytes().into()).collect(),
        }))
    }

    /// Stores the flow and the priority of a request that is about to enter the ready queue.
    pub(super) fn rank(&self, connection: &mut Connection) {
        if let Some(rules) = &self.0 {
            connection.stream.flow = rules.flow(connection);
            connection.stream.is_urgent = rules.has_priority(connection);
        }
    }

    /// True if threads are shared by flow.
    pub(super) fn take_turns(&self) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.fair_by.has_flows())
    }
}

impl Rules {
    /// Flow of a connection's request.
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
