//! Where the parts of an engine put a connection that they have had: they do not know its other owners.

use crate::connection::{Connection, Next};

/// The way of a connection after a step.
pub(super) enum Onward {
    /// To where it has to go next.
    Settle(Box<Connection>, Next),
    /// To the ready queue: its request is known to be for the app.
    ToApp(Box<Connection>),
}

/// Takes connections from parts that have several of them, or work on threads of their own. A part that has one connection
/// returns its way instead.
pub(super) trait Sink: Send + Sync {
    /// Sends a connection on its way, and makes a thread look at the ready queue if that has a new request.
    fn put(&self, onward: Onward);
}
