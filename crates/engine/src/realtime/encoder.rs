//! The encoder of a client: turns messages into frames, in the client's protocol.

use super::client::Protocol;
use super::encoding;
use super::frames::Frame;
use crate::pubsub::{Delivery, Publication};
use crate::sync::{Mutex, MutexGuard};
use fairlead_wire::websocket::{Deflate, Deflater};
use std::sync::Arc;

pub(super) struct Encoder {
    protocol: Protocol,
    deflate: Option<Deflate>,
    /// Smaller messages are not compressed.
    deflate_min_bytes: usize,
    /// Made when first needed, if the context is kept between messages. Locked before the outbox, until the compressed
    /// message is queued.
    deflater: Mutex<Option<Box<Deflater>>>,
}

/// A message as a frame.
pub(super) struct Encoded<'a> {
    pub(super) frame: Frame,
    /// The compressor that later messages refer to.
    pub(super) context: Context<'a>,
}

/// The compressor for messages that refer to earlier ones, if it has compressed a message. It is kept until the message
/// is queued, or dropped if the message is not queued.
pub(super) struct Context<'a>(Option<MutexGuard<'a, Option<Box<Deflater>>>>);

impl Context<'_> {
    /// Drops the context, because the message was not sent and the next one must not refer to it.
    pub(super) fn forget(self) {
        if let Some(mut deflater) = self.0 {
            *deflater = None;
        }
    }
}

impl Encoded<'_> {
    /// A frame that was not compressed, or without earlier messages.
    pub(super) fn alone(frame: Frame) -> Self {
        Encoded {
            frame,
            context: Context(None),
        }
    }
}

impl Encoder {
    pub(super) fn new(protocol: Protocol, deflate: Option<Deflate>, deflate_min_bytes: usize) -> Encoder {
        Encoder {
            protocol,
            deflate,
            deflate_min_bytes,
            deflater: Mutex::default(),
        }
    }

    pub(super) fn deflate(&self) -> Option<Deflate> {
        self.deflate
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Encodes a message of the app: a text or binary frame, an event without a name, or a piece of a stream.
    pub(super) fn message(&self, data: &[u8], text: bool) -> Encoded<'_> {
        match self.protocol {
            Protocol::WebSocket => self.web_socket_message(data, text),
            Protocol::EventStream { chunked } => Encoded::alone(Frame::Own(encoding::event(data, chunked))),
            Protocol::Stream { chunked } => Encoded::alone(Frame::Own(encoding::piece(data, chunked))),
        }
    }

    /// While another thread compresses, messages are sent uncompressed (RFC 7692 §6).
    fn web_socket_message(&self, data: &[u8], text: bool) -> Encoded<'_> {
        let opcode = encoding::opcode(data, text);
        let Some(deflate) = self.deflate_for(data) else {
            return Encoded::alone(Frame::Own(encoding::plain(opcode, data)));
        };
        if deflate.server_no_context {
            return Encoded::alone(Frame::Own(encoding::deflated(opcode, data, deflate.server_bits)));
        }
        let Some(mut context) = self.deflater.try_lock() else {
            return Encoded::alone(Frame::Own(encoding::plain(opcode, data)));
        };
        let deflater = context.get_or_insert_with(|| Box::new(Deflater::new(deflate.server_bits)));
        Encoded {
            frame: Frame::Own(encoding::deflated_with(deflater, opcode, data)),
            context: Context(Some(context)),
        }
    }

    /// Encodes a message of a channel, in a form that clients share if they can.
    pub(super) fn published(&self, publication: &Arc<Publication>, delivery: Delivery) -> Encoded<'_> {
        let message = &publication.message;
        let frame = match self.protocol {
            Protocol::EventStream { chunked } => Frame::Shared(encoding::shared_event(publication, chunked)),
            Protocol::Stream { chunked } => Frame::Own(encoding::piece(message, chunked)),
            Protocol::WebSocket => {
                let text = delivery != Delivery::Binary;
                let deflate = self.deflate_for(message);
                if deflate.is_some_and(|deflate| !encoding::can_share(deflate)) {
                    return self.web_socket_message(message, text);
                }
                let bits = deflate.map(|deflate| deflate.server_bits);
                Frame::Shared(encoding::shared_message(publication, text, bits))
            }
        };
        Encoded::alone(frame)
    }

    /// Encodes text for a WebSocket, for this client alone.
    pub(super) fn text(&self, text: &[u8]) -> Encoded<'_> {
        self.web_socket_message(text, true)
    }

    /// The window for a text of this length, as for [`encoding::text`], if clients can share it; `None` if they cannot.
    pub(super) fn shared_window(&self, length: usize) -> Option<Option<u8>> {
        let deflate = self.deflate.filter(|_| length >= self.deflate_min_bytes);
        let can_share = deflate.is_none_or(encoding::can_share);
        can_share.then(|| deflate.map(|deflate| encoding::window(deflate.server_bits)))
    }

    /// The compression for a message that is large enough.
    fn deflate_for(&self, data: &[u8]) -> Option<Deflate> {
        self.deflate.filter(|_| data.len() >= self.deflate_min_bytes)
    }

    /// Releases the compressor, unless a thread uses it.
    pub(super) fn release(&self) {
        if let Some(mut deflater) = self.deflater.try_lock() {
            *deflater = None;
        }
    }
}
