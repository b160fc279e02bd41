//! The form of exported bytes: the number of the format, and fields with a tag and a length each.

use crate::SecretBytes;
use zeroize::Zeroizing;

/// Number of the format. A reader accepts the formats that it knows.
pub(crate) const FORMAT: u8 = 1;

/// Bytes of a field before its contents: the tag and the length.
const FIELD: usize = 5;

/// Writes fields into space that is wiped afterwards.
pub(crate) struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    /// `contents`: bytes of all fields, and their number. The space never grows: a former space would not be wiped.
    pub(crate) fn new(contents: usize, fields: usize) -> Writer {
        let mut bytes = Vec::with_capacity(1 + contents + fields * FIELD);
        bytes.push(FORMAT);
        Writer(Zeroizing::new(bytes))
    }

    pub(crate) fn field(&mut self, tag: u8, contents: &[u8]) {
        debug_assert!(self.0.len() + FIELD + contents.len() <= self.0.capacity());
        self.0.push(tag);
        self.0.extend_from_slice(&(contents.len() as u32).to_le_bytes());
        self.0.extend_from_slice(contents);
    }

    pub(crate) fn finish(self) -> SecretBytes {
        self.0.into()
    }
}

/// The fields in `bytes`, in order; `None` if the format is unknown or a field is incomplete.
pub(crate) fn fields(bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let (format, mut rest) = bytes.split_first()?;
    let mut fields = Vec::new();
    while *format == FORMAT && !rest.is_empty() {
        let ([tag, length @ ..], after) = rest.split_first_chunk::<FIELD>()?;
        let (contents, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        fields.push((*tag, contents));
        rest = after;
    }
    (*format == FORMAT).then_some(fields)
}
