//! The sink of the parts of an engine: a part does not know the other owners of a connection.

use crate::connection::{Connection, Next};

/// The next move of a connection.
pub(super) enum Move {
    /// To where it has to go next.
    Settle(Box<Connection>, Next),
    /// To the ready queue: its request is known to be for the app.
    ToApp(Box<Connection>),
}

/// Takes connections from parts that have several of them, or work on threads of their own. A part that has one connection
/// returns its move instead.
pub(super) trait Sink: Send + Sync {
    /// Makes a move at once. If that brings a request, makes a thread look at the ready queue.
    fn put(&self, next: Move);
}
