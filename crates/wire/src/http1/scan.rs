//! What exactly is wrong with a head: a strict scan, byte by byte, for heads the fast path did not accept.
//!
//! It decides each misdeed at one certain byte, so that the verdict never depends on how the bytes were split on
//! their way. Slow is fine here: it runs only on heads that are incomplete or refused.

use super::fields::{is_token_byte, is_value_byte};
use super::head::HeadLimits;
use super::target::is_target_byte;
use crate::Error;

/// What a faultless piece of a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// A head that ends within the bytes.
    Complete,
    /// The beginning of one.
    Incomplete,
}

/// Why the scan stopped early: the bytes ended, or a misdeed.
enum Stop {
    End,
    Misdeed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Misdeed(error)
    }
}

/// Reads `bytes` up to the end of the head, the end of the bytes, or the first misdeed.
pub(super) fn scan(bytes: &[u8], limits: &HeadLimits) -> Result<Scanned, Error> {
    match (Scan { bytes, at: 0 }).head(limits) {
        Ok(()) => Ok(Scanned::Complete),
        Err(Stop::End) => Ok(Scanned::Incomplete),
        Err(Stop::Misdeed(error)) => Err(error),
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn head(&mut self, limits: &HeadLimits) -> Result<(), Stop> {
        if self.line_end()? && self.line_end()? {
            return Err(Error::RepeatedEmptyLine.into());
        }
        self.method()?;
        self.target(limits)?;
        self.version()?;
        let mut fields = 0;
        while !self.line_end()? {
            if matches!(self.peek()?, b' ' | b'\t') {
                return Err(match fields {
                    0 => Error::SpaceBeforeFirstField,
                    _ => Error::ObsoleteFold,
                }
                .into());
            }
            if fields == limits.fields {
                return Err(Error::TooManyFields.into());
            }
            fields += 1;
            self.field_name()?;
            self.field_value()?;
        }
        Ok(())
    }

    fn method(&mut self) -> Result<(), Stop> {
        let start = self.at;
        self.skip(is_token_byte);
        if self.peek()? != b' ' || self.at == start {
            return Err(self.misplaced(Error::InvalidMethod));
        }
        self.at += 1;
        Ok(())
    }

    fn target(&mut self, limits: &HeadLimits) -> Result<(), Stop> {
        let start = self.at;
        self.skip(is_target_byte);
        let target = &self.bytes[start..self.at];
        if target.len() > limits.target_bytes {
            return Err(Error::TargetTooLong.into());
        }
        match self.peek()? {
            b'#' => Err(Error::FragmentInTarget.into()),
            b' ' if target.is_empty() => Err(Error::InvalidTarget.into()),
            b' ' => {
                self.at += 1;
                Ok(())
            }
            // A request line that ends behind the target is HTTP/0.9's.
            b'\r' => Err(self.misplaced(Error::InvalidVersion)),
            _ => Err(self.misplaced(Error::InvalidTarget)),
        }
    }

    fn version(&mut self) -> Result<(), Stop> {
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
            (b'0', _) => return Err(Error::InvalidVersion.into()),
            _ => return Err(Error::UnsupportedVersion.into()),
        }
        if self.line_end()? {
            Ok(())
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

    fn field_name(&mut self) -> Result<(), Stop> {
        let start = self.at;
        self.skip(is_token_byte);
        let end = self.at;
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.peek()? != b':' || end == start {
            return Err(self.misplaced(Error::InvalidFieldName));
        }
        if self.at > end {
            return Err(Error::SpaceBeforeColon.into());
        }
        self.at += 1;
        Ok(())
    }

    fn field_value(&mut self) -> Result<(), Stop> {
        self.skip(is_value_byte);
        if self.line_end()? {
            return Ok(());
        }
        Err(self.misplaced(Error::ControlCharacter))
    }

    /// Takes CRLF if it is next; a bare CR or LF is a misdeed, anything else is left alone.
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

    /// Names the byte here, which does not belong: by its nature if it is a control character, else by `expected`.
    fn misplaced(&mut self, expected: Error) -> Stop {
        match self.line_end() {
            Err(stop) => stop,
            Ok(true) => Stop::Misdeed(expected),
            Ok(false) => Stop::Misdeed(match self.bytes[self.at] {
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
        self.at += rest.iter().position(|&byte| !wanted(byte)).unwrap_or(rest.len());
    }
}
