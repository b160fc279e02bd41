//! The header of a received frame (RFC 6455 §5.2): checks everything that does not depend on earlier frames.

use super::failure::Failure;
use super::frame::Opcode;

/// Two bytes, eight of length, four of mask.
pub(super) const LONGEST_HEADER: usize = 14;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: Opcode,
    pub(super) fin: bool,
    /// RSV1: the message is compressed.
    pub(super) compressed: bool,
    /// Zeros if the frame is not masked.
    pub(super) mask: [u8; 4],
    pub(super) length: u64,
}

/// Parameters that the handshake has set for all frames of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) masked: bool,
    pub(super) deflate: bool,
}

impl Header {
    /// The header at the start of `bytes`, and its length; `None` if it is incomplete. Returns the first fault in the
    /// order of the bytes, so the number of bytes that have arrived does not matter.
    #[inline]
    pub(super) fn parse(bytes: &[u8], rules: Rules) -> Result<Option<(Header, usize)>, Failure> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let (opcode, fin, compressed) = kind(first, rules)?;
        let Some(&second) = bytes.get(1) else {
            return Ok(None);
        };
        let masked = second & 0x80 != 0;
        if masked != rules.masked {
            return Err(if masked { Failure::MASKED } else { Failure::UNMASKED });
        }
        let short = second & 0x7f;
        if opcode.is_control() && short > 125 {
            return Err(Failure::LONG_CONTROL);
        }
        let Some((length, end)) = length(bytes, short)? else {
            return Ok(None);
        };
        let mut mask = [0; 4];
        if masked {
            let Some(key) = bytes.get(end..end + 4) else {
                return Ok(None);
            };
            mask.copy_from_slice(key);
        }
        let header = Header {
            opcode,
            fin,
            compressed,
            mask,
            length,
        };
        Ok(Some((header, if masked { end + 4 } else { end })))
    }
}

#[inline]
fn kind(first: u8, rules: Rules) -> Result<(Opcode, bool, bool), Failure> {
    let (fin, compressed) = (first & 0x80 != 0, first & 0x40 != 0);
    if first & 0x30 != 0 || (compressed && !rules.deflate) {
        return Err(Failure::RESERVED_BIT);
    }
    let opcode = Opcode::of(first & 0x0f).ok_or(Failure::RESERVED_OPCODE)?;
    if compressed && !matches!(opcode, Opcode::Text | Opcode::Binary) {
        return Err(Failure::RESERVED_BIT);
    }
    if opcode.is_control() && !fin {
        return Err(Failure::FRAGMENTED_CONTROL);
    }
    Ok((opcode, fin, compressed))
}

/// The length of the payload, and the end of its encoding.
#[inline]
fn length(bytes: &[u8], short: u8) -> Result<Option<(u64, usize)>, Failure> {
    let (size, least) = match short {
        126 => (2, 126),
        127 => (8, 1 << 16),
        _ => return Ok(Some((u64::from(short), 2))),
    };
    let digits = &bytes[2..bytes.len().min(2 + size)];
    if size == 8 && digits.first().is_some_and(|&byte| byte & 0x80 != 0) {
        return Err(Failure::LENGTH_OVERFLOW);
    }
    if digits.len() < size {
        return Ok(None);
    }
    let length = digits.iter().fold(0, |length, &byte| length << 8 | u64::from(byte));
    if length < least {
        return Err(Failure::LENGTH_NOT_MINIMAL);
    }
    Ok(Some((length, 2 + size)))
}
