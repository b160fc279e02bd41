//! The end of a request: Content-Length and Transfer-Encoding (RFC 9112 §6).
//!
//! Every leniency that the RFC permits here has led to a request-smuggling advisory for some server, so this module is
//! strict.

use super::fields;
use super::head::Version;
use crate::Error;

/// The framing of a request body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Neither Content-Length nor Transfer-Encoding: there is no body (RFC 9112 §6.3 rule 7).
    #[default]
    Empty,
    /// Content-Length gives the number of bytes, which may be 0.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The end of its stream ends the body: HTTP/2 (RFC 9113 §8.1).
    Stream,
}

impl Framing {
    /// Returns true if body bytes follow the head. A chunked body may still be empty.
    pub fn has_body(self) -> bool {
        !matches!(self, Framing::Empty | Framing::Length(0))
    }

    /// The framing of a request, from the values of the two fields, if present.
    pub(super) fn of(
        version: Version,
        content_length: Option<&[u8]>,
        transfer_encoding: Option<&[u8]>,
    ) -> Result<Framing, Error> {
        match (content_length, transfer_encoding) {
            (None, None) => Ok(Framing::Empty),
            (Some(digits), None) => parse_content_length(digits).map(Framing::Length),
            (_, Some(_)) if version == Version::Http10 => Err(Error::TransferEncodingInHttp10),
            (Some(_), Some(_)) => Err(Error::ContentLengthWithTransferEncoding),
            (None, Some(codings)) => check_codings(codings).map(|()| Framing::Chunked),
        }
    }
}

/// Digits only; no leading zero, which some peers read as octal; and at most a signed 64-bit number, because peers with
/// signed numbers would read a negative length.
fn parse_content_length(digits: &[u8]) -> Result<u64, Error> {
    const MOST_DIGITS: usize = 19;
    if digits.is_empty() || digits.len() > MOST_DIGITS || (digits[0] == b'0' && digits.len() > 1) {
        return Err(Error::InvalidContentLength);
    }
    let mut length = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(Error::InvalidContentLength);
        }
        length = length * 10 + u64::from(digit - b'0');
    }
    if length > i64::MAX as u64 {
        return Err(Error::InvalidContentLength);
    }
    Ok(length)
}

/// Accepts exactly `chunked`. Other values result in the error that describes them.
fn check_codings(codings: &[u8]) -> Result<(), Error> {
    if codings.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let mut chunked = 0;
    let mut last_is_chunked = false;
    for member in codings.split(|&byte| byte == b',') {
        let member = fields::trim(member);
        let coding = member.split(|&byte| byte == b';').next().map_or(member, fields::trim);
        if !fields::is_valid_field_name(coding) {
            return Err(Error::InvalidTransferEncoding);
        }
        last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        if last_is_chunked && coding.len() != member.len() {
            return Err(Error::InvalidTransferEncoding);
        }
        chunked += usize::from(last_is_chunked);
    }
    match chunked {
        0 => Err(Error::UnsupportedTransferCoding),
        1 if last_is_chunked => Err(Error::UnsupportedTransferCoding),
        1 => Err(Error::InvalidTransferEncoding),
        _ => Err(Error::DuplicateTransferEncoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(digits: &str) -> Result<Framing, Error> {
        Framing::of(Version::Http11, Some(digits.as_bytes()), None)
    }

    fn codings(codings: &str) -> Result<Framing, Error> {
        Framing::of(Version::Http11, None, Some(codings.as_bytes()))
    }

    #[test]
    fn content_length_is_decimal_digits_that_fit_a_signed_number() {
        assert_eq!(length("0"), Ok(Framing::Length(0)));
        assert_eq!(length("42"), Ok(Framing::Length(42)));
        assert_eq!(length("9223372036854775807"), Ok(Framing::Length(i64::MAX as u64)));
        for bad in [
            "",
            "007",
            "00",
            "-0",
            "+1",
            "-1",
            "0x1",
            "1_0",
            "1,1",
            "1 1",
            "1.0",
            "1e3",
            "a",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "00000000000000000001",
            "\u{661}",
        ] {
            assert_eq!(length(bad), Err(Error::InvalidContentLength), "{bad:?}");
        }
    }

    #[test]
    fn chunked_alone_is_the_only_coding() {
        assert_eq!(codings("chunked"), Ok(Framing::Chunked));
        assert_eq!(codings("Chunked"), Ok(Framing::Chunked));
        for other in [
            "gzip",
            "xchunked",
            "chunkedx",
            "identity",
            "gzip, chunked",
            "gzip;q=1 , CHUNKED",
        ] {
            assert_eq!(codings(other), Err(Error::UnsupportedTransferCoding), "{other:?}");
        }
        for bad in [
            "",
            ",chunked",
            "chunked,",
            "chunked;a=b",
            "chunked ;",
            "\"chunked\"",
            "chunked, gzip",
            "chun ked",
            "chunked\u{a0}",
            "[chunked]",
        ] {
            assert_eq!(codings(bad), Err(Error::InvalidTransferEncoding), "{bad:?}");
        }
        assert_eq!(codings("chunked, chunked"), Err(Error::DuplicateTransferEncoding));
    }

    #[test]
    fn both_fields_or_an_old_version_are_refused_before_values_are_parsed() {
        let both = Framing::of(Version::Http11, Some(b"x"), Some(b"gzip"));
        assert_eq!(both, Err(Error::ContentLengthWithTransferEncoding));
        let old = Framing::of(Version::Http10, None, Some(b"chunked"));
        assert_eq!(old, Err(Error::TransferEncodingInHttp10));
    }

    #[test]
    fn only_a_length_above_zero_or_chunked_means_a_body() {
        assert!(!Framing::Empty.has_body());
        assert!(!Framing::Length(0).has_body());
        assert!(Framing::Length(1).has_body());
        assert!(Framing::Chunked.has_body());
    }
}
