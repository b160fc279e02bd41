//! Flow of a request, if turns go by client. A flow is known only by a number, a keyed hash of its identity, so that
//! clients cannot provoke collisions, and no key of a client is stored.

use std::convert::Infallible;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::net::IpAddr;
use std::str::FromStr;

/// Key of fair scheduling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FairBy {
    /// Connections: the ready queue is first come, first served, and each connection has one request in it at a time.
    #[default]
    Connection,
    /// Addresses; for IPv6, their first 64 bits.
    Address,
    /// Values of a header field; addresses for requests without the field.
    Field(Box<[u8]>),
}

impl FairBy {
    /// True if turns go by flow, and not by arrival.
    pub(crate) fn has_flows(&self) -> bool {
        *self != FairBy::Connection
    }
}

impl FromStr for FairBy {
    type Err = Infallible;

    /// Parses `connection`, `ip`, or the name of a field.
    fn from_str(text: &str) -> Result<FairBy, Infallible> {
        Ok(match text {
            "connection" => FairBy::Connection,
            "ip" => FairBy::Address,
            name => FairBy::Field(name.as_bytes().into()),
        })
    }
}

/// A flow: requests with the same key, which share turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Flow(pub(crate) u64);

/// Identity of a flow.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Mark<'a> {
    Connection(u64),
    /// See [`Mark::of_address`].
    Address(u64),
    Field(&'a [u8]),
}

impl Mark<'_> {
    /// See [`network`].
    pub(crate) fn of_address(address: IpAddr) -> Mark<'static> {
        Mark::Address(network(address))
    }
}

/// Network of one subscriber: the first 64 bits of an IPv6 address (RFC 6177), all of an IPv4 address.
pub(crate) fn network(address: IpAddr) -> u64 {
    match address.to_canonical() {
        // No network has this prefix: 0000::/8 is reserved (RFC 4291 §4).
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

/// Key of the hash. Workers that share a ledger share it, too.
pub(crate) type Secret = [u64; 2];

/// Makes a new key from the randomness that the standard library gets from the system.
pub(crate) fn secret() -> Secret {
    [0u8, 1].map(|half| RandomState::new().hash_one(half))
}

impl Flow {
    pub(crate) fn new(mark: Mark<'_>, secret: Secret) -> Flow {
        let mut hasher = DefaultHasher::new();
        (secret, mark).hash(&mut hasher);
        Flow(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(address: &str, secret: Secret) -> Flow {
        Flow::new(Mark::of_address(address.parse().expect("an address")), secret)
    }

    #[test]
    fn an_address_of_ipv6_counts_by_its_first_half_and_one_of_ipv4_by_all_of_it() {
        let same = |one, other| flow(one, [1, 2]) == flow(other, [1, 2]);
        assert!(same("2001:db8:0:7::1", "2001:db8:0:7:ffff:ffff:ffff:ffff"));
        assert!(!same("2001:db8:0:7::1", "2001:db8:0:8::1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
        assert!(!same("::1", "0.0.0.1"), "the loopback address is no IPv4 address");
    }

    #[test]
    fn marks_of_different_kinds_and_hashes_with_different_keys_differ() {
        let number = u64::from_be_bytes(*b"12345678");
        let marks = [
            Mark::Connection(number),
            Mark::Address(number),
            Mark::Field(b"12345678"),
        ];
        let flows = marks.map(|mark| Flow::new(mark, [1, 2]));
        assert!(flows[0] != flows[1] && flows[1] != flows[2] && flows[0] != flows[2]);
        assert_ne!(Flow::new(marks[2], [1, 3]), flows[2]);
        assert_eq!(Flow::new(Mark::Field(b"12345678"), [1, 2]), flows[2]);
        assert_ne!(secret(), secret());
    }
}
