//! The connection that carries a client, and what follows over it. A WebSocket or an event stream is the last use of its
//! connection. After the rest of a response may come the next request, if the client was told where the response ends.

use crate::worker::Count;

/// See the head of this file.
pub(crate) enum Carrier {
    /// Ends with the client. `None` for a stream of a session, which is counted itself.
    Own { _count: Option<Count> },
    /// Belongs to another worker or to a session, and goes on there.
    Foreign { _count: Option<Count> },
    /// Goes on where it came from.
    Shared(Box<dyn Owner>),
}

/// Gets a connection back.
pub(crate) trait Owner: Send {
    /// The response is with the kernel. Any thread may call this, also one that has the lock of the language.
    fn take_back(self: Box<Self>);
}

impl Carrier {
    /// Whether another request may follow.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self, Carrier::Own { .. })
    }

    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Carrier::Shared(_))
    }
}
