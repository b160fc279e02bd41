//! The ends of connections, and the step that follows a response.
//!
//! A connection ends when it is dropped: its place releases its resources, and closes, resets or keeps the socket as
//! noted here.

use crate::connection::{Connection, Then};
use crate::worker::Worker;

/// Ends a connection in the middle of its response.
pub(super) fn cut(mut connection: Box<Connection>) {
    connection.place().cut();
}

/// Aborts a connection to free resources for others: resets it, so unsent bytes in the kernel are discarded.
pub(super) fn abort(mut connection: Box<Connection>) {
    connection.place().reset();
}

/// Releases a connection that has given its socket to another owner.
pub(super) fn let_go(mut connection: Box<Connection>) {
    connection.place().give_away();
}

/// Returns the step that follows a response. `close`: the response says that the connection ends.
pub(super) fn after_response(worker: &Worker, close: bool) -> Then {
    match close {
        true => Then::Close,
        false if worker.migrates() => Then::Migrate,
        false => Then::NextRequest,
    }
}
