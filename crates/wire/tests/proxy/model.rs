//! A second reading of the line, naive and slow, written from the specification.

use fairlead_wire::{Error, ProxyLine};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) fn read(bytes: &[u8]) -> Result<Option<ProxyLine>, Error> {
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
    Ok(Some(ProxyLine { len, client }))
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

/// As it is printed, and in no other way.
fn number(word: &str, most: u16) -> Option<u16> {
    let number: u16 = word.parse().ok()?;
    (number <= most && number.to_string() == word).then_some(number)
}
