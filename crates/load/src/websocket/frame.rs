//! Frames (RFC 6455 §5.2), parsed from a server and built for it. tungstenite reads and writes their headers. Its
//! message layer has no permessage-deflate, and accepts some frames that a server must not send, so messages are
//! implemented here.

use std::io::Cursor;
use tungstenite::protocol::frame::coding::OpCode;
use tungstenite::protocol::frame::FrameHeader;

/// Longest accepted payload: more than any measurement sends.
const PAYLOAD_BYTES: u64 = 64 * 1024 * 1024;
const CONTROL_BYTES: u64 = 125;
/// The bit of a frame's second byte that announces a mask.
const MASKED: u8 = 0x80;

/// A frame in place. RSV1 is set in the first frame of a compressed message (RFC 7692 §6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
}

/// Takes the next frame from `bytes`; `None` if it is incomplete. The error says what the server did wrong.
pub(crate) fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<Frame<'a>>, &'static str> {
    // tungstenite would wait for the mask.
    if bytes.get(1).is_some_and(|byte| byte & MASKED != 0) {
        return Err("a masked frame");
    }
    let mut cursor = Cursor::new(*bytes);
    let parsed = FrameHeader::parse(&mut cursor).map_err(|_| "an unknown opcode")?;
    let Some((header, length)) = parsed else {
        return Ok(None);
    };
    if header.rsv2 || header.rsv3 {
        return Err("a reserved bit is set");
    }
    if cursor.position() != header.len(length) as u64 {
        return Err("a length in more bytes than needed");
    }
    if length > PAYLOAD_BYTES {
        return Err("a frame too long");
    }
    if matches!(header.opcode, OpCode::Control(_)) && (!header.is_final || length > CONTROL_BYTES) {
        return Err("a control frame that is fragmented or too long");
    }
    // The header has been read from `bytes`, and PAYLOAD_BYTES fits into any usize.
    let after = &bytes[cursor.position() as usize..];
    let Some((payload, rest)) = after.split_at_checked(length as usize) else {
        return Ok(None);
    };
    *bytes = rest;
    Ok(Some(Frame { header, payload }))
}

/// Appends a whole message or control frame, masked.
pub(crate) fn put(out: &mut Vec<u8>, opcode: OpCode, compressed: bool, mask: [u8; 4], payload: &[u8]) {
    let header = FrameHeader {
        opcode,
        rsv1: compressed,
        mask: Some(mask),
        ..FrameHeader::default()
    };
    let written = header.format(payload.len() as u64, out);
    debug_assert!(written.is_ok(), "writing into memory has no way to fail");
    let start = out.len();
    out.extend_from_slice(payload);
    for (byte, key) in out[start..].iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tungstenite::protocol::frame::coding::Data;

    fn error(bytes: &[u8]) -> &'static str {
        take(&mut &bytes[..]).expect_err("should be refused")
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole() {
        let bytes = [&[0x82, 126, 1, 0][..], &[b'x'; 256], &[7]].concat();
        for cut in [0, 1, 2, 3, 4, bytes.len() - 2] {
            assert_eq!(take(&mut &bytes[..cut]), Ok(None), "{cut} bytes");
        }
        let mut rest = &bytes[..];
        let frame = take(&mut rest).expect("valid").expect("whole");
        assert_eq!(
            (frame.payload.len(), frame.header.opcode),
            (256, OpCode::Data(Data::Binary))
        );
        assert_eq!(rest, [7]);
    }

    #[test]
    fn what_a_server_must_not_send_is_named() {
        assert_eq!(error(&[0x81, 0x80, 0, 0, 0, 0]), "a masked frame");
        assert_eq!(error(&[0x81, 0x80]), "a masked frame");
        assert_eq!(error(&[0xa1, 0]), "a reserved bit is set");
        assert_eq!(error(&[0x83, 0]), "an unknown opcode");
        assert_eq!(error(&[0x09, 0]), "a control frame that is fragmented or too long");
        assert_eq!(
            error(&[0x89, 126, 0, 126]),
            "a control frame that is fragmented or too long"
        );
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
        put(
            &mut out,
            OpCode::Data(Data::Text),
            false,
            [0x37, 0xfa, 0x21, 0x3d],
            b"Hello",
        );
        // RFC 6455 §5.7, the second example.
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }
}
