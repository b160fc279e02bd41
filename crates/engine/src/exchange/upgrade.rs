//! Turns a request into a client: the protocol that it asks for, and the head of the response (RFC 6455 §4.2.2, WHATWG
//! HTML §9.2).

use super::state::{Owner, ResponsePhase};
use super::Exchange;
use crate::http::http1::{BodyFraming, ConnectionField};
use crate::http::request::Request;
use crate::realtime::{Client, Peer, Protocol, Remainder};
use fairlead_wire::websocket::Deflate;
use fairlead_wire::Version;
use std::sync::Arc;

/// The protocol that a request is upgraded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    protocol: Protocol,
    deflate: Option<Deflate>,
}

/// Fields that the server sets itself when it upgrades.
const OWN_FIELDS: [&[u8]; 9] = [
    b"connection",
    b"content-encoding",
    b"content-length",
    b"content-type",
    b"keep-alive",
    b"sec-websocket-accept",
    b"sec-websocket-extensions",
    b"transfer-encoding",
    b"upgrade",
];

/// Defaults for event streams: neither caches nor proxies should hold events back.
const EVENT_STREAM_FIELDS: [(&[u8], &[u8]); 2] = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")];

/// See [`Exchange::upgrade_offer`].
pub(crate) fn upgrade_offer(request: &Request) -> Option<Protocol> {
    let offers_web_socket = |protocol: &[u8]| protocol.eq_ignore_ascii_case(b"websocket");
    let is_offer = request.offers_upgrade();
    if is_offer && (request.is_tunnel() || request.offered_protocols().any(offers_web_socket)) {
        return request.web_socket_handshake().map(|_| Protocol::WebSocket);
    }
    request.wants_event_stream().then_some(Protocol::EventStream {
        chunked: request.version() == Version::Http11,
    })
}

impl Exchange<'_> {
    /// The protocol that the client asks for: a WebSocket, or an event stream. `None` for an ordinary request.
    pub fn upgrade_offer(&self) -> Option<Protocol> {
        upgrade_offer(self.request())
    }

    /// Begins the response that accepts the offer; fields of the app may follow. Returns false if there is no offer.
    pub fn start_upgrade(&mut self) -> bool {
        let Some(protocol) = self.upgrade_offer() else {
            return false;
        };
        self.cancel_early_hints();
        let mut deflate = None;
        if protocol == Protocol::WebSocket {
            let request = self.request();
            let Some(handshake) = request.web_socket_handshake() else {
                return false;
            };
            let accepted = self
                .services
                .config()
                .deflate
                .and_then(|context| request.negotiate_deflate(context));
            self.head.response.start(101);
            let fields = &mut self.head.response.fields;
            fields.add(b"upgrade", b"websocket");
            fields.add(b"sec-websocket-accept", &handshake.accept);
            if let Some((parameters, response)) = accepted {
                deflate = Some(parameters);
                fields.add(b"sec-websocket-extensions", response.as_bytes());
            }
        } else {
            self.head.response.start(200);
            self.head.response.fields.add(b"content-type", b"text/event-stream");
        }
        self.phase = ResponsePhase::Upgrade(Upgrade { protocol, deflate });
        true
    }

    /// Ends the head. The client gets its first event once the app has returned.
    pub fn end_upgrade(&mut self) -> Option<Arc<Client>> {
        let ResponsePhase::Upgrade(upgrade) = self.phase else {
            return None;
        };
        let (framing, connection) = match upgrade.protocol {
            Protocol::EventStream { chunked } => {
                for (name, value) in EVENT_STREAM_FIELDS {
                    if !self.head.response.fields.has(name) {
                        self.head.response.fields.add(name, value);
                    }
                }
                self.add_server_timing();
                // The connection ends with the stream. Without this notice, a client would use it for its next request.
                let connection = ConnectionField::of(self.request().version(), true);
                (chunked.then_some(BodyFraming::Chunked), connection)
            }
            _ => (None, ConnectionField::Upgrade),
        };
        self.write_head(framing, connection);
        self.phase = ResponsePhase::Ended;
        if self.is_expired {
            return None;
        }
        Some(self.become_client(upgrade.protocol, upgrade.deflate))
    }

    /// Detaches the rest of the body from this thread: it is written through the client, from any thread, even after
    /// the app has returned. Returns `None` if the body has ended, or the client is gone. The bytes written so far have
    /// to be sent before; no thread may be writing ([`Exchange::is_detachable`]).
    pub fn detach(&mut self) -> Option<Arc<Client>> {
        let chunked = self.stream_framing()?;
        let remainder = match (self.own_chunks.take(), self.phase) {
            (Some(chunks), _) => Remainder::OwnChunks(chunks),
            (None, ResponsePhase::Body(BodyFraming::Length(left))) => Remainder::Bytes(left),
            (None, _) => Remainder::Open,
        };
        self.phase = ResponsePhase::Ended;
        let client = self.become_client(Protocol::Stream { chunked }, None);
        client.expect(remainder);
        Some(client)
    }

    fn become_client(&mut self, protocol: Protocol, deflate: Option<Deflate>) -> Arc<Client> {
        let stream = &self.stream;
        let peer = Peer {
            address: stream.peer(),
            origin: stream.origin().fingerprint(),
            flow: stream.flow,
            owner: |key| stream.peers.owner(key),
        };
        let realtime = &self.services.realtime;
        let client = realtime.new_client(stream.transport(), peer, protocol, deflate);
        self.owner = Owner::Client(Arc::clone(&client));
        client
    }
}

/// Returns true if the server sets a field of an upgrade response itself, so that the app may not.
pub(crate) fn is_own_field(name: &[u8]) -> bool {
    OWN_FIELDS.iter().any(|own| name.eq_ignore_ascii_case(own))
}
