//! Memory that the workers of one server share: the waiting room, through which requests migrate between them, and the
//! scoreboard with the statistics and the ledger of each flow's usage.

pub(crate) mod active;
mod balance;
pub(crate) mod histogram;
pub(crate) mod lasting;
pub(crate) mod ledger;
pub(crate) mod membership;
pub(crate) mod pause;
pub(crate) mod queue_delay;
pub(crate) mod queues;
pub(crate) mod responses;
pub(crate) mod running;
pub(crate) mod scoreboard;
pub(crate) mod statistics;
mod sums;
