//! The opening handshake: recognizes its requests, and computes the key of the response (RFC 6455 §4.2).

use crate::fields::has_member;
use crate::parameters::values;
use crate::Head;

/// Added to the key, so that only a WebSocket server sends the right response (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The only version (RFC 6455 §4.1).
const VERSION: &[u8] = b"13";

/// A valid opening handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The value of Sec-WebSocket-Accept.
    pub accept: [u8; 28],
}

/// The reason why a request does not open a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// An ordinary request.
    NotWebSocket,
    /// It asks for another version: 426 with `Sec-WebSocket-Version: 13` (RFC 6455 §4.4).
    Version,
    /// An invalid handshake: its fields are missing, repeated or malformed, or it has a body: 400.
    Malformed,
}

/// Checks a request as in RFC 6455 §4.2.1. Host is checked with the head; the application is responsible for Origin and
/// the subprotocols.
pub fn handshake(head: &Head, bytes: &[u8]) -> Result<Handshake, HandshakeError> {
    let offered = |protocol| values(head, bytes, b"upgrade").any(|value| has_member(value, protocol));
    if !head.upgrade || head.method.of(bytes) != b"GET" || !offered(b"websocket") {
        return Err(HandshakeError::NotWebSocket);
    }
    if only(head, bytes, b"sec-websocket-version")? != VERSION {
        return Err(HandshakeError::Version);
    }
    let key = only(head, bytes, b"sec-websocket-key")?;
    // A peer that does not know the protocol would read frames as a body, or a body as frames.
    if !is_key(key) || head.framing.has_body() {
        return Err(HandshakeError::Malformed);
    }
    Ok(Handshake {
        accept: accept_key(key),
    })
}

/// The value of a field that must occur exactly once (RFC 6455 §11.3.1, §11.3.5).
fn only<'a>(head: &'a Head, bytes: &'a [u8], name: &'a [u8]) -> Result<&'a [u8], HandshakeError> {
    let mut found = values(head, bytes, name);
    match (found.next(), found.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(HandshakeError::Malformed),
    }
}

/// Returns true for 16 bytes in base64.
fn is_key(key: &[u8]) -> bool {
    let digits = key.strip_suffix(b"==").unwrap_or_default();
    digits.len() == 22 && digits.iter().all(|digit| BASE64.contains(digit))
}

/// The value of Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455 §4.2.2).
pub fn accept_key(key: &[u8]) -> [u8; 28] {
    let mut hash = sha1_smol::Sha1::new();
    hash.update(key);
    hash.update(GUID);
    base64(&hash.digest().bytes())
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A hash in base64 (RFC 4648 §4): six groups of three bytes, and one of two with padding.
fn base64(hash: &[u8; 20]) -> [u8; 28] {
    let mut text = [b'='; 28];
    for (bytes, digits) in hash.chunks(3).zip(text.chunks_mut(4)) {
        let group = bytes.iter().fold(0, |group, &byte| group << 8 | u32::from(byte)) << (8 * (3 - bytes.len()));
        for (at, digit) in digits.iter_mut().take(bytes.len() + 1).enumerate() {
            *digit = BASE64[(group >> (18 - 6 * at) & 63) as usize];
        }
    }
    text
}
