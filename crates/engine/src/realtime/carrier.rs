//! The connection under a client, and its use afterwards. A WebSocket or an event stream is the last use of its
//! connection. After the rest of a response, the next request may follow, if the client could find the end of the
//! response.

use crate::worker::Count;

/// See the head of this file.
pub(crate) enum Carrier {
    /// Ends with the client. `None` for a stream of HTTP/2, because its connection is counted.
    Own { _count: Option<Count> },
    /// Belongs to another worker or to an HTTP/2 connection, and continues there.
    Foreign { _count: Option<Count> },
    /// Returns to its connection after the response.
    Shared(Box<dyn Owner>),
}

/// Gets a connection back.
pub(crate) trait Owner: Send {
    /// Called once the kernel has the response, by any thread. The thread may hold the lock of the language.
    fn take_back(self: Box<Self>);
}

impl Carrier {
    /// Returns true if another request may follow.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self, Carrier::Own { .. })
    }

    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Carrier::Shared(_))
    }
}
