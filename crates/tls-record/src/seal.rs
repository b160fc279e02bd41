//! Encrypts one record.

use crate::header::{DATA, HEADER};
use crate::{Keys, Version, FRAGMENT_BYTES};
use ring::aead::{Aad, MAX_TAG_LEN};
use std::io::IoSlice;

/// Additional data of a record of TLS 1.3: its header (RFC 8446 §5.2).
pub(crate) fn header13(length: usize) -> [u8; HEADER] {
    let [high, low] = (length as u16).to_be_bytes();
    [DATA, 3, 3, high, low]
}

/// The same for TLS 1.2: the number of the record and its header, with the length of the data (RFC 5246 §6.2.3.3).
pub(crate) fn additional12(sequence: u64, [kind, major, minor]: [u8; 3], length: usize) -> [u8; 13] {
    let mut bytes = [0; 13];
    bytes[..8].copy_from_slice(&sequence.to_be_bytes());
    bytes[8..11].copy_from_slice(&[kind, major, minor]);
    bytes[11..].copy_from_slice(&(length as u16).to_be_bytes());
    bytes
}

/// Appends a record of `kind` with the next `length` bytes of `pieces`, from `offset` on, to `out`.
pub(crate) fn seal(
    version: Version,
    keys: &mut Keys,
    kind: u8,
    pieces: &[IoSlice<'_>],
    offset: usize,
    length: usize,
    out: &mut Vec<u8>,
) {
    debug_assert!(length <= FRAGMENT_BYTES);
    let explicit = keys.suite().explicit_nonce_length(version);
    let inner = length + usize::from(version == Version::Tls13);
    let protected = explicit + inner + MAX_TAG_LEN;
    let nonce = keys.nonce();
    out.reserve(HEADER + protected);
    let outer = if version == Version::Tls13 { DATA } else { kind };
    let [_, major, minor, high, low] = header13(protected);
    out.extend_from_slice(&[outer, major, minor, high, low]);
    out.extend_from_slice(&nonce.as_ref()[IV_TAIL - explicit..]);
    let start = out.len();
    copy(pieces, offset, length, out);
    if version == Version::Tls13 {
        out.push(kind);
    }
    let space = &mut out[start..];
    let tag = match version {
        Version::Tls13 => keys
            .cipher()
            .seal_in_place_separate_tag(nonce, Aad::from(header13(protected)), space),
        Version::Tls12 => {
            let additional = additional12(keys.sequence(), [kind, 3, 3], length);
            keys.cipher()
                .seal_in_place_separate_tag(nonce, Aad::from(additional), space)
        }
    };
    out.extend_from_slice(tag.expect("a record is short").as_ref());
    keys.advance();
}

/// Length of a nonce.
const IV_TAIL: usize = 12;

fn copy(pieces: &[IoSlice<'_>], mut offset: usize, mut length: usize, out: &mut Vec<u8>) {
    for piece in pieces {
        let Some(rest) = piece.get(offset..) else {
            offset -= piece.len();
            continue;
        };
        let part = &rest[..rest.len().min(length)];
        out.extend_from_slice(part);
        (offset, length) = (0, length - part.len());
        if length == 0 {
            return;
        }
    }
}
