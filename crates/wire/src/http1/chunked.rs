//! The chunked transfer coding (RFC 9112 §7.1), decoded as the bytes arrive, however they are split.
//!
//! ```text
//! Size ─► Extension ─► SizeLineFeed ─┬─► Data ─► DataReturn ─► DataLineFeed ─► Size …
//!   └───────────────────►┘           └─► Trailer ─► Done            (size 0)
//! ```
//!
//! Data is passed to a sink in pieces and is not copied here. [`ChunkedDecoder::skip_framing`] leaves the data to the
//! caller instead, who may take it bit by bit. Trailer fields are checked and dropped, unless they are requested: an
//! application has already read the body as data, and fields that come after it could only mislead.

use super::chunk_extension::Extensions;
use super::fields::{is_token_byte, is_valid_field_name, is_value_byte};
use crate::Error;

/// Most digits of a chunk size. Leading zeros count, because otherwise a peer could send them without end.
const MOST_DIGITS: u8 = 16;

/// The progress of one call of [`ChunkedDecoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that belong to the body: all of them unless it is done.
    pub consumed: usize,
    /// True if the body has ended, including trailers.
    pub done: bool,
}

/// Decodes one chunked body. After an error every further call returns the same error.
#[derive(Debug)]
pub struct ChunkedDecoder {
    state: ChunkState,
    /// The chunk size read so far, then the remaining bytes of the chunk.
    size: u64,
    extensions: Extensions,
    /// The trailer line that is arriving.
    line: Vec<u8>,
    trailer_bytes: usize,
    max_trailer_bytes: usize,
    /// The trailer lines that have arrived, if they are kept.
    trailers: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
enum ChunkState {
    Size { digits: u8 },
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    Trailer,
    Done,
    Failed(Error),
}

impl Default for ChunkedDecoder {
    /// A decoder that accepts 8 KiB of trailers.
    fn default() -> ChunkedDecoder {
        ChunkedDecoder::new(8 * 1024)
    }
}

impl ChunkedDecoder {
    /// A decoder for one body with at most `max_trailer_bytes` of trailer lines.
    pub fn new(max_trailer_bytes: usize) -> ChunkedDecoder {
        ChunkedDecoder {
            state: ChunkState::Size { digits: 0 },
            size: 0,
            extensions: Extensions::default(),
            line: Vec::new(),
            trailer_bytes: 0,
            max_trailer_bytes,
            trailers: None,
        }
    }

    /// Keeps the trailer lines; see [`ChunkedDecoder::trailers`].
    #[must_use]
    pub fn keeping_trailers(mut self) -> ChunkedDecoder {
        self.trailers = Some(Vec::new());
        self
    }

    /// The trailer lines with their line ends, without the empty line after them; empty if they are not kept.
    pub fn trailers(&self) -> &[u8] {
        self.trailers.as_deref().unwrap_or_default()
    }

    /// Returns true if the body has ended, including trailers.
    pub fn is_done(&self) -> bool {
        matches!(self.state, ChunkState::Done)
    }

    /// Reads framing at the start of `input`, up to data or the end of the body. Returns its length.
    pub fn skip_framing(&mut self, input: &[u8]) -> Result<usize, Error> {
        let mut rest = input;
        while !rest.is_empty() && !matches!(self.state, ChunkState::Data | ChunkState::Done) {
            rest = &rest[self.checked_step(rest, &mut |_| {})?..];
        }
        Ok(input.len() - rest.len())
    }

    /// Returns the number of data bytes of the current chunk among the next `length` bytes.
    pub fn data_ahead(&self, length: usize) -> usize {
        match self.state {
            ChunkState::Data => usize::try_from(self.size).unwrap_or(usize::MAX).min(length),
            _ => 0,
        }
    }

    /// Counts data that the caller has taken: at most [`ChunkedDecoder::data_ahead`].
    pub fn take_data(&mut self, length: usize) {
        self.size = self.size.saturating_sub(length as u64);
        if self.size == 0 && matches!(self.state, ChunkState::Data) {
            self.state = ChunkState::DataReturn;
        }
    }

    /// Decodes the part of the body in `input`, and passes its data to `sink`, in pieces that are never empty. If there
    /// is an error, the sink may already have got the data before it.
    pub fn decode(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<Progress, Error> {
        let mut rest = input;
        while !rest.is_empty() && !self.is_done() {
            rest = &rest[self.checked_step(rest, sink)?..];
        }
        Ok(Progress {
            consumed: input.len() - rest.len(),
            done: self.is_done(),
        })
    }

    /// Does the same as [`ChunkedDecoder::step`], and remembers an error.
    fn checked_step(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        let taken = self.step(input, sink);
        if let Err(error) = taken {
            self.state = ChunkState::Failed(error);
        }
        taken
    }

    /// Takes the next byte of `input`, which is not empty, or several bytes at once. Returns their number.
    fn step(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        let byte = input[0];
        self.state = match self.state {
            ChunkState::Size { digits } => self.size_digit(digits, byte)?,
            ChunkState::Extension => self.extension(byte)?,
            ChunkState::SizeLineFeed if byte != b'\n' => return Err(Error::BareCarriageReturn),
            ChunkState::SizeLineFeed if self.size == 0 => ChunkState::Trailer,
            ChunkState::SizeLineFeed => ChunkState::Data,
            ChunkState::Data => return Ok(self.data(input, sink)),
            ChunkState::DataReturn if byte != b'\r' => return Err(Error::MissingChunkTerminator),
            ChunkState::DataReturn => ChunkState::DataLineFeed,
            ChunkState::DataLineFeed if byte != b'\n' => return Err(Error::MissingChunkTerminator),
            ChunkState::DataLineFeed => ChunkState::Size { digits: 0 },
            ChunkState::Trailer => return self.trailer(input),
            ChunkState::Done => return Ok(0),
            ChunkState::Failed(error) => return Err(error),
        };
        Ok(1)
    }

    fn size_digit(&mut self, digits: u8, byte: u8) -> Result<ChunkState, Error> {
        let Some(digit) = (byte as char).to_digit(16) else {
            if digits == 0 {
                return Err(Error::InvalidChunkSize);
            }
            self.extensions.start();
            return self.extension(byte);
        };
        // Peers that use a signed 64-bit number would read a larger size as negative.
        if digits == MOST_DIGITS || self.size > i64::MAX as u64 >> 4 {
            return Err(Error::ChunkSizeOverflow);
        }
        self.size = self.size << 4 | u64::from(digit);
        Ok(ChunkState::Size { digits: digits + 1 })
    }

    fn extension(&mut self, byte: u8) -> Result<ChunkState, Error> {
        if byte != b'\r' {
            self.extensions.take(byte)?;
            return Ok(ChunkState::Extension);
        }
        if self.extensions.may_end() {
            Ok(ChunkState::SizeLineFeed)
        } else {
            Err(Error::InvalidChunkExtension)
        }
    }

    fn data(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> usize {
        let taken = self.data_ahead(input.len());
        sink(&input[..taken]);
        self.take_data(taken);
        taken
    }

    fn trailer(&mut self, input: &[u8]) -> Result<usize, Error> {
        let line_feed = memchr::memchr(b'\n', input);
        let taken = line_feed.map_or(input.len(), |at| at + 1);
        self.trailer_bytes += taken;
        // The empty line that ends the section is not counted.
        if self.trailer_bytes > self.max_trailer_bytes.saturating_add(2) {
            return Err(Error::TrailerTooLarge);
        }
        self.line.extend_from_slice(&input[..taken]);
        if line_feed.is_some() {
            if check_trailer_line(&self.line)? {
                self.state = ChunkState::Done;
            } else if let Some(trailers) = &mut self.trailers {
                trailers.extend_from_slice(&self.line);
            }
            self.line.clear();
        }
        Ok(taken)
    }
}

/// Checks a line including its line feed. Returns true for the empty line that ends the section.
fn check_trailer_line(line: &[u8]) -> Result<bool, Error> {
    let Some(line) = line.strip_suffix(b"\r\n") else {
        return Err(Error::BareLineFeed);
    };
    if line.is_empty() {
        return Ok(true);
    }
    if line.contains(&b'\r') {
        return Err(Error::BareCarriageReturn);
    }
    if line.contains(&0) {
        return Err(Error::NulByte);
    }
    if matches!(line[0], b' ' | b'\t') {
        return Err(Error::ObsoleteFold);
    }
    let Some(colon) = memchr::memchr(b':', line) else {
        return Err(Error::InvalidTrailer);
    };
    let (name, value) = line.split_at(colon);
    if !is_valid_field_name(name) {
        let spaced = name
            .iter()
            .all(|&byte| is_token_byte(byte) || matches!(byte, b' ' | b'\t'));
        let spaced = spaced && matches!(name.last(), Some(b' ' | b'\t'));
        return Err(if spaced {
            Error::SpaceBeforeColon
        } else {
            Error::InvalidTrailer
        });
    }
    if !value.iter().all(|&byte| is_value_byte(byte)) {
        return Err(Error::ControlCharacter);
    }
    if is_forbidden(name) {
        return Err(Error::ForbiddenTrailer);
    }
    Ok(false)
}

/// Fields that frame, route, authenticate or describe the content: after the content they come too late (RFC 9110
/// §6.5.1). Underscores count as dashes, as in CGI names.
fn is_forbidden(name: &[u8]) -> bool {
    const FORBIDDEN: [&[u8]; 22] = [
        b"authorization",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-range",
        b"content-type",
        b"cookie",
        b"expect",
        b"forwarded",
        b"host",
        b"keep-alive",
        b"max-forwards",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
    ];
    let alike = |field: &[u8]| {
        field.len() == name.len()
            && field
                .iter()
                .zip(name)
                .all(|(&wanted, &byte)| byte.to_ascii_lowercase() == wanted || (byte == b'_' && wanted == b'-'))
    };
    FORBIDDEN.into_iter().any(alike)
}
