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

    /// The same. Once for each request, asks a client that has closed its half; a later call has the answer. Only before
    /// the head of the response.
    pub(crate) fn has_left_or_ask(&mut self) -> bool {
        let presence = self.transport.presence();
        if presence == Presence::HalfClosed && !self.was_asked {
            self.was_asked = true;
            self.ask();
        }
        presence == Presence::Left
    }

    fn ask(&self) {
        let may_ask = self.request.version() == Version::Http11 && self.output.is_empty();
        if may_ask && !self.transport.is_for_one_response() {
            // A full socket belongs to a client that is there.
            let _ = self.transport.send(INTERIM, false);
        }
    }

    /// True if the request is a stream that the client has reset, or if the client of the stream is gone. No system call.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.transport.own_events().is_some() && self.has_left()
    }
}
