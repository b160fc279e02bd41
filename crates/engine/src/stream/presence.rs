//! The client of a request that waits or runs: still there, or gone.
//!
//! A reset tells that a client is gone. The end of its input does not: RFC 9112 §9.6 lets a client close its half of the
//! connection and wait for the response. So such a client is sent `100 Continue`, which every client of HTTP/1.1 skips
//! (RFC 9110 §15.2). If it has closed the connection, its system answers with a reset.

use super::Stream;
use crate::transport::Presence;
use fairlead_wire::Version;

const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Stream {
    /// True if no response would reach the client, as far as is known.
    pub(crate) fn has_left(&self) -> bool {
        self.transport.presence() == Presence::Left
    }

    /// The same. Once for each request, asks a client that has closed its half. On the same machine the answer comes at
    /// once; otherwise a later call has it. Only before the head of the response.
    pub(crate) fn has_left_or_ask(&mut self) -> bool {
        match self.transport.presence() {
            Presence::Left => true,
            Presence::HalfClosed if self.may_ask() => {
                self.was_asked = true;
                // A full socket belongs to a client that is there.
                let _ = self.transport.send(INTERIM, false);
                self.has_left()
            }
            _ => false,
        }
    }

    fn may_ask(&self) -> bool {
        let knows_interim_responses = self.request.version() == Version::Http11;
        knows_interim_responses && !self.was_asked && self.output.is_empty() && !self.transport.is_for_one_response()
    }

    /// True if the request is a stream that the client has reset, or if the client of the stream is gone. No system call.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.transport.own_events().is_some() && self.has_left()
    }
}
