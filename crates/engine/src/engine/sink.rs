//! Sink of the parts of an engine: a part does not know the other owners of a connection.

use crate::connection::{Connection, Next};

/// Next move of a connection.
pub(super) enum Move {
    /// To its next owner.
    Settle(Box<Connection>, Next),
    /// To the ready queue: its request is known to be for the app.
    ToApp(Box<Connection>),
}

/// Takes connections from parts that work on several of them, or on threads of their own. A part with only one
/// connection returns its move instead.
pub(super) trait Sink: Send + Sync {
    /// Makes a move at once. If it adds a request to the ready queue, makes a thread check that queue.
    fn put(&self, next: Move);
}
