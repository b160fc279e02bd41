//! Writes frames (RFC 6455 §5.2), always complete messages: FIN is set.

use super::header::LONGEST_HEADER;
use super::mask;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation = 0,
    /// A message, or its first fragment, in UTF-8.
    Text = 1,
    /// A message, or its first fragment, of any bytes.
    Binary = 2,
    /// Starts the closing handshake, or responds to it.
    Close = 8,
    /// Asks for a pong.
    Ping = 9,
    /// The response to a ping.
    Pong = 10,
}

impl Opcode {
    /// The opcode with this number, if it is not reserved.
    pub(super) fn of(number: u8) -> Option<Opcode> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    /// Returns true if the frame may occur between the fragments of a message (RFC 6455 §5.5).
    pub(super) fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Peers must mask their frames.
    Server,
    /// Peers must not mask their frames.
    Client,
}

/// Appends a frame as sent by a server. `compressed`: `payload` was made by [`Deflater`](super::Deflater).
pub fn frame(out: &mut Vec<u8>, opcode: Opcode, compressed: bool, payload: &[u8]) {
    header(out, opcode, compressed, payload.len(), 0);
    out.extend_from_slice(payload);
}

/// Appends a frame as sent by a client. The key must be new and unpredictable for each frame (RFC 6455 §5.3).
pub fn masked_frame(out: &mut Vec<u8>, opcode: Opcode, compressed: bool, key: [u8; 4], payload: &[u8]) {
    const MASKED: u8 = 0x80;
    header(out, opcode, compressed, payload.len(), MASKED);
    out.extend_from_slice(&key);
    let start = out.len();
    out.extend_from_slice(payload);
    mask::apply(&mut out[start..], key);
}

fn header(out: &mut Vec<u8>, opcode: Opcode, compressed: bool, length: usize, masked: u8) {
    const FIN: u8 = 0x80;
    const RSV1: u8 = 0x40;
    out.reserve(length + LONGEST_HEADER);
    out.push(FIN | if compressed { RSV1 } else { 0 } | opcode as u8);
    if length < 126 {
        out.push(masked | length as u8);
    } else if let Ok(length) = u16::try_from(length) {
        out.push(masked | 126);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(masked | 127);
        out.extend_from_slice(&(length as u64).to_be_bytes());
    }
}
