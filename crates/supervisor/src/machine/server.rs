//! The state of the whole server.

use super::state::{names, Lifecycle};
use serde::{Deserialize, Serialize};

/// The state of the whole server. Its deadlines are the deadlines of its processes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub enum Server {
    /// No worker has ever served. A failure ends the server.
    Starting,
    /// A worker has served, but not all workers serve yet.
    Completing,
    /// All workers have served.
    Serving,
    /// Requests are finished, then it ends.
    Draining,
    /// Requests are aborted, and it ends.
    Stopping,
    /// The loop has ended.
    Ended,
}

impl Lifecycle for Server {
    const TRANSITIONS: &'static [(&'static str, &'static str)] = &[
        ("Starting", "Completing"),
        ("Completing", "Serving"),
        ("Starting", "Draining"),
        ("Completing", "Draining"),
        ("Serving", "Draining"),
        ("Starting", "Stopping"),
        ("Completing", "Stopping"),
        ("Serving", "Stopping"),
        ("Draining", "Stopping"),
        ("Draining", "Ended"),
        ("Stopping", "Ended"),
    ];
    names!(Server: Starting, Completing, Serving, Draining, Stopping, Ended);
}

impl Server {
    /// Returns true if the server was asked to end, or has failed.
    pub(super) fn ends(self) -> bool {
        matches!(self, Server::Draining | Server::Stopping | Server::Ended)
    }
}
