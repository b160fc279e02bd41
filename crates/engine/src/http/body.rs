//! The body of a request while it arrives: in memory, or, above a threshold, in an unlinked temporary file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// A complete request body, or the part of it that has arrived.
#[derive(Debug, Default)]
pub enum Body {
    /// There is no body.
    #[default]
    Empty,
    /// Small enough for memory.
    Memory(Vec<u8>),
    /// In an unlinked temporary file, positioned at its start once the request is complete.
    File(File, u64),
}

impl Body {
    /// Bytes that have arrived.
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Memory(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        }
    }

    /// Returns true if nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Body::Memory(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Adds bytes; moves the body to a file in `directory` if it grows above `memory_bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8], memory_bytes: usize, directory: &Path) -> io::Result<()> {
        match self {
            Body::Empty if bytes.is_empty() => {}
            Body::Empty if bytes.len() <= memory_bytes => *self = Body::Memory(bytes.to_vec()),
            Body::Memory(memory) if memory.len() + bytes.len() <= memory_bytes => memory.extend_from_slice(bytes),
            Body::File(file, length) => {
                file.write_all(bytes)?;
                *length += bytes.len() as u64;
            }
            Body::Empty | Body::Memory(_) => {
                let mut file = tempfile::tempfile_in(directory)?;
                if let Body::Memory(memory) = self {
                    file.write_all(memory)?;
                }
                file.write_all(bytes)?;
                let length = self.len() + bytes.len() as u64;
                *self = Body::File(file, length);
            }
        }
        Ok(())
    }

    /// Rewinds a file for its reader, after everything has arrived.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Body::File(file, _) = self {
            file.seek(SeekFrom::Start(0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_body_stays_in_memory_up_to_the_threshold_and_moves_to_a_file_above_it() {
        let directory = std::env::temp_dir();
        let mut body = Body::default();
        body.push(b"12345", 8, &directory).expect("memory");
        assert!(matches!(body, Body::Memory(_)));
        body.push(b"678", 8, &directory).expect("memory");
        assert!(matches!(body, Body::Memory(_)));
        body.push(b"9", 8, &directory).expect("file");
        assert_eq!(body.len(), 9);
        body.finish().expect("rewind");
        let Body::File(mut file, _) = body else {
            panic!("a file was due")
        };
        let mut text = String::new();
        file.read_to_string(&mut text).expect("read back");
        assert_eq!(text, "123456789");
    }

    #[test]
    fn a_missing_directory_is_an_error_and_not_a_panic() {
        let mut body = Body::default();
        assert!(body.push(b"123", 2, Path::new("/nonexistent/folder")).is_err());
    }
}
