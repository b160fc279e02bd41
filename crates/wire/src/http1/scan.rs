//! Finds the exact error of a head: a strict scan, byte by byte, for heads that the fast path did not accept.
//!
//! Each error is detected at one particular byte, so the result never depends on the split of the bytes. The scan
//! continues where it stopped, so each byte is read once, however slowly a head arrives.

use super::fields::{is_token_byte, is_value_byte};
use super::head::{HeadLimits, MAX_METHOD_BYTES};
use super::target::is_target_byte;
use crate::Error;

/// The result for a head, or part of one, without errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// The head is complete.
    Complete,
    /// Complete, with a minor version above 1: the position of that digit, and the end of the head.
    Later { minor: usize, len: usize },
    /// The head is incomplete.
    Incomplete,
}

/// Progress of the scan of an incomplete head. Start with a new one for each head.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadProgress {
    /// The first byte that was not scanned.
    at: usize,
    part: Part,
    /// The start of that part.
    start: usize,
    fields: usize,
    /// The position of the minor version, if it is above 1.
    later_minor: Option<usize>,
}

impl HeadProgress {
    /// Returns true if nothing was scanned yet.
    pub(super) fn is_new(&self) -> bool {
        self.part == Part::Beginning && self.at == 0
    }
}

/// ```text
/// Beginning ─┬───────────────┬─► Method ─► Target ─► Version ─► Line ─► (complete)
///            └─► EmptyLine ──┘                                   │ ▲
///                                                                ▼ └───────────────┐
///                                                               Name ──────────► Value
///                                                                └─► Space (an error, but which?)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Beginning,
    EmptyLine,
    Method,
    Target,
    Version,
    Line,
    Name,
    Space,
    Value,
}

/// The reason for an early end of the scan: the end of the bytes, or an error.
enum Stop {
    End,
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// Scans `bytes` up to the end of the head, the end of the bytes, or the first error. They must begin with the bytes
/// for which `progress` was made.
pub(super) fn scan(bytes: &[u8], limits: &HeadLimits, progress: &mut HeadProgress) -> Result<Scanned, Error> {
    let HeadProgress {
        at,
        part,
        start,
        fields,
        later_minor,
    } = *progress;
    let mut scan = Scan {
        bytes,
        at: at.min(bytes.len()),
        part,
        start,
        fields,
        later_minor,
    };
    match scan.head(limits) {
        Ok(()) => Ok(scan.complete()),
        Err(Stop::End) => {
            *progress = HeadProgress {
                at: scan.at,
                part: scan.part,
                start: scan.start,
                fields: scan.fields,
                later_minor: scan.later_minor,
            };
            Ok(Scanned::Incomplete)
        }
        Err(Stop::Error(error)) => Err(error),
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    part: Part,
    start: usize,
    fields: usize,
    later_minor: Option<usize>,
}

impl<'a> Scan<'a> {
    fn complete(&self) -> Scanned {
        let len = self.at;
        self.later_minor
            .map_or(Scanned::Complete, |minor| Scanned::Later { minor, len })
    }

    fn head(&mut self, limits: &HeadLimits) -> Result<(), Stop> {
        loop {
            let part = self.part;
            let next = match part {
                Part::Beginning if self.line_end()? => Part::EmptyLine,
                Part::EmptyLine if self.line_end()? => return Err(Error::RepeatedEmptyLine.into()),
                Part::Beginning | Part::EmptyLine => Part::Method,
                Part::Method => self.method()?,
                Part::Target => self.target(limits)?,
                Part::Version => self.version()?,
                Part::Line if self.line_end()? => return Ok(()),
                Part::Line => self.field(limits)?,
                Part::Name => self.field_name()?,
                Part::Space => return Err(self.space_behind_name()),
                Part::Value => self.field_value()?,
            };
            self.part = next;
            self.start = self.at;
        }
    }

    fn method(&mut self) -> Result<Part, Stop> {
        self.skip(is_token_byte);
        if self.at - self.start > MAX_METHOD_BYTES {
            return Err(Error::MethodTooLong.into());
        }
        if self.peek()? != b' ' || self.at == self.start {
            return Err(self.misplaced(Error::InvalidMethod));
        }
        self.at += 1;
        Ok(Part::Target)
    }

    fn target(&mut self, limits: &HeadLimits) -> Result<Part, Stop> {
        self.skip(is_target_byte);
        let length = self.at - self.start;
        if length > limits.target_bytes {
            return Err(Error::TargetTooLong.into());
        }
        match self.peek()? {
            b'#' => Err(Error::FragmentInTarget.into()),
            b' ' if length == 0 => Err(Error::InvalidTarget.into()),
            b' ' => {
                self.at += 1;
                Ok(Part::Version)
            }
            // A request line that ends after the target belongs to HTTP/0.9.
            b'\r' => Err(self.misplaced(Error::InvalidVersion)),
            _ => Err(self.misplaced(Error::InvalidTarget)),
        }
    }

    /// The version and the end of its line: so few bytes that incomplete ones are scanned again.
    fn version(&mut self) -> Result<Part, Stop> {
        self.at = self.start;
        for &expected in b"HTTP/" {
            if self.peek()? != expected {
                return Err(self.misplaced(Error::InvalidVersion));
            }
            self.at += 1;
        }
        let major = self.digit()?;
        if self.peek()? != b'.' {
            return Err(self.misplaced(Error::InvalidVersion));
        }
        self.at += 1;
        let minor = self.digit()?;
        match (major, minor) {
            (b'1', b'0' | b'1') => {}
            // RFC 9110 §2.5: treated like the highest known minor version.
            (b'1', _) => self.later_minor = Some(self.at - 1),
            (b'0', _) => return Err(Error::InvalidVersion.into()),
            _ => return Err(Error::UnsupportedVersion.into()),
        }
        if self.line_end()? {
            Ok(Part::Line)
        } else {
            Err(self.misplaced(Error::InvalidVersion))
        }
    }

    fn digit(&mut self) -> Result<u8, Stop> {
        let byte = self.peek()?;
        if !byte.is_ascii_digit() {
            return Err(self.misplaced(Error::InvalidVersion));
        }
        self.at += 1;
        Ok(byte)
    }

    /// The beginning of a line that is not empty.
    fn field(&mut self, limits: &HeadLimits) -> Result<Part, Stop> {
        if matches!(self.peek()?, b' ' | b'\t') {
            return Err(match self.fields {
                0 => Error::SpaceBeforeFirstField,
                _ => Error::ObsoleteFold,
            }
            .into());
        }
        if self.fields == limits.fields {
            return Err(Error::TooManyFields.into());
        }
        self.fields += 1;
        Ok(Part::Name)
    }

    fn field_name(&mut self) -> Result<Part, Stop> {
        self.skip(is_token_byte);
        match self.peek()? {
            _ if self.at == self.start => Err(self.misplaced(Error::InvalidFieldName)),
            b':' => {
                self.at += 1;
                Ok(Part::Value)
            }
            b' ' | b'\t' => Ok(Part::Space),
            _ => Err(self.misplaced(Error::InvalidFieldName)),
        }
    }

    fn space_behind_name(&mut self) -> Stop {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        match self.peek() {
            Ok(b':') => Error::SpaceBeforeColon.into(),
            Ok(_) => self.misplaced(Error::InvalidFieldName),
            Err(stop) => stop,
        }
    }

    fn field_value(&mut self) -> Result<Part, Stop> {
        self.skip(is_value_byte);
        if self.line_end()? {
            return Ok(Part::Line);
        }
        Err(self.misplaced(Error::ControlCharacter))
    }

    /// Consumes CRLF if it is next. A bare CR or LF is an error; other bytes are left alone.
    fn line_end(&mut self) -> Result<bool, Stop> {
        match self.peek()? {
            b'\r' => match self.bytes.get(self.at + 1) {
                None => Err(Stop::End),
                Some(b'\n') => {
                    self.at += 2;
                    Ok(true)
                }
                Some(_) => Err(Error::BareCarriageReturn.into()),
            },
            b'\n' => Err(Error::BareLineFeed.into()),
            _ => Ok(false),
        }
    }

    /// The error for a forbidden byte at this position: a specific one for control characters, otherwise `expected`.
    fn misplaced(&mut self, expected: Error) -> Stop {
        match self.line_end() {
            Err(stop) => stop,
            Ok(true) => Stop::Error(expected),
            Ok(false) => Stop::Error(match self.bytes[self.at] {
                0 => Error::NulByte,
                byte if byte.is_ascii_control() && byte != b'\t' => Error::ControlCharacter,
                _ => expected,
            }),
        }
    }

    fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::End)
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len());
        #[cfg(test)]
        looked_at(length);
        self.at += length;
    }
}

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts bytes that were scanned; returns the previous count.
#[cfg(test)]
pub(super) fn looked_at(bytes: usize) -> usize {
    LOOKED_AT.replace(LOOKED_AT.get() + bytes)
}
