//! Version 2: a unique signature, the command and the kind of client, a length, the addresses, and vectors with further
//! data (`tlv.rs`).

use super::tlv::Vectors;
use super::{ProxyHeader, PROXY_HEADER_BYTES};
use crate::Error;
use std::net::SocketAddr;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Up to and including the length.
const FIXED_BYTES: usize = 16;

/// The kinds of clients, by family and transport. A datagram means a client of QUIC. All others are invalid.
mod kind {
    pub(super) const UNSPEC: u8 = 0x00;
    pub(super) const TCP4: u8 = 0x11;
    pub(super) const UDP4: u8 = 0x12;
    pub(super) const TCP6: u8 = 0x21;
    pub(super) const UDP6: u8 = 0x22;
    pub(super) const UNIX_STREAM: u8 = 0x31;
    pub(super) const UNIX_DATAGRAM: u8 = 0x32;
}

/// The command of the proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    /// The proxy connects for itself: a health check.
    Local,
    /// The proxy connects for a client.
    Proxy,
}

pub(super) fn parse(input: &[u8]) -> Result<Option<ProxyHeader<'_>>, Error> {
    let known = SIGNATURE.len().min(input.len());
    if input[..known] != SIGNATURE[..known] {
        return Err(Error::InvalidProxyHeader);
    }
    // Each byte is checked when it arrives, so an invalid header fails at once.
    let command = match input.get(12) {
        None => return Ok(None),
        Some(0x20) => Command::Local,
        Some(0x21) => Command::Proxy,
        Some(_) => return Err(Error::InvalidProxyHeader),
    };
    let Some(kind) = input.get(13) else { return Ok(None) };
    let address_bytes = address_bytes(command, *kind).ok_or(Error::InvalidProxyHeader)?;
    let Some(length) = input.get(14..FIXED_BYTES) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let len = FIXED_BYTES + length;
    if len > PROXY_HEADER_BYTES {
        return Err(Error::ProxyHeaderTooLong);
    }
    if length < address_bytes {
        return Err(Error::InvalidProxyHeader);
    }
    let Some(header) = input.get(..len) else {
        return Ok(None);
    };
    if command == Command::Local || *kind == kind::UNSPEC {
        // The content must be skipped: the kind of its addresses, if it has any, is unknown.
        return Ok(Some(ProxyHeader::silent(len)));
    }
    let start = FIXED_BYTES + address_bytes;
    let client = client(*kind, &header[FIXED_BYTES..start]);
    let vectors = Vectors::read(header, start)?;
    Ok(Some(ProxyHeader {
        len,
        client,
        authority: vectors.authority,
        tls: vectors.tls,
    }))
}

/// Least number of bytes that the addresses take; `None` for an unknown kind.
fn address_bytes(command: Command, kind: u8) -> Option<usize> {
    if command == Command::Local {
        return Some(0);
    }
    match kind {
        kind::UNSPEC => Some(0),
        kind::TCP4 | kind::UDP4 => Some(2 * 4 + 2 * 2),
        kind::TCP6 | kind::UDP6 => Some(2 * 16 + 2 * 2),
        kind::UNIX_STREAM | kind::UNIX_DATAGRAM => Some(2 * 108),
        _ => None,
    }
}

/// The source among the addresses: both addresses, then both ports.
fn client(kind: u8, addresses: &[u8]) -> Option<SocketAddr> {
    match kind {
        kind::TCP4 | kind::UDP4 => {
            let address: [u8; 4] = *addresses.first_chunk()?;
            Some((address, port(addresses, 8)?).into())
        }
        kind::TCP6 | kind::UDP6 => {
            let address: [u8; 16] = *addresses.first_chunk()?;
            Some((address, port(addresses, 32)?).into())
        }
        _ => None,
    }
}

fn port(addresses: &[u8], at: usize) -> Option<u16> {
    addresses.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}
