//! Encodes messages for the wire. A publication is encoded once for all clients with the same form.

use crate::pubsub::{Position, Publication, WireForm, ENCODINGS};
use fairlead_wire::event_stream;
use fairlead_wire::websocket::{frame, Deflate, Deflater, Opcode};
use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;

/// The wire forms of a publication.
const TEXT: usize = 0;
const BINARY: usize = 1;
const DEFLATED_TEXT: usize = 2;
const DEFLATED_BINARY: usize = 3;
const CHUNKED_EVENT: usize = 4;
const EVENT: usize = 5;
const NARROW_TEXT: usize = 6;
const NARROW_BINARY: usize = 7;

const _: () = assert!(NARROW_BINARY < ENCODINGS);

/// The window of messages that are compressed once for all clients (RFC 7692 §7.1.2.1).
const USUAL_BITS: u8 = 15;

/// The same for all clients that have negotiated a smaller window: no client's window is smaller than this one.
const NARROW_BITS: u8 = 9;

/// The window for messages to a client that has negotiated a window of `2^bits` bytes.
pub(super) fn window(bits: u8) -> u8 {
    if bits < USUAL_BITS {
        NARROW_BITS
    } else {
        USUAL_BITS
    }
}

/// Text has to be UTF-8 (RFC 6455 §5.6).
pub(super) fn opcode(data: &[u8], text: bool) -> Opcode {
    if text && std::str::from_utf8(data).is_ok() {
        Opcode::Text
    } else {
        Opcode::Binary
    }
}

pub(super) fn plain(opcode: Opcode, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame(&mut bytes, opcode, false, data);
    bytes
}

/// Compresses a message alone: reading it needs no earlier message.
pub(super) fn deflated(opcode: Opcode, data: &[u8], bits: u8) -> Vec<u8> {
    thread_local! {
        static DEFLATERS: RefCell<[Option<Deflater>; 2]> = const { RefCell::new([None, None]) };
    }
    let bits = window(bits);
    DEFLATERS.with_borrow_mut(|kept| {
        let deflater = &mut kept[usize::from(bits == NARROW_BITS)];
        let deflater = deflater.get_or_insert_with(|| Deflater::new(bits));
        compress(deflater, opcode, data, false)
    })
}

/// Compresses a message that may refer to earlier ones.
pub(super) fn deflated_with(deflater: &mut Deflater, opcode: Opcode, data: &[u8]) -> Vec<u8> {
    compress(deflater, opcode, data, true)
}

fn compress(deflater: &mut Deflater, opcode: Opcode, data: &[u8], keep_context: bool) -> Vec<u8> {
    let mut payload = Vec::with_capacity(data.len() / 2 + 16);
    deflater.message(data, keep_context, &mut payload);
    let mut bytes = Vec::new();
    frame(&mut bytes, opcode, true, &payload);
    bytes
}

/// Returns true if a client can read messages that are compressed once for all clients.
pub(super) fn can_share(deflate: Deflate) -> bool {
    deflate.server_no_context
}

/// Encodes a message for all clients with such a window; `None`: not compressed.
pub(super) fn shared_message(publication: &Publication, text: bool, bits: Option<u8>) -> Arc<WireForm> {
    let bits = bits.map(window);
    let index = match (text, bits) {
        (true, None) => TEXT,
        (false, None) => BINARY,
        (true, Some(USUAL_BITS)) => DEFLATED_TEXT,
        (false, Some(USUAL_BITS)) => DEFLATED_BINARY,
        (true, Some(_)) => NARROW_TEXT,
        (false, Some(_)) => NARROW_BINARY,
    };
    let form = publication.encoded(index, |message| {
        let opcode = opcode(message, text);
        match bits {
            Some(bits) => deflated(opcode, message, bits),
            None => plain(opcode, message),
        }
    });
    Arc::clone(form)
}

/// A text frame for all clients with such a window; `None`: not compressed.
pub(super) fn text(text: &[u8], bits: Option<u8>) -> Vec<u8> {
    match bits {
        Some(bits) => deflated(Opcode::Text, text, bits),
        None => plain(Opcode::Text, text),
    }
}

pub(super) fn shared_event(publication: &Publication, chunked: bool) -> Arc<WireForm> {
    let index = if chunked { CHUNKED_EVENT } else { EVENT };
    Arc::clone(publication.encoded(index, |message| event(message, chunked)))
}

pub(super) fn event(data: &[u8], chunked: bool) -> Vec<u8> {
    named_event(data, None, None, None, chunked)
}

pub(super) fn named_event(
    data: &[u8],
    name: Option<&[u8]>,
    id: Option<&[u8]>,
    retry: Option<u64>,
    chunked: bool,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + 16);
    event_stream::event(&mut bytes, data, name, id, retry);
    piece_of(bytes, chunked)
}

/// An event with its position in the history as the id, which the browser sends again when it reconnects.
pub(super) fn positioned_event(data: &[u8], position: Position, chunked: bool) -> Vec<u8> {
    named_event(data, None, Some(position.to_string().as_bytes()), None, chunked)
}

/// An id without an event: the browser keeps it as the last one.
pub(super) fn position(position: Position, chunked: bool) -> Vec<u8> {
    piece_of(format!("id: {position}\n\n").into_bytes(), chunked)
}

/// The time after which the browser reconnects, without an event.
pub(super) fn retry(milliseconds: u64, chunked: bool) -> Vec<u8> {
    piece_of(format!("retry: {milliseconds}\n\n").into_bytes(), chunked)
}

/// A comment, sent to an event stream to keep it alive.
pub(super) fn comment(chunked: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    event_stream::comment(&mut bytes, b"ping");
    piece_of(bytes, chunked)
}

/// A piece of a stream. An empty chunk would end the body.
pub(super) fn piece(data: &[u8], chunked: bool) -> Vec<u8> {
    if data.is_empty() {
        return Vec::new();
    }
    if !chunked {
        return data.to_vec();
    }
    let mut bytes = Vec::with_capacity(data.len() + 20);
    let _ = write!(bytes, "{:x}\r\n", data.len());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn piece_of(bytes: Vec<u8>, chunked: bool) -> Vec<u8> {
    if chunked {
        piece(&bytes, true)
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_wire::websocket::{Decoder, Incoming, Limits, Role};

    #[test]
    fn clients_with_small_windows_share_a_form_that_all_of_them_can_read() {
        let message: Vec<u8> = (0..100_000u32)
            .flat_map(|number| (number % 997).to_le_bytes())
            .collect();
        let publication = Publication::new(*b"channel", message.clone());
        let forms: Vec<_> = (9..=15)
            .map(|bits| shared_message(&publication, false, Some(bits)))
            .collect();
        assert!(forms[..6].iter().all(|form| Arc::ptr_eq(form, &forms[0])));
        assert!(!Arc::ptr_eq(&forms[0], &forms[6]), "the usual window is used in full");
        let limits = Limits {
            message_bytes: 1 << 24,
            fragments: 1,
        };
        for form in [&forms[0], &forms[6]] {
            let mut got = Vec::new();
            let fed =
                Decoder::new(Role::Client, Some(DEFLATE)).feed(&mut form.bytes().to_vec(), &limits, &mut |incoming| {
                    if let Incoming::Binary(data) = incoming {
                        got = data.into_owned();
                    }
                });
            assert!(fed.is_ok() && got == message);
        }
    }

    const DEFLATE: Deflate = Deflate {
        server_no_context: true,
        client_no_context: true,
        server_bits: NARROW_BITS,
        client_bits: 15,
    };
}
