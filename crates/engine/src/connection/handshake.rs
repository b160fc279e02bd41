//! TLS handshake of a connection, step by step. A step may compute for a millisecond, so a separate thread runs it; all
//! steps of a connection together may compute for [`COMPUTING`].

use super::seats::Seats;
use super::{Connection, ConnectionState, Next};
use crate::clock::{thread_time, Millis};
use crate::transport::poller::{Interest, Key};
use crate::transport::{Handshake, HandshakeError};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Processor time that a handshake may take. An honest one takes a millisecond or two, or ten with the longest keys.
const COMPUTING: Duration = Duration::from_millis(200);

/// Slot of a connection in the set of current handshakes.
#[derive(Debug)]
pub(crate) struct HandshakeSeat {
    seats: Arc<Seats>,
    key: Key,
}

impl HandshakeSeat {
    pub(super) fn new(seats: Arc<Seats>, key: Key) -> HandshakeSeat {
        HandshakeSeat { seats, key }
    }

    /// False once the connection has to give way.
    pub(super) fn is_kept(&self) -> bool {
        self.seats.has(self.key)
    }

    /// Notes that the ClientHello is complete.
    pub(super) fn note_hello(&self) {
        self.seats.note_hello(self.key);
    }

    /// Notes the client's address, which a proxy has reported.
    pub(super) fn identify(&self, address: Option<IpAddr>) {
        self.seats.identify(self.key, address);
    }
}

impl Drop for HandshakeSeat {
    fn drop(&mut self) {
        self.seats.leave(self.key);
    }
}

impl Connection {
    /// Begins with a handshake.
    pub(crate) fn await_handshake(&mut self, seats: &Arc<Seats>, now: Millis) {
        let address = self.stream.peer().map(|peer| peer.ip());
        self.state = ConnectionState::Handshake {
            since: now,
            computed: Duration::ZERO,
            seat: seats.take(self.key(), address, now),
        };
    }

    /// Time since when the connection has been in its handshake; `None` if it is not.
    pub(crate) fn in_handshake_since(&self) -> Option<Millis> {
        match self.state {
            ConnectionState::Handshake { since, .. } => Some(since),
            _ => None,
        }
    }

    /// Continues the handshake. After its end, waits for the first request.
    pub(crate) fn shake_hands(&mut self, now: Millis) -> Result<Next, HandshakeError> {
        let ConnectionState::Handshake { computed, seat, .. } = &mut self.state else {
            return Err(HandshakeError::Gone);
        };
        if !seat.is_kept() {
            return Err(HandshakeError::Displaced);
        }
        let begun = thread_time();
        let result = self.stream.transport().handshake();
        *computed += thread_time().saturating_sub(begun);
        match result? {
            Handshake::Waits(_) | Handshake::AwaitsHello if *computed > COMPUTING => Err(HandshakeError::Costly),
            Handshake::AwaitsHello => Ok(Next::Wait(Interest::Read)),
            Handshake::Waits(interest) => {
                seat.note_hello();
                Ok(Next::Wait(interest))
            }
            Handshake::Done => {
                self.state = ConnectionState::Idle;
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
