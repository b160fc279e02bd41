//! Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 40000 80` and a line end.

use super::{ProxyHeader, PROXY_LINE_BYTES};
use crate::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const START: &[u8] = b"PROXY ";
const END: &[u8] = b"\r\n";

pub(super) fn parse(input: &[u8]) -> Result<Option<ProxyHeader<'_>>, Error> {
    let start = START.len().min(input.len());
    if input[..start] != START[..start] {
        return Err(Error::InvalidProxyLine);
    }
    let input = &input[..input.len().min(PROXY_LINE_BYTES)];
    let Some(end) = memchr::memchr(b'\n', input) else {
        return match input.len() {
            PROXY_LINE_BYTES => Err(Error::InvalidProxyLine),
            _ => Ok(None),
        };
    };
    let len = end + 1;
    let line = input[..len].strip_prefix(START).and_then(|line| line.strip_suffix(END));
    let client = line.and_then(client).ok_or(Error::InvalidProxyLine)?;
    Ok(Some(ProxyHeader {
        client,
        ..ProxyHeader::silent(len)
    }))
}

/// The client in the text between `PROXY` and the line end; `None` if it is malformed.
fn client(line: &[u8]) -> Option<Option<SocketAddr>> {
    if line.split(|byte| *byte == b' ').next() == Some(b"UNKNOWN") {
        return Some(None); // the rest must be ignored
    }
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let address: fn(&str) -> Option<IpAddr> = match words.next()? {
        "TCP4" => |word| word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => |word| word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => return None,
    };
    let (source, _) = (address(words.next()?)?, address(words.next()?)?);
    let (port, _) = (self::port(words.next()?)?, self::port(words.next()?)?);
    words.next().is_none().then_some(Some((source, port).into()))
}

/// A decimal number without leading zeros.
fn port(word: &str) -> Option<u16> {
    let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|_| is_decimal)
}
