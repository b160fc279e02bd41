//! Decrypts one record.

use crate::header::{CHANGE_CIPHER_SPEC, HEADER};
use crate::seal::{additional12, header13};
use crate::{Keys, Version, Violation, FRAGMENT_BYTES};
use ring::aead::{Aad, MAX_TAG_LEN};

/// Contents of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents<'a> {
    pub(crate) kind: u8,
    pub(crate) bytes: &'a [u8],
}

/// Decrypts a whole record in place.
pub(crate) fn open<'a>(version: Version, keys: &mut Keys, record: &'a mut [u8]) -> Result<Contents<'a>, Violation> {
    let (header, protected) = record.split_at_mut(HEADER);
    let contents = match version {
        Version::Tls13 => open13(keys, protected)?,
        Version::Tls12 => {
            let [kind, major, minor] = [header[0], header[1], header[2]];
            let bytes = open12(keys, [kind, major, minor], protected)?;
            Contents { kind, bytes }
        }
    };
    keys.advance();
    Ok(contents)
}

fn open13<'a>(keys: &Keys, protected: &'a mut [u8]) -> Result<Contents<'a>, Violation> {
    let header = header13(protected.len());
    let opened = keys.cipher().open_in_place(keys.nonce(), Aad::from(header), protected);
    let bytes = &*opened.map_err(|_| Violation::BadRecordMac)?;
    if bytes.len() > FRAGMENT_BYTES + 1 {
        return Err(Violation::Overflow);
    }
    // The padding consists of zeros, and the type is before it (RFC 8446 §5.4).
    let last = bytes.iter().rposition(|byte| *byte != 0);
    let last = last.ok_or(Violation::OnlyPadding)?;
    match (bytes[last], &bytes[..last]) {
        (CHANGE_CIPHER_SPEC, _) => Err(Violation::ChangeCipherSpec),
        (_, bytes) if bytes.len() > FRAGMENT_BYTES => Err(Violation::Overflow),
        (kind, bytes) => Ok(Contents { kind, bytes }),
    }
}

fn open12<'a>(keys: &Keys, start: [u8; 3], protected: &'a mut [u8]) -> Result<&'a [u8], Violation> {
    let explicit = keys.suite().explicit_nonce_length(Version::Tls12);
    let length = protected.len().checked_sub(explicit + MAX_TAG_LEN);
    let length = length.ok_or(Violation::BadRecordMac)?;
    let nonce = match explicit {
        0 => keys.nonce(),
        _ => keys.nonce_with(&protected[..explicit]),
    };
    let additional = Aad::from(additional12(keys.sequence(), start, length));
    let opened = keys.cipher().open_within(nonce, additional, protected, explicit..);
    match &*opened.map_err(|_| Violation::BadRecordMac)? {
        bytes if bytes.len() > FRAGMENT_BYTES => Err(Violation::Overflow),
        bytes => Ok(bytes),
    }
}
