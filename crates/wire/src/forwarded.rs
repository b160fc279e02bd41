//! The route of a request as proxies report it: the field `Forwarded` (RFC 7239), and the lists of older fields such as
//! `X-Forwarded-For`. Each proxy appends the address of its client, so the last member describes the nearest client.
//!
//! Any client can send these fields, too. [`trace`] therefore begins at the last member, and continues only while a
//! trusted node has added the next member.

use crate::fields::{is_valid_field_name, trim};
use crate::parameters::{pieces, unescaped};
use crate::Error;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// Most members that are read: no request passes through so many proxies.
pub const MAX_HOPS: usize = 32;

/// The client of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// An address; the port is 0 if the proxy does not report it.
    Address(SocketAddr),
    /// A client of a Unix socket (nginx writes `unix:`).
    Unix,
    /// The proxy does not know the client, hides it (RFC 7239 §6.2, §6.3), or sends a text that is no address.
    Unknown,
}

impl Node {
    /// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`; a port may be obfuscated.
    pub fn parse(text: &[u8]) -> Node {
        let Ok(text) = std::str::from_utf8(text) else {
            return Node::Unknown;
        };
        if text == "unix:" {
            return Node::Unix;
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Node::Address((address, 0).into());
        }
        let (address, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, port)) => (address.parse().ok().map(IpAddr::V6), port.strip_prefix(':')),
            None => match text.split_once(':') {
                Some((address, port)) => (address.parse().ok().map(IpAddr::V4), Some(port)),
                None => (None, None),
            },
        };
        let has_rest = text.ends_with(']') || port.is_some_and(is_port);
        match address.filter(|_| has_rest) {
            Some(address) => Node::Address((address, port.and_then(|port| port.parse().ok()).unwrap_or(0)).into()),
            None => Node::Unknown,
        }
    }

    /// The address, without the mapping of IPv4 into IPv6.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Node::Address(address) => Some(address.ip().to_canonical()),
            Node::Unix | Node::Unknown => None,
        }
    }
}

/// Returns true for a port, or an obfuscated name of one (RFC 7239 §6.1).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(is_obfuscated_byte),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

fn is_obfuscated_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The result of [`trace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Number of proxies between the nearest proxy and the proxy that has reported the client: the index of the member,
    /// from the end.
    pub hops: usize,
    /// The client: the first untrusted node, or else the last node with a known address.
    pub client: Node,
}

/// Follows the nodes that proxies have appended, the nearest first; a trusted proxy has appended the first one. `None`
/// without nodes.
pub fn trace(nodes: impl Iterator<Item = Node>, is_trusted: impl Fn(Node) -> bool) -> Option<Trace> {
    let mut trace = None;
    for (hops, node) in nodes.take(MAX_HOPS).enumerate() {
        let nearer = trace.map_or(Node::Unknown, |trace: Trace| trace.client);
        let client = if node.address().is_some() { node } else { nearer };
        trace = Some(Trace { hops, client });
        if node == Node::Unknown || !is_trusted(node) {
            break;
        }
    }
    trace
}

/// The members of a list in one or more field lines, the last one first. Empty members are left out.
pub fn members_from_last<'a>(lines: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let members = lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
    members.map(trim).filter(|member| !member.is_empty())
}

/// The member of the proxy that lies `hops` proxies away. The proxies in between may not have appended anything, so the
/// list may be shorter: then this is its first member.
pub fn member_of_hop<'a>(lines: &'a [&'a [u8]], hops: usize) -> Option<&'a [u8]> {
    members_from_last(lines).take(hops + 1).last()
}

/// The values of one proxy in `Forwarded`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element<'a> {
    /// `for`
    pub client: Option<Node>,
    /// `proto`
    pub scheme: Option<Cow<'a, [u8]>>,
    /// `host`
    pub host: Option<Cow<'a, [u8]>>,
}

/// Adds the elements of one field line to `elements`, which keeps the last [`MAX_HOPS`].
///
/// # Errors
/// [`Error::InvalidForwarded`]: a quotation mark that a client leaves open would hide the text that proxies append, so
/// a malformed field is ignored as a whole.
pub fn read_elements<'a>(line: &'a [u8], elements: &mut Vec<Element<'a>>) -> Result<(), Error> {
    for text in pieces(line, b',').filter(|text| !text.is_empty()) {
        let element = element(text).ok_or(Error::InvalidForwarded)?;
        if elements.len() == MAX_HOPS {
            elements.remove(0);
        }
        elements.push(element);
    }
    Ok(())
}

fn element(text: &[u8]) -> Option<Element<'_>> {
    let mut element = Element::default();
    for pair in pieces(text, b';').filter(|pair| !pair.is_empty()) {
        let (name, value) = self::pair(pair)?;
        let is_second = match name.to_ascii_lowercase().as_slice() {
            b"for" => element.client.replace(Node::parse(&value)).is_some(),
            b"proto" => element.scheme.replace(value).is_some(),
            b"host" => element.host.replace(value).is_some(),
            _ => false,
        };
        if is_second {
            return None;
        }
    }
    Some(element)
}

/// `name=value`. An IPv6 address should be in quotation marks, but often is not: a value without quotation marks may
/// have any byte that is no separator.
fn pair(text: &[u8]) -> Option<(&[u8], Cow<'_, [u8]>)> {
    let equals = memchr::memchr(b'=', text)?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let value = match value {
        [b'"', quoted @ .., b'"'] if !has_open_end(quoted) => Cow::Owned(unescaped(quoted)?),
        plain if plain.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"') => Cow::Borrowed(plain),
        _ => return None,
    };
    is_valid_field_name(name).then_some((name, value))
}

/// Returns true if a quoted string contains an unescaped quotation mark.
fn has_open_end(quoted: &[u8]) -> bool {
    let mut is_escaped = false;
    quoted.iter().any(|byte| {
        let is_mark = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_mark
    })
}
