//! Position of an engine among the processes of its server.

use super::queues::SharedQueues;
use super::scoreboard::Scoreboard;
use std::sync::Arc;

/// Tells an engine its slot of the scoreboard, and if other engines serve, too.
pub enum Membership {
    /// One of several workers, which pass requests and connections on to each other.
    Worker(Arc<SharedQueues>, usize),
    /// The only engine that serves. It counts in its slot, and shares nothing else.
    Alone(&'static Scoreboard, usize),
}

impl Membership {
    /// The waiting room, if the engine shares one.
    pub(crate) fn into_queues(self) -> Option<Arc<SharedQueues>> {
        match self {
            Membership::Worker(queues, _) => Some(queues),
            Membership::Alone(..) => None,
        }
    }
}
