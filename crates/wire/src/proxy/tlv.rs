//! The vectors after the addresses of a header of version 2: type, length, value. Unknown ones are skipped. A vector
//! that exceeds its bounds, occurs twice or has an invalid value makes the header invalid.

use super::checksum::crc32c;
use crate::Error;

/// Types of vectors.
mod kind {
    pub(super) const AUTHORITY: u8 = 0x02;
    pub(super) const CRC32C: u8 = 0x03;
    pub(super) const TLS: u8 = 0x20;
    // Within a vector about TLS.
    pub(super) const TLS_VERSION: u8 = 0x21;
    pub(super) const TLS_COMMON_NAME: u8 = 0x22;
    pub(super) const TLS_CIPHER: u8 = 0x23;
    pub(super) const TLS_CERTIFICATE: u8 = 0x28;
}

/// Bits of the first byte of a vector about TLS.
mod client {
    pub(super) const USES_TLS: u8 = 1;
    pub(super) const CERTIFICATE_NOW: u8 = 2;
    pub(super) const CERTIFICATE_IN_SESSION: u8 = 4;
}

/// TLS parameters between a client and the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyTls<'a> {
    /// The version, such as `TLSv1.3`; empty if the proxy does not report it.
    pub version: &'a str,
    /// The cipher, as the proxy names it; empty if the proxy does not report it.
    pub cipher: &'a str,
    /// True if the client has sent a certificate, on this connection or earlier in its session.
    pub has_certificate: bool,
    /// True if the proxy has found the certificate valid.
    pub is_verified: bool,
    /// True if the certificate comes from an earlier connection of the session.
    pub is_resumed: bool,
    /// The common name of the client's certificate.
    pub common_name: Option<&'a str>,
    /// The client's certificate (DER).
    pub certificate: Option<&'a [u8]>,
}

/// The values of the vectors.
#[derive(Default)]
pub(super) struct Vectors<'a> {
    pub(super) authority: Option<&'a str>,
    pub(super) tls: Option<ProxyTls<'a>>,
}

impl<'a> Vectors<'a> {
    /// Reads the vectors from `start` to the end of `header`.
    pub(super) fn read(header: &'a [u8], start: usize) -> Result<Vectors<'a>, Error> {
        let (mut authority, mut tls, mut checksum) = (None, None, None);
        let mut rest = &header[start..];
        while let Some((kind, value)) = next(&mut rest)? {
            match kind {
                kind::AUTHORITY => once(&mut authority, text(value)?)?,
                kind::TLS => once(&mut tls, read_tls(value)?)?,
                kind::CRC32C => {
                    let sum: [u8; 4] = value.try_into().map_err(|_| Error::InvalidProxyHeader)?;
                    let place = header.len() - rest.len() - sum.len();
                    once(&mut checksum, (place, u32::from_be_bytes(sum)))?;
                }
                _ => {}
            }
        }
        if let Some((place, sum)) = checksum {
            // The checksum was computed over the header with zeros in its place.
            if crc32c(&[&header[..place], &[0; 4], &header[place + 4..]]) != sum {
                return Err(Error::ProxyChecksumMismatch);
            }
        }
        Ok(Vectors {
            authority,
            tls: tls.flatten(),
        })
    }
}

/// Bits, the result of the verification (0: valid), and further vectors. `None` if the client does not use TLS.
fn read_tls(value: &[u8]) -> Result<Option<ProxyTls<'_>>, Error> {
    let (fixed, mut rest) = value.split_first_chunk::<5>().ok_or(Error::InvalidProxyHeader)?;
    let [bits, verification @ ..] = *fixed;
    let (mut version, mut cipher, mut common_name, mut certificate) = (None, None, None, None);
    while let Some((kind, value)) = next(&mut rest)? {
        match kind {
            kind::TLS_VERSION => once(&mut version, text(value)?)?,
            kind::TLS_CIPHER => once(&mut cipher, text(value)?)?,
            kind::TLS_COMMON_NAME => once(&mut common_name, text(value)?)?,
            kind::TLS_CERTIFICATE => once(&mut certificate, value)?,
            _ => {}
        }
    }
    if bits & client::USES_TLS == 0 {
        return Ok(None);
    }
    let is_now = bits & client::CERTIFICATE_NOW != 0;
    let is_in_session = bits & client::CERTIFICATE_IN_SESSION != 0;
    let has_certificate = is_now || is_in_session;
    Ok(Some(ProxyTls {
        version: version.unwrap_or_default(),
        cipher: cipher.unwrap_or_default(),
        has_certificate,
        // Without a certificate the result may be anything.
        is_verified: has_certificate && verification == [0; 4],
        is_resumed: is_in_session && !is_now,
        common_name: common_name.filter(|_| has_certificate),
        certificate: certificate.filter(|_| has_certificate),
    }))
}

/// Takes the next vector off `rest`; `None` at its end.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, Error> {
    match **rest {
        [] => Ok(None),
        [kind, high, low, ref tail @ ..] => {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let (value, tail) = tail.split_at_checked(length).ok_or(Error::InvalidProxyHeader)?;
            *rest = tail;
            Ok(Some((kind, value)))
        }
        _ => Err(Error::InvalidProxyHeader),
    }
}

/// Text on one line: it goes into the env unchanged, and the owner of a certificate chooses its common name. U+0085,
/// U+2028 and U+2029 end lines, too, for some readers.
fn text(value: &[u8]) -> Result<&str, Error> {
    let text = std::str::from_utf8(value).ok();
    let ends_line = |char: char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}');
    text.filter(|text| !text.chars().any(ends_line))
        .ok_or(Error::InvalidProxyHeader)
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::InvalidProxyHeader),
    }
}
