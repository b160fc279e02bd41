//! The owner of a connection, for a transport that carries one response of it.

use super::relayed::AfterResponse;
use crate::limits::budget::Budget;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// The owner of the connection: another worker, or an HTTP/2 connection. The transport is for one response.
pub(crate) trait ConnectionOwner {
    /// Budget of the HTTP/2 connection, for a stream of it.
    fn budget(&self) -> Option<&Arc<Budget>> {
        None
    }

    /// Reports to the worker that has the connection that the request begins to run, if it waits for that.
    fn begin(&self) {}

    /// Tells the peer that the request was not run, so that it may repeat any request. Returns false if the protocol has
    /// no such message.
    fn decline(&self) -> bool {
        false
    }

    /// Reports the step after the sent response to the owner of the connection.
    fn give_back(&self, _: AfterResponse) {}

    /// Notes that the app has taken it: a drain does not wait for its end.
    fn hijacked(&self) {}

    /// If this transport relays one response to another worker, which has the connection: the descriptor that reports
    /// the step after the response to it.
    fn back_channel(&self) -> Option<&OwnedFd> {
        None
    }
}
