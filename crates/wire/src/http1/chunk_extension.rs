//! Chunk extensions (RFC 9112 §7.1.1): no client uses them, but request smuggling hides in their grammar. So they are
//! checked, and their size is bounded.

use super::fields::{is_token_byte, is_value_byte};
use crate::Error;

/// Most bytes of extensions in one chunk.
const MOST_PER_CHUNK: usize = 4 * 1024;
/// Most bytes of extensions in all chunks of a body.
const MOST_PER_BODY: usize = 16 * 1024;

/// Parses the extensions of a chunk byte by byte, from the end of the size to the CR.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    state: ExtensionState,
    in_chunk: usize,
    in_body: usize,
}

/// `chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS value ] )`. White space has its own state where it must be followed
/// by more of an extension, because the line must not end in white space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ExtensionState {
    #[default]
    AfterSize,
    BeforeSemicolon,
    BeforeName,
    Name,
    BeforeEquals,
    BeforeValue,
    Value,
    Quoted,
    Escaped,
    Unquoted,
}

impl Extensions {
    /// Starts the next chunk.
    pub(super) fn start(&mut self) {
        self.state = ExtensionState::AfterSize;
        self.in_chunk = 0;
    }

    /// Takes the next byte, which is not CR.
    pub(super) fn take(&mut self, byte: u8) -> Result<(), Error> {
        self.in_chunk += 1;
        self.in_body += 1;
        if self.in_chunk > MOST_PER_CHUNK || self.in_body > MOST_PER_BODY {
            return Err(Error::ChunkExtensionTooLong);
        }
        self.state = self.state.next(byte).ok_or(match (self.state, byte) {
            (_, b'\n') => Error::BareLineFeed,
            (ExtensionState::AfterSize, _) => Error::InvalidChunkSize,
            _ => Error::InvalidChunkExtension,
        })?;
        Ok(())
    }

    /// Returns true if the size line may end here.
    pub(super) fn may_end(&self) -> bool {
        use ExtensionState::*;
        matches!(self.state, AfterSize | Name | Value | Unquoted)
    }
}

impl ExtensionState {
    fn next(self, byte: u8) -> Option<ExtensionState> {
        use ExtensionState::*;
        Some(match (self, byte) {
            (AfterSize | BeforeSemicolon | Value | Unquoted, b' ' | b'\t') => BeforeSemicolon,
            (AfterSize | BeforeSemicolon | Value | Unquoted, b';') => BeforeName,
            (Name | BeforeEquals, b';') => BeforeName,
            (Name | BeforeEquals, b' ' | b'\t') => BeforeEquals,
            (Name | BeforeEquals, b'=') => BeforeValue,
            (BeforeName, b' ' | b'\t') => BeforeName,
            (BeforeName | Name, byte) if is_token_byte(byte) => Name,
            (BeforeValue, b' ' | b'\t') => BeforeValue,
            (BeforeValue, b'"') => Quoted,
            (BeforeValue | Value, byte) if is_token_byte(byte) => Value,
            (Quoted, b'"') => Unquoted,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, byte) if is_value_byte(byte) => Quoted,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(extensions: &[u8]) -> Result<bool, Error> {
        let mut reader = Extensions::default();
        reader.start();
        extensions.iter().try_for_each(|&byte| reader.take(byte))?;
        Ok(reader.may_end())
    }

    #[test]
    fn well_formed_extensions_may_end() {
        for good in [
            "",
            ";a",
            ";a=b",
            ";a;b=c;d",
            " ; a = b ; c",
            "\t;a=\"x;y\\\"z=\"",
            ";a=\"\";b",
            ";a ;b",
        ] {
            assert_eq!(read(good.as_bytes()), Ok(true), "{good:?}");
        }
    }

    #[test]
    fn unfinished_extensions_may_not_end() {
        for bad in [
            " ",
            ";",
            ";a=",
            ";a ",
            ";a= ",
            ";a=b ",
            ";a=\"b",
            ";a=\"b\\",
            ";a=\"b\" ",
            ";a;",
        ] {
            assert_eq!(read(bad.as_bytes()), Ok(false), "{bad:?}");
        }
    }

    #[test]
    fn invalid_bytes_in_extensions_are_refused_at_once() {
        for bad in [
            &b";;"[..],
            b";=",
            b" x",
            b";a b",
            b";a=b=c",
            b";a=b\"",
            b";a=\"b\"c",
            b";a\0",
            b";a=\"\x01",
            b";a=\"\\\x7f",
            b";(",
        ] {
            assert_eq!(read(bad), Err(Error::InvalidChunkExtension), "{bad:?}");
        }
        assert_eq!(read(b"_"), Err(Error::InvalidChunkSize));
        assert_eq!(read(b";a\n"), Err(Error::BareLineFeed));
        assert_eq!(read(b";a=\"\n"), Err(Error::BareLineFeed));
    }

    #[test]
    fn extensions_are_limited_per_chunk_and_per_body() {
        let mut reader = Extensions::default();
        let mut chunks = 0;
        let error = loop {
            reader.start();
            let line = [b";a=".as_slice(), &[b'b'; MOST_PER_CHUNK - 3]].concat();
            if let Err(error) = line.iter().try_for_each(|&byte| reader.take(byte)) {
                break error;
            }
            chunks += 1;
        };
        assert_eq!(error, Error::ChunkExtensionTooLong);
        assert_eq!(chunks, MOST_PER_BODY / MOST_PER_CHUNK);
        let long = [b";".as_slice(), &[b'a'; MOST_PER_CHUNK]].concat();
        assert_eq!(read(&long), Err(Error::ChunkExtensionTooLong));
    }
}
