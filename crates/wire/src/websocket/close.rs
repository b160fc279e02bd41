//! Close frames: parses and writes their codes and reasons (RFC 6455 §5.5.1, §7.4).

use super::failure::Failure;
use super::frame::{frame, Opcode};

/// Space for the reason in a control frame, after the code (RFC 6455 §5.5).
const LONGEST_REASON: usize = 123;

/// Returns true if a close frame may contain this code: the codes of RFC 6455 §7.4.1 and the IANA registry, except for
/// 1004 to 1006 and 1015, which must not be sent, and the codes for libraries and applications, 3000 to 4999.
pub fn is_sendable_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Appends the close frame of a server. A reason of more than 123 bytes is truncated between two characters. Without a
/// code there can be no reason, and a code that must not be sent is left out.
pub fn close_frame(out: &mut Vec<u8>, code: Option<u16>, reason: &str) {
    let Some(code) = code.filter(|&code| is_sendable_close_code(code)) else {
        return frame(out, Opcode::Close, false, &[]);
    };
    let mut end = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut payload = [0; 2 + LONGEST_REASON];
    payload[..2].copy_from_slice(&code.to_be_bytes());
    payload[2..2 + end].copy_from_slice(&reason.as_bytes()[..end]);
    frame(out, Opcode::Close, false, &payload[..2 + end]);
}

/// The code and reason in the payload of a close frame.
pub(super) fn parse_close(payload: &[u8]) -> Result<(Option<u16>, &str), Failure> {
    let (code, reason) = match payload {
        [] => return Ok((None, "")),
        [_] => return Err(Failure::SHORT_CLOSE),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
    };
    if !is_sendable_close_code(code) {
        return Err(Failure::INVALID_CLOSE_CODE);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Failure::INVALID_UTF8)?;
    Ok((Some(code), reason))
}
