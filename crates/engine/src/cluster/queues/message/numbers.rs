//! Meaning of the numbers at the beginning of a message.

use crate::clock::{Millis, Nanos};
use fairlead_wire::ProxyVersions;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Place of the body, place of long input and body, and stage of the connection.
pub(super) mod kind {
    pub(in crate::cluster::queues::message) const MEMORY: u64 = 1;
    pub(in crate::cluster::queues::message) const FILE: u64 = 2;
    pub(in crate::cluster::queues::message) const BODY: u64 = 3;
    pub(in crate::cluster::queues::message) const LONG: u64 = 4;
    /// No byte of a request has arrived.
    pub(in crate::cluster::queues::message) const IDLE: u64 = 16;
    /// The head is incomplete, or not known to be complete.
    pub(in crate::cluster::queues::message) const HEAD: u64 = 32;
    /// The connection stays in its worker: see `transport/relayed.rs`.
    pub(in crate::cluster::queues::message) const RELAYED: u64 = 128;
    /// The input begins with a PROXY header, or one is still expected: version 1, version 2, or either.
    pub(in crate::cluster::queues::message) const PROXY_V1: u64 = 8;
    pub(in crate::cluster::queues::message) const PROXY_V2: u64 = 64;
    /// The response ends the connection. Above the origin.
    pub(in crate::cluster::queues::message) const LAST: u64 = 1 << 40;
    /// One more descriptor is for the state of a TLS connection. Above the origin.
    pub(in crate::cluster::queues::message) const TLS: u64 = 1 << 42;
    /// The head is from an HTTP/2 request. Above the origin.
    pub(in crate::cluster::queues::message) const HTTP2: u64 = 1 << 41;
    /// A response is being sent. Above the origin.
    pub(in crate::cluster::queues::message) const RESPONSE: u64 = 1 << 43;
    /// One more descriptor is for the file of this response. Above the origin.
    pub(in crate::cluster::queues::message) const RESPONSE_FILE: u64 = 1 << 44;
}

/// Stage of a connection's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The request is complete.
    Request {
        /// Time of its completion.
        arrived: Nanos,
    },
    /// No byte of it has arrived.
    Idle {
        /// Time at which the connection became idle.
        since: Millis,
    },
    /// Some bytes of its head have arrived.
    Head {
        /// Arrival of the first byte.
        since: Millis,
    },
    /// The response to the previous one is being sent.
    Response {
        /// Time up to which the client has kept its minimum rate.
        paid: Nanos,
    },
}

impl Stage {
    pub(super) fn kind(self) -> u64 {
        match self {
            Stage::Request { .. } => 0,
            Stage::Idle { .. } => kind::IDLE,
            Stage::Head { .. } => kind::HEAD,
            Stage::Response { .. } => kind::RESPONSE,
        }
    }

    pub(super) fn moment(self) -> u64 {
        match self {
            Stage::Request { arrived: moment } | Stage::Response { paid: moment } => moment.to_number(),
            Stage::Idle { since } | Stage::Head { since } => since.to_number(),
        }
    }

    pub(super) fn of(kind: u64, moment: u64) -> Stage {
        let since = Millis::from_number(moment);
        match kind {
            _ if kind & kind::IDLE != 0 => Stage::Idle { since },
            _ if kind & kind::HEAD != 0 => Stage::Head { since },
            _ if kind & kind::RESPONSE != 0 => Stage::Response {
                paid: Nanos::from_number(moment),
            },
            _ => Stage::Request {
                arrived: Nanos::from_number(moment),
            },
        }
    }
}

pub(super) fn versions_kind(versions: Option<ProxyVersions>) -> u64 {
    match versions {
        None => 0,
        Some(ProxyVersions::V1) => kind::PROXY_V1,
        Some(ProxyVersions::V2) => kind::PROXY_V2,
        Some(ProxyVersions::Any) => kind::PROXY_V1 | kind::PROXY_V2,
    }
}

pub(super) fn versions(kind: u64) -> Option<ProxyVersions> {
    match (kind & kind::PROXY_V1 != 0, kind & kind::PROXY_V2 != 0) {
        (false, false) => None,
        (true, false) => Some(ProxyVersions::V1),
        (false, true) => Some(ProxyVersions::V2),
        (true, true) => Some(ProxyVersions::Any),
    }
}

/// First the scope, port and family (0: a Unix socket), then the address; IPv4 as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
pub(crate) fn peer_numbers(peer: Option<SocketAddr>) -> [u64; 3] {
    let Some(peer) = peer else { return [0; 3] };
    let (family, scope, address) = match peer {
        SocketAddr::V4(peer) => (4, 0, peer.ip().to_ipv6_mapped()),
        SocketAddr::V6(peer) => (6, u64::from(peer.scope_id()), *peer.ip()),
    };
    let bits = address.to_bits();
    [
        scope << 32 | u64::from(peer.port()) << 8 | family,
        (bits >> 64) as u64,
        bits as u64,
    ]
}

pub(crate) fn peer([numbers, high, low]: [u64; 3]) -> Option<SocketAddr> {
    let address = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    let (scope, port) = ((numbers >> 32) as u32, (numbers >> 8) as u16);
    match (numbers & 0xff, address.to_ipv4_mapped()) {
        (4, Some(address)) => Some((IpAddr::V4(address), port).into()),
        (6, _) => Some(SocketAddrV6::new(address, port, 0, scope).into()),
        _ => None,
    }
}
