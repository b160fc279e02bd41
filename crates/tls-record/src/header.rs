//! Headers of records: finds the records in a stream of bytes.

use crate::Violation;

/// Length of a header (RFC 8446 §5.1).
pub(crate) const HEADER: usize = 5;

/// Bytes above which no record is accepted: the data, and the most that its protection may add (RFC 5246 §6.2.3).
const LIMIT: usize = (1 << 14) + 2048;

/// Types of records.
pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const DATA: u8 = 23;
const HEARTBEAT: u8 = 24;

/// The beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A record of this length, with its header.
    Whole(usize),
    /// A part of a record.
    Partial,
    /// No record: its header is invalid.
    Broken(Violation),
}

/// Looks for a record at the beginning of `bytes`.
pub fn frame(bytes: &[u8]) -> Frame {
    let Some([kind, major, _, high, low]) = bytes.first_chunk() else {
        return Frame::Partial;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    match kind {
        CHANGE_CIPHER_SPEC..=HEARTBEAT if *major != 3 => Frame::Broken(Violation::UnknownVersion),
        CHANGE_CIPHER_SPEC..=HEARTBEAT if length == 0 && *kind != DATA => Frame::Broken(Violation::Empty),
        CHANGE_CIPHER_SPEC..=HEARTBEAT if length >= LIMIT => Frame::Broken(Violation::TooLong),
        CHANGE_CIPHER_SPEC..=HEARTBEAT if bytes.len() < HEADER + length => Frame::Partial,
        CHANGE_CIPHER_SPEC..=HEARTBEAT => Frame::Whole(HEADER + length),
        _ => Frame::Broken(Violation::UnknownType),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_their_length() {
        assert_eq!(frame(&[23, 3, 3, 0]), Frame::Partial);
        assert_eq!(frame(&[23, 3, 3, 0, 2, 1]), Frame::Partial);
        assert_eq!(frame(&[23, 3, 3, 0, 2, 1, 1, 9]), Frame::Whole(7));
        assert_eq!(frame(&[23, 3, 3, 0, 0]), Frame::Whole(5));
        assert_eq!(frame(&[23, 3, 3, 0x47, 0xff]), Frame::Partial);
    }

    #[test]
    fn invalid_headers_are_refused_before_the_rest_arrives() {
        assert_eq!(frame(&[19, 3, 3, 0, 1]), Frame::Broken(Violation::UnknownType));
        assert_eq!(frame(&[25, 3, 3, 0, 1]), Frame::Broken(Violation::UnknownType));
        assert_eq!(frame(&[23, 2, 3, 0, 1]), Frame::Broken(Violation::UnknownVersion));
        assert_eq!(frame(&[21, 3, 3, 0, 0]), Frame::Broken(Violation::Empty));
        assert_eq!(frame(&[23, 3, 3, 0x48, 0]), Frame::Broken(Violation::TooLong));
    }
}
