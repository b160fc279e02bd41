//! From a request to a client: what it asks for, and the head of the response (RFC 6455 §4.2.2, WHATWG HTML §9.2).

use super::{Exchange, ResponsePhase};
use crate::realtime::{Client, Protocol};
use fairlead_wire::event_stream::wants_event_stream;
use fairlead_wire::websocket::{handshake, negotiate, Deflate};
use fairlead_wire::{Head, Version};
use std::sync::Arc;

/// What a request can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    protocol: Protocol,
    deflate: Option<Deflate>,
}

/// What the app has said already of what an event stream needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) date: bool,
    pub(crate) cache_control: bool,
    pub(crate) buffering: bool,
}

/// Fields of which the server knows better when it upgrades.
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

/// See [`Exchange::upgrade_offer`].
pub(crate) fn upgrade_offer(head: &Head, bytes: &[u8]) -> Option<Protocol> {
    if head.upgrade {
        return handshake(head, bytes).is_ok().then_some(Protocol::WebSocket);
    }
    wants_event_stream(head, bytes).then_some(Protocol::EventStream {
        chunked: head.version == Version::Http11,
    })
}

impl Exchange<'_> {
    /// What the client asks for: a WebSocket, or an event stream. `None` for an ordinary request.
    pub fn upgrade_offer(&self) -> Option<Protocol> {
        upgrade_offer(self.head(), self.bytes())
    }

    /// Begins the response that accepts the offer; fields of the app may follow. False when there is none.
    pub fn start_upgrade(&mut self) -> bool {
        let Some(protocol) = self.upgrade_offer() else {
            return false;
        };
        self.cancel_early_hints();
        let mut deflate = None;
        if protocol == Protocol::WebSocket {
            let (head, bytes) = (self.head(), self.bytes());
            let Ok(handshake) = handshake(head, bytes) else {
                return false;
            };
            let accepted = self
                .services
                .config()
                .deflate
                .and_then(|context| negotiate(head, bytes, context));
            self.status = 101;
            let buffer = self.connection.output.buffer();
            buffer.extend_from_slice(
                b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ",
            );
            buffer.extend_from_slice(&handshake.accept);
            if let Some((parameters, response)) = accepted {
                deflate = Some(parameters);
                buffer.extend_from_slice(b"\r\nsec-websocket-extensions: ");
                buffer.extend_from_slice(response.as_bytes());
            }
            buffer.extend_from_slice(b"\r\n");
        } else {
            self.status = 200;
            let buffer = self.connection.output.buffer();
            buffer.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n");
        }
        self.phase = ResponsePhase::Upgrade(Upgrade { protocol, deflate }, Given::default());
        true
    }

    /// Ends the head. The client gets its first event once the app has returned.
    pub fn end_upgrade(&mut self) -> Option<Arc<Client>> {
        let ResponsePhase::Upgrade(upgrade, given) = self.phase else {
            return None;
        };
        if !given.date {
            let date = self.date.text();
            let buffer = self.connection.output.buffer();
            buffer.extend_from_slice(b"date: ");
            buffer.extend_from_slice(date);
            buffer.extend_from_slice(b"\r\n");
        }
        let buffer = self.connection.output.buffer();
        if let Protocol::EventStream { chunked } = upgrade.protocol {
            if !given.cache_control {
                buffer.extend_from_slice(b"cache-control: no-cache\r\n");
            }
            if !given.buffering {
                buffer.extend_from_slice(b"x-accel-buffering: no\r\n");
            }
            buffer.extend_from_slice(if chunked {
                b"transfer-encoding: chunked\r\n"
            } else {
                b"connection: close\r\n"
            });
        }
        buffer.extend_from_slice(b"\r\n");
        self.phase = ResponsePhase::Ended;
        Some(self.become_client(upgrade.protocol, upgrade.deflate))
    }

    /// Takes the rest of the body out of the hands of this thread: what is still to be written goes through the client,
    /// from any thread, also after the app has returned. `None` when the body has ended, or the client is gone. What was
    /// written so far must be with the kernel ([`Exchange::is_flushed`]).
    pub fn detach(&mut self) -> Option<Arc<Client>> {
        let chunked = self.stream_framing()?;
        self.phase = ResponsePhase::Ended;
        Some(self.become_client(Protocol::Stream { chunked }, None))
    }

    fn become_client(&mut self, protocol: Protocol, deflate: Option<Deflate>) -> Arc<Client> {
        let (socket, peer) = (self.connection.socket(), self.connection.peer());
        let client = self.services.realtime.new_client(socket, peer, protocol, deflate);
        self.client = Some(Arc::clone(&client));
        client
    }
}

/// Whether the app may set a field of a response that upgrades.
pub(crate) fn is_own_field(name: &[u8]) -> bool {
    OWN_FIELDS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

impl Given {
    pub(crate) fn note(&mut self, name: &[u8]) {
        self.date |= name.eq_ignore_ascii_case(b"date");
        self.cache_control |= name.eq_ignore_ascii_case(b"cache-control");
        self.buffering |= name.eq_ignore_ascii_case(b"x-accel-buffering");
    }
}
