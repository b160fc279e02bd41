//! The bytes of a saved client: a mark, the version of the format, and fields.
//!
//! ```text
//!   "FLCL" · version (2 bytes) · field · field · …        field: tag (2 bytes) · length (4 bytes) · bytes
//! ```
//! Numbers are little-endian. A field may contain fields. The version changes only if a reader of the old version must
//! not continue with a client of the new one; otherwise fields are added, which old readers skip. The mark and the form of the
//! fields never change.

/// In front of all bytes.
const MARK: &[u8; 4] = b"FLCL";

/// The version of the format.
pub(crate) const VERSION: u16 = 1;

/// Length of a tag and a length.
const FIELD: usize = 6;

/// Writes fields.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Begins with the mark and the version.
    pub(super) fn begin() -> Writer {
        let mut bytes = MARK.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        Writer(bytes)
    }

    pub(super) fn bytes(&mut self, tag: u16, bytes: &[u8]) {
        self.0.extend_from_slice(&tag.to_le_bytes());
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn number(&mut self, tag: u16, number: u64) {
        self.bytes(tag, &number.to_le_bytes());
    }

    /// A field with fields.
    pub(super) fn group(&mut self, tag: u16, write: impl FnOnce(&mut Writer)) {
        let mut inner = Writer::default();
        write(&mut inner);
        self.bytes(tag, &inner.0);
    }

    /// The last field, with a secret. The bytes move before it is written, so that no copy of it stays in memory.
    pub(super) fn secret(&mut self, tag: u16, bytes: &[u8]) {
        self.0.reserve_exact(FIELD + bytes.len());
        self.bytes(tag, bytes);
    }

    pub(super) fn end(self) -> Vec<u8> {
        self.0
    }
}

/// The fields of some bytes.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

/// The reason why bytes are no client of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Another version has written them.
    Version(u16),
    /// They are incomplete, or a field is invalid.
    Invalid,
}

impl<'a> Fields<'a> {
    /// The fields behind the mark and the version.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Fields<'a>, Unreadable> {
        let rest = bytes.strip_prefix(MARK).ok_or(Unreadable::Invalid)?;
        let (version, rest) = rest.split_first_chunk().ok_or(Unreadable::Invalid)?;
        match u16::from_le_bytes(*version) {
            VERSION => Fields::inside(rest),
            other => Err(Unreadable::Version(other)),
        }
    }

    /// The fields of any version. `None` if the bytes are no fields.
    pub(super) fn of_any_version(bytes: &'a [u8]) -> Option<Fields<'a>> {
        let (_, rest) = bytes.strip_prefix(MARK)?.split_first_chunk::<2>()?;
        Fields::inside(rest).ok()
    }

    /// The fields of a field.
    pub(super) fn inside(bytes: &'a [u8]) -> Result<Fields<'a>, Unreadable> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = split(rest).ok_or(Unreadable::Invalid)?.2;
        }
        Ok(Fields(bytes))
    }

    /// All fields, in order.
    pub(super) fn each(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (tag, bytes, others) = split(rest)?;
            rest = others;
            Some((tag, bytes))
        })
    }

    /// The fields with this tag, in order.
    pub(super) fn all(self, tag: u16) -> impl Iterator<Item = &'a [u8]> {
        let tagged = self.each().filter(move |(found, _)| *found == tag);
        tagged.map(|(_, bytes)| bytes)
    }

    /// The first field with this tag.
    pub(super) fn bytes(self, tag: u16) -> Option<&'a [u8]> {
        self.all(tag).next()
    }

    pub(super) fn number(self, tag: u16) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(tag)?.try_into().ok()?))
    }
}

/// The tag and the bytes of the first field, and the fields after it.
fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<FIELD>()?;
    let tag = u16::from_le_bytes([head[0], head[1]]);
    let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let (bytes, rest) = rest.split_at_checked(length as usize)?;
    Some((tag, bytes, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_skipped_and_other_versions_are_refused() {
        let mut writer = Writer::begin();
        writer.number(1, 7);
        writer.bytes(999, b"of a later version");
        writer.group(2, |inner| inner.bytes(1, b"a"));
        writer.bytes(3, b"x");
        writer.bytes(3, b"y");
        let bytes = writer.end();
        let fields = Fields::open(&bytes).expect("fields");
        assert_eq!(fields.number(1), Some(7));
        let inner = Fields::inside(fields.bytes(2).expect("a group")).expect("fields");
        assert_eq!(inner.bytes(1), Some(&b"a"[..]));
        assert_eq!(fields.all(3).collect::<Vec<_>>(), [b"x", b"y"]);
        assert_eq!(fields.number(3), None);
        let mut later = bytes.clone();
        later[4] = 2;
        assert_eq!(Fields::open(&later).err(), Some(Unreadable::Version(2)));
        for length in 0..bytes.len() {
            let is_cut_between_fields = Fields::open(&bytes[..length]).is_ok();
            assert!(!is_cut_between_fields || length >= 6, "{length} bytes");
        }
        assert_eq!(Fields::open(b"FLCX\x01\0").err(), Some(Unreadable::Invalid));
    }
}
