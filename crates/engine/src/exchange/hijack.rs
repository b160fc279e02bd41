//! Sockets that the app takes: before a response (Rack SPEC, "Hijacking"), or after a head that the app has sent.

use super::state::{Owner, ResponsePhase};
use super::{relay, Exchange};
use crate::http::http1::{BodyFraming, ConnectionField, OwnCoding};
use crate::transport::AfterResponse;
use fairlead_wire::Version;
use std::os::fd::OwnedFd;

impl Exchange<'_> {
    /// Returns true if the app may take the socket. HTTP/2 requests share one, so it may not; but a tunnel gets its own
    /// socket.
    pub fn can_hijack(&self) -> bool {
        self.request().version() != Version::Http2 || self.request().offers_upgrade()
    }

    /// Gives the socket to the app (Rack SPEC, "Hijacking"). The app first reads the bytes that were read beyond the
    /// request. The engine forgets the connection once the app has returned.
    ///
    /// # Errors
    /// If there are no descriptors left, not [`Exchange::can_hijack`], or the deadline has expired.
    pub fn hijack(&mut self) -> std::io::Result<OwnedFd> {
        if !self.can_hijack() {
            let why = "a request of HTTP/2 has no socket of its own to hijack";
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why));
        }
        if !self.may_respond() {
            let why = "the request has timed out: its client has got a 504";
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, why));
        }
        self.end_loan();
        let ahead = std::mem::take(&mut self.stream.input);
        let transport = self.stream.transport();
        let socket = match transport.as_plain() {
            Some(plain) if ahead.is_empty() => plain.try_clone()?,
            _ => relay::open(transport, ahead, &self.services.config().descriptors)?,
        };
        transport.give_back(AfterResponse::GivenAway);
        transport.hijacked();
        self.services.worker.note_hijack();
        self.owner = Owner::App;
        self.phase = ResponsePhase::Ended;
        Ok(socket)
    }

    /// Returns true if the app has taken the socket.
    pub fn is_hijacked(&self) -> bool {
        matches!(self.owner, Owner::App)
    }

    /// Ends the head of a response with a body that the app writes to the socket itself. The body has the length that
    /// the app has announced, or ends with the connection.
    pub fn end_head_for_hijack(&mut self) {
        self.persistence.close();
        if self.head.announced.length.is_none() || self.has_own_framing() {
            self.head.announced.coding = Some(OwnCoding::NONE);
        }
        self.end_head(None);
    }

    /// Ends the head of a 101 response, after which the app uses another protocol on the socket ([`Exchange::hijack`]).
    /// It has no framing. Returns false if the head does not name the protocol, as it must (RFC 9110 §15.2.2).
    pub fn end_head_for_switch(&mut self) -> bool {
        if !self.head.response.fields.has(b"upgrade") {
            return false;
        }
        self.write_head(None, ConnectionField::Upgrade);
        self.persistence.close();
        self.phase = ResponsePhase::Body(BodyFraming::Raw);
        true
    }
}
