//! Values of fields.

use crate::pubsub::{Delivery, Match};
use crate::realtime::client::Protocol;
use crate::realtime::migration::format::Unreadable;
use fairlead_wire::websocket::Deflate;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// Bodies of responses do not migrate.
pub(super) fn protocol_number(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::WebSocket => 1,
        Protocol::EventStream { chunked } => 2 + u64::from(chunked),
        Protocol::Stream { chunked } => 4 + u64::from(chunked),
    }
}

pub(super) fn protocol_of(number: u64) -> Option<Protocol> {
    match number {
        1 => Some(Protocol::WebSocket),
        2 | 3 => Some(Protocol::EventStream { chunked: number == 3 }),
        _ => None,
    }
}

pub(super) fn kind_number(kind: Match) -> u64 {
    match kind {
        Match::Exact => 0,
        Match::Glob => 1,
        Match::Subject => 2,
    }
}

pub(super) fn kind_of(number: u64) -> Option<Match> {
    match number {
        0 => Some(Match::Exact),
        1 => Some(Match::Glob),
        2 => Some(Match::Subject),
        _ => None,
    }
}

pub(super) fn delivery_numbers(delivery: Delivery) -> (u64, u64) {
    match delivery {
        Delivery::Text => (0, 0),
        Delivery::Binary => (1, 0),
        Delivery::Event(id) => (2, id),
    }
}

pub(super) fn delivery_of(number: u64, id: u64) -> Option<Delivery> {
    match number {
        0 => Some(Delivery::Text),
        1 => Some(Delivery::Binary),
        2 => Some(Delivery::Event(id)),
        _ => None,
    }
}

pub(super) fn deflate_bytes(deflate: Deflate) -> [u8; 4] {
    [
        u8::from(deflate.server_no_context),
        u8::from(deflate.client_no_context),
        deflate.server_bits,
        deflate.client_bits,
    ]
}

pub(super) fn deflate_of(bytes: &[u8]) -> Result<Deflate, Unreadable> {
    match bytes {
        [server @ 0..=1, client @ 0..=1, server_bits @ 9..=15, client_bits @ 8..=15] => Ok(Deflate {
            server_no_context: *server == 1,
            client_no_context: *client == 1,
            server_bits: *server_bits,
            client_bits: *client_bits,
        }),
        _ => Err(Unreadable::Invalid),
    }
}

/// The address (4 or 16 bytes), the port and, for IPv6, the scope.
pub(super) fn peer_bytes(peer: SocketAddr) -> Vec<u8> {
    let mut bytes = match peer.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes.extend_from_slice(&peer.port().to_le_bytes());
    if let SocketAddr::V6(peer) = peer {
        bytes.extend_from_slice(&peer.scope_id().to_le_bytes());
    }
    bytes
}

pub(super) fn peer_of(bytes: &[u8]) -> Result<SocketAddr, Unreadable> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    if let Ok(bytes) = <&[u8; 6]>::try_from(bytes) {
        let [a, b, c, d, port @ ..] = bytes;
        return Ok(([*a, *b, *c, *d], number(port) as u16).into());
    }
    let (address, rest) = bytes.split_first_chunk::<16>().ok_or(Unreadable::Invalid)?;
    match rest.split_at_checked(2) {
        Some((port, scope)) if scope.len() == 4 => {
            Ok(SocketAddrV6::new((*address).into(), number(port) as u16, 0, number(scope)).into())
        }
        _ => Err(Unreadable::Invalid),
    }
}
