//! Frames (RFC 6455 §5.2): taken from a server, which must not mask them, and made for it, masked.

pub(crate) const CONTINUATION: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const MASKED: u8 = 0x80;
/// Longest payload taken: more than any measurement sends.
const PAYLOAD_BYTES: u64 = 64 * 1024 * 1024;
const CONTROL_BYTES: u64 = 125;

/// A frame where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) fin: bool,
    /// RSV1: the first frame of a compressed message (RFC 7692 §6).
    pub(crate) compressed: bool,
    pub(crate) opcode: u8,
    pub(crate) payload: &'a [u8],
}

/// Takes the next frame off `bytes`; `None` when it is not there whole. The error says what the server did wrong.
pub(crate) fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<Frame<'a>>, &'static str> {
    let [first, second, after @ ..] = *bytes else {
        return Ok(None);
    };
    let (opcode, fin) = (first & 0x0f, first & FIN != 0);
    if second & MASKED != 0 {
        return Err("a masked frame");
    }
    if first & 0x30 != 0 {
        return Err("a reserved bit is set");
    }
    if !matches!(opcode, CONTINUATION..=BINARY | CLOSE..=PONG) {
        return Err("an unknown opcode");
    }
    let Some((length, after)) = payload_length(*second, after)? else {
        return Ok(None);
    };
    if opcode >= CLOSE && (!fin || length > CONTROL_BYTES) {
        return Err("a control frame in parts or too long");
    }
    // PAYLOAD_BYTES fits into any usize.
    let length = length as usize;
    if after.len() < length {
        return Ok(None);
    }
    let (payload, rest) = after.split_at(length);
    *bytes = rest;
    let compressed = first & RSV1 != 0;
    Ok(Some(Frame {
        fin,
        compressed,
        opcode,
        payload,
    }))
}

/// RFC 6455 §5.2: in as few bytes as will do.
fn payload_length(second: u8, bytes: &[u8]) -> Result<Option<(u64, &[u8])>, &'static str> {
    let (length, rest) = match second {
        126 => match bytes.split_first_chunk::<2>() {
            Some((&length, rest)) => (u64::from(u16::from_be_bytes(length)), rest),
            None => return Ok(None),
        },
        127 => match bytes.split_first_chunk::<8>() {
            Some((&length, rest)) => (u64::from_be_bytes(length), rest),
            None => return Ok(None),
        },
        length => (u64::from(length), bytes),
    };
    let shortest = match second {
        126 => 126,
        127 => 65_536,
        _ => 0,
    };
    if length < shortest {
        return Err("a length in more bytes than needed");
    }
    if length > PAYLOAD_BYTES {
        return Err("a frame too long");
    }
    Ok(Some((length, rest)))
}

/// Appends a whole message or control frame, masked.
pub(crate) fn put(out: &mut Vec<u8>, opcode: u8, compressed: bool, mask: [u8; 4], payload: &[u8]) {
    out.push(FIN | if compressed { RSV1 } else { 0 } | opcode);
    match payload.len() {
        length @ 0..=125 => out.push(MASKED | length as u8),
        length @ 126..=65_535 => {
            out.push(MASKED | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    for (byte, key) in out[start..].iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> &'static str {
        take(&mut &bytes[..]).expect_err("should be refused")
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole() {
        for length in [0usize, 5, 125, 126, 65_535, 65_536] {
            let mut bytes = vec![FIN | BINARY];
            match length {
                0..=125 => bytes.push(length as u8),
                126..=65_535 => bytes.extend([&[126][..], &(length as u16).to_be_bytes()].concat()),
                _ => bytes.extend([&[127][..], &(length as u64).to_be_bytes()].concat()),
            }
            bytes.resize(bytes.len() + length, b'x');
            bytes.push(7);
            for cut in [0, 1, 2, 3, bytes.len() - 2] {
                if cut < bytes.len() - 1 {
                    assert_eq!(take(&mut &bytes[..cut]), Ok(None), "{cut} bytes of {length}");
                }
            }
            let mut rest = &bytes[..];
            let frame = take(&mut rest).expect("valid").expect("whole");
            assert_eq!((frame.payload.len(), frame.fin, frame.opcode), (length, true, BINARY));
            assert_eq!(rest, [7]);
        }
    }

    #[test]
    fn what_a_server_must_not_send_is_named() {
        assert_eq!(error(&[0x81, 0x80, 0, 0, 0, 0]), "a masked frame");
        assert_eq!(error(&[0xa1, 0]), "a reserved bit is set");
        assert_eq!(error(&[0x83, 0]), "an unknown opcode");
        assert_eq!(error(&[0x09, 0]), "a control frame in parts or too long");
        assert_eq!(error(&[0x89, 126, 0, 126]), "a control frame in parts or too long");
        assert_eq!(error(&[0x82, 126, 0, 125]), "a length in more bytes than needed");
        assert_eq!(
            error(&[0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255]),
            "a length in more bytes than needed"
        );
        assert_eq!(error(&[0x82, 127, 255, 0, 0, 0, 0, 0, 0, 0]), "a frame too long");
    }

    #[test]
    fn a_frame_for_the_server_is_masked() {
        let mut out = Vec::new();
        put(&mut out, TEXT, false, [0x37, 0xfa, 0x21, 0x3d], b"Hello");
        // RFC 6455 §5.7, the second example.
        let expected = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(out, expected);
        for length in [126usize, 65_536] {
            let mut out = Vec::new();
            put(&mut out, BINARY, true, [1, 2, 3, 4], &vec![0; length]);
            assert_eq!((out[0], out[1] & 0x7f), (0xc2, if length == 126 { 126 } else { 127 }));
            assert_eq!(out[out.len() - length..][..5], [1, 2, 3, 4, 1]);
        }
    }
}
