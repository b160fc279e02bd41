//! A second implementation of the headers, naive and slow, written from the specification.

use fairlead_wire::{Error, ProxyVersions};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The values in a header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) len: usize,
    pub(crate) client: Option<SocketAddr>,
    pub(crate) authority: Option<String>,
    pub(crate) tls: Option<Tls>,
}

/// The TLS values: version, cipher, name, certificate; then, if there is a certificate, if it is valid, and if it comes
/// from an earlier connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tls(
    pub(crate) [Option<String>; 3],
    pub(crate) Option<Vec<u8>>,
    pub(crate) [bool; 3],
);

type Result<T> = std::result::Result<Option<T>, Error>;

pub(crate) fn read(bytes: &[u8], versions: ProxyVersions) -> Result<Reading> {
    match (versions, bytes.first()) {
        (ProxyVersions::V1, _) => line(bytes),
        (ProxyVersions::V2, _) => block(bytes),
        (ProxyVersions::Any, None) => Ok(None),
        (ProxyVersions::Any, Some(b'P')) => line(bytes),
        (ProxyVersions::Any, Some(b'\r')) => block(bytes),
        (ProxyVersions::Any, Some(_)) => Err(Error::InvalidProxyHeader),
    }
}

fn line(bytes: &[u8]) -> Result<Reading> {
    let text: String = bytes.iter().take(107).map(|byte| char::from(*byte)).collect();
    if !"PROXY ".starts_with(&text) && !text.starts_with("PROXY ") {
        return Err(Error::InvalidProxyLine);
    }
    let Some((line, _)) = text.split_once('\n') else {
        return if text.chars().count() < 107 {
            Ok(None)
        } else {
            Err(Error::InvalidProxyLine)
        };
    };
    let len = line.chars().count() + 1;
    let client = line.strip_suffix('\r').and_then(words).ok_or(Error::InvalidProxyLine)?;
    let client = client.map(Into::into);
    Ok(Some(Reading {
        len,
        client,
        ..Reading::default()
    }))
}

/// The client, if there is one; `None` if the line is malformed.
fn words(line: &str) -> Option<Option<(IpAddr, u16)>> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["PROXY", "UNKNOWN", ..] => Some(None),
        ["PROXY", "TCP4", source, target, from, to] => {
            v4(target)?;
            number(to, 65_535)?;
            Some(Some((IpAddr::V4(v4(source)?), number(from, 65_535)?)))
        }
        ["PROXY", "TCP6", source, target, from, to] => {
            v6(target)?;
            number(to, 65_535)?;
            Some(Some((v6(source)?, number(from, 65_535)?)))
        }
        _ => None,
    }
}

fn v4(word: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u16> = word.split('.').map(|part| number(part, 255)).collect::<Option<_>>()?;
    match parts[..] {
        [a, b, c, d] => Some(Ipv4Addr::new(a as u8, b as u8, c as u8, d as u8)),
        _ => None,
    }
}

fn v6(word: &str) -> Option<IpAddr> {
    word.parse().ok().map(IpAddr::V6)
}

/// A number as it is printed, and in no other spelling.
fn number(word: &str, most: u16) -> Option<u16> {
    let number: u16 = word.parse().ok()?;
    (number <= most && number.to_string() == word).then_some(number)
}

fn block(bytes: &[u8]) -> Result<Reading> {
    let expected = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a";
    let invalid = Err(Error::InvalidProxyHeader);
    if bytes.iter().zip(expected).any(|(byte, own)| byte != own) {
        return invalid;
    }
    let is_local = match bytes.get(12) {
        None => return Ok(None),
        Some(0x20) => true,
        Some(0x21) => false,
        Some(_) => return invalid,
    };
    let kinds = [
        (0x00, 0),
        (0x11, 12),
        (0x12, 12),
        (0x21, 36),
        (0x22, 36),
        (0x31, 216),
        (0x32, 216),
    ];
    let addresses = match bytes.get(13) {
        None => return Ok(None),
        Some(_) if is_local => 0,
        Some(kind) => match kinds.iter().find(|(own, _)| own == kind) {
            Some((_, count)) => *count,
            None => return invalid,
        },
    };
    if bytes.len() < 16 {
        return Ok(None);
    }
    let length = usize::from(bytes[14]) * 256 + usize::from(bytes[15]);
    if length + 16 > 16_384 {
        return Err(Error::ProxyHeaderTooLong);
    }
    if length < addresses {
        return invalid;
    }
    if bytes.len() < length + 16 {
        return Ok(None);
    }
    let mut reading = Reading {
        len: length + 16,
        ..Reading::default()
    };
    if is_local || bytes[13] == 0 {
        return Ok(Some(reading));
    }
    let header = &bytes[..reading.len];
    reading.client = match header[13] >> 4 {
        1 => {
            let address = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
            Some((address, u16::from(header[24]) << 8 | u16::from(header[25])).into())
        }
        2 => {
            let groups: Vec<u16> = (0..8)
                .map(|group| u16::from(header[16 + 2 * group]) << 8 | u16::from(header[17 + 2 * group]))
                .collect();
            let address = Ipv6Addr::from(<[u16; 8]>::try_from(groups).expect("eight groups"));
            Some((address, u16::from(header[48]) << 8 | u16::from(header[49])).into())
        }
        _ => None,
    };
    match vectors(header, 16 + addresses, &mut reading) {
        Some(true) => Ok(Some(reading)),
        Some(false) => Err(Error::ProxyChecksumMismatch),
        None => invalid,
    }
}

/// Returns true if the checksum is right; `None` if the vectors are malformed.
fn vectors(header: &[u8], start: usize, reading: &mut Reading) -> Option<bool> {
    let found = split(&header[start..])?;
    let mut is_right = true;
    if let Some((place, value)) = single(&found, 0x03)? {
        let sum = u32::from_be_bytes(value.try_into().ok()?);
        let mut zeroed = header.to_vec();
        zeroed[start + place..start + place + 4].fill(0);
        is_right = checksum(&zeroed) == sum;
    }
    reading.authority = match single(&found, 0x02)? {
        Some((_, value)) => Some(on_one_line(value)?),
        None => None,
    };
    if let Some((_, value)) = single(&found, 0x20)? {
        reading.tls = tls(value)?;
    }
    Some(is_right)
}

/// Text without a character that ends a line or controls a terminal.
fn on_one_line(value: &[u8]) -> Option<String> {
    let text = String::from_utf8(value.to_vec()).ok()?;
    let forbidden = text.chars().filter(|char| {
        let code = u32::from(*char);
        code < 0x20 || (0x7f..0xa0).contains(&code) || code == 0x2028 || code == 0x2029
    });
    (forbidden.count() == 0).then_some(text)
}

fn tls(value: &[u8]) -> Option<Option<Tls>> {
    let (bits, verification) = (*value.first()?, value.get(1..5)?);
    let found = split(&value[5..])?;
    let mut texts = [None, None, None];
    for (text, kind) in texts.iter_mut().zip([0x21, 0x23, 0x22]) {
        if let Some((_, value)) = single(&found, kind)? {
            *text = Some(on_one_line(value)?);
        }
    }
    let certificate = single(&found, 0x28)?.map(|(_, value)| value.to_vec());
    let has_certificate = bits & 6 != 0;
    if !has_certificate {
        texts[2] = None;
    }
    // An empty version or cipher counts as missing.
    texts[..2]
        .iter_mut()
        .for_each(|text| *text = text.take().filter(|text| !text.is_empty()));
    let is_valid = has_certificate && verification.iter().all(|byte| *byte == 0);
    Some((bits & 1 == 1).then_some(Tls(
        texts,
        certificate.filter(|_| has_certificate),
        [has_certificate, is_valid, bits & 6 == 4],
    )))
}

/// Type, position of the value, value.
fn split(bytes: &[u8]) -> Option<Vec<(u8, usize, &[u8])>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = usize::from(*bytes.get(at + 1)?) * 256 + usize::from(*bytes.get(at + 2)?);
        found.push((bytes[at], at + 3, bytes.get(at + 3..at + 3 + length)?));
        at += 3 + length;
    }
    Some(found)
}

/// The vector of this type, if there is one; `None` if there are several.
#[allow(clippy::type_complexity)]
fn single<'a>(found: &[(u8, usize, &'a [u8])], kind: u8) -> Option<Option<(usize, &'a [u8])>> {
    let mut own = found.iter().filter(|(own, ..)| *own == kind);
    let first = own.next().map(|(_, place, value)| (*place, *value));
    own.next().is_none().then_some(first)
}

/// CRC32C, bit by bit.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = 0xffff_ffffu32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let half = sum / 2;
            sum = if sum % 2 == 1 { half ^ 0x82f6_3b78 } else { half };
        }
    }
    sum ^ 0xffff_ffff
}
