//! Percent-decoding (RFC 3986 §2.1), once.

use super::{PathFault, MAX_PATH_BYTES};

/// Appends `path` to `out`, with each `%xx` as the byte that it encodes. Refuses an encoded slash. Does not check the
/// names in the path.
pub fn decode(path: &[u8], out: &mut Vec<u8>) -> Result<(), PathFault> {
    if path.len() > 3 * MAX_PATH_BYTES {
        return Err(PathFault::PathTooLong);
    }
    let mut rest = path;
    while let Some(length) = memchr::memchr2(b'%', b'#', rest) {
        let (plain, special) = rest.split_at(length);
        let (byte, behind) = match special {
            [b'#', ..] => return Err(PathFault::Fragment),
            [b'%', high, low, behind @ ..] => (octet(*high, *low).ok_or(PathFault::InvalidEscape)?, behind),
            _ => return Err(PathFault::InvalidEscape),
        };
        if byte == b'/' {
            return Err(PathFault::EncodedSlash);
        }
        out.extend_from_slice(plain);
        out.push(byte);
        rest = behind;
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn octet(high: u8, low: u8) -> Option<u8> {
    Some(hex_digit(high)? << 4 | hex_digit(low)?)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
