//! The state of an exchange: the progress of its response, and the state of its client and its connection.

use super::upgrade::Upgrade;
use crate::http::http1::BodyFraming;
use crate::realtime::Client;
use std::sync::Arc;

/// The part of the response that is written.
///
/// ```text
///                   start_early_hints
///   NotStarted ◀───────────────────────▶ EarlyHints
///    │ │ │  ▲     end or cancel them
///    │ │ │  └─── take_back ───┬──────────────────┬───────────────┐
///    │ │ └─ start ─────────▶ Head ── end_head ──▶ Body ── end ──▶ Ended
///    │ └─── start_upgrade ─▶ Upgrade ── end_upgrade ──────────────▲
///    └───── hijack, abort ────────────────────────────────────────┘
/// ```
/// `abort` ends every phase, and `take_back` also takes back an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponsePhase {
    NotStarted,
    EarlyHints,
    Head,
    /// The head of a response after which the connection becomes a client.
    Upgrade(Upgrade),
    Body(BodyFraming),
    Ended,
}

/// The output of the connection, as far as this response goes.
///
/// ```text
///   Held ── flush ─────────────▶ Sent ◀─── waited ──┐
///    │ ▲                         ▲ │ │               │
///    │ └────── end_early_hints ──│─┘ │               │
///    └─ begin_wait ──────────────│───┴───────────▶ InWait
///                                └─▶ Lent ◀───────────┘
///                                            see `loan.rs`
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputState {
    /// The kernel has nothing of this response: it may be taken back.
    Held,
    /// The kernel may have some of it.
    Sent,
    /// A [`Wait`](super::Wait) has the output.
    InWait,
    /// The body sender has the output; see `loan.rs`.
    Lent,
}

/// The client, as far as it can be reached.
///
/// ```text
///   There ──▶ Gone ──▶ Aborted
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    There,
    /// No further bytes reach it.
    Gone,
    /// It was aborted to free memory for others: the connection is reset, so that even bytes in the kernel are not
    /// sent.
    Aborted,
}

/// The connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// Another request may follow.
    Persists,
    Closes,
    /// Only its end ends the body: a client must be able to tell this end from an early one.
    EndsBody,
}

impl Persistence {
    pub(super) fn of(keep_alive: bool) -> Persistence {
        match keep_alive {
            true => Persistence::Persists,
            false => Persistence::Closes,
        }
    }

    pub(super) fn closes(self) -> bool {
        self != Persistence::Persists
    }

    /// Ends the connection with the response.
    pub(super) fn close(&mut self) {
        if *self == Persistence::Persists {
            *self = Persistence::Closes;
        }
    }

    /// Notes a head that was written. `ends_body`: its body ends with the connection. Only the last head counts.
    pub(super) fn end_body(&mut self, ends_body: bool) {
        match ends_body {
            true => *self = Persistence::EndsBody,
            false if *self == Persistence::EndsBody => *self = Persistence::Closes,
            false => {}
        }
    }
}

/// The owner of the connection once the app has returned.
#[derive(Debug)]
pub(super) enum Owner {
    Server,
    /// The app, which has taken the socket.
    App,
    /// The client that the connection becomes.
    Client(Arc<Client>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_closes_is_never_kept_again() {
        let mut persistence = Persistence::of(true);
        assert!(!persistence.closes());
        persistence.end_body(true);
        persistence.close();
        assert_eq!(persistence, Persistence::EndsBody);
        persistence.end_body(false);
        assert_eq!(persistence, Persistence::Closes);
        assert!(Persistence::of(false).closes());
    }
}
