//! Encodes messages for the wire. A publication is encoded once for all clients with the same form.

use crate::pubsub::{Publication, ENCODINGS};
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

const _: () = assert!(EVENT < ENCODINGS);

/// The window of messages that are compressed once for all clients (RFC 7692 §7.1.2.1). For a client that negotiated a
/// smaller one, they are compressed separately.
const SHARED_BITS: u8 = 15;

/// Text has to be UTF-8 (RFC 6455 §5.6).
pub(super) fn opcode(data: &[u8], text: bool) -> Opcode {
    if text && std::str::from_utf8(data).is_ok() {
        Opcode::Text
    } else {
        Opcode::Binary
    }
}

pub(super) fn plain(opcode: Opcode, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + 10);
    frame(&mut bytes, opcode, false, data);
    bytes
}

/// Compresses a message by itself: reading it needs no earlier message.
pub(super) fn deflated(opcode: Opcode, data: &[u8], bits: u8) -> Vec<u8> {
    thread_local! {
        static DEFLATER: RefCell<Option<(u8, Deflater)>> = const { RefCell::new(None) };
    }
    DEFLATER.with_borrow_mut(|kept| {
        let deflater = match kept {
            Some((known, deflater)) if *known == bits => deflater,
            _ => &mut kept.insert((bits, Deflater::new(bits))).1,
        };
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
    let mut bytes = Vec::with_capacity(payload.len() + 10);
    frame(&mut bytes, opcode, true, &payload);
    bytes
}

/// Whether a client can read messages that are compressed once for all.
pub(super) fn can_share(deflate: Deflate) -> bool {
    deflate.server_no_context && deflate.server_bits == SHARED_BITS
}

pub(super) fn shared_message(publication: &Publication, text: bool, compressed: bool) -> Arc<[u8]> {
    let index = match (text, compressed) {
        (true, false) => TEXT,
        (false, false) => BINARY,
        (true, true) => DEFLATED_TEXT,
        (false, true) => DEFLATED_BINARY,
    };
    let bytes = publication.encoded(index, |message| {
        let opcode = opcode(message, text);
        if compressed {
            deflated(opcode, message, SHARED_BITS)
        } else {
            plain(opcode, message)
        }
    });
    Arc::clone(bytes)
}

pub(super) fn shared_event(publication: &Publication, chunked: bool) -> Arc<[u8]> {
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
