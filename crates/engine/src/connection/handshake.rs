//! The handshake of a connection with TLS, one step after another. A step may take a millisecond of computing, so a
//! thread of its own runs it.

use super::{Connection, Next, State};
use crate::clock::Millis;
use crate::transport::poller::Interest;
use crate::transport::{Handshake, HandshakeError};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Counts a connection as one in its handshake.
#[derive(Debug)]
pub(crate) struct HandshakeSeat(Arc<AtomicUsize>);

impl HandshakeSeat {
    /// One more, of those in `count`.
    pub(crate) fn take(count: &Arc<AtomicUsize>) -> HandshakeSeat {
        count.fetch_add(1, Relaxed);
        HandshakeSeat(Arc::clone(count))
    }
}

impl Drop for HandshakeSeat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Connection {
    /// A handshake comes first.
    pub(crate) fn await_handshake(&mut self, seat: HandshakeSeat, now: Millis) {
        self.state = State::Handshake {
            since: now,
            _seat: seat,
        };
    }

    /// Since when the connection has been in its handshake; `None` if it is not.
    pub(crate) fn in_handshake_since(&self) -> Option<Millis> {
        match self.state {
            State::Handshake { since, .. } => Some(since),
            _ => None,
        }
    }

    /// Goes on with the handshake. When it is done, the first request is awaited.
    pub(crate) fn shake_hands(&mut self, now: Millis) -> Result<Next, HandshakeError> {
        match self.stream.transport().handshake()? {
            Handshake::Waits(interest) => Ok(Next::Wait(interest)),
            Handshake::Done => {
                self.state = State::Idle;
                self.idle_since = now;
                let session = self.stream.transport().session();
                Ok(match session.is_some_and(|session| session.is_http2) {
                    true => Next::Multiplex,
                    false => Next::Wait(Interest::Read),
                })
            }
        }
    }
}
