//! Settings for the other end of a connection: the source of a client's address, and the peers with trusted header
//! fields.

use fairlead_wire::forwarded::Node;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Source of a client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RemoteAddress {
    /// The peer of the socket, or the client that trusted proxies report.
    #[default]
    Socket,
    /// This address for every client.
    Fixed(IpAddr),
    /// A header field of each request, if present: its first address; if there are trusted proxies, the last address
    /// that is not one of theirs.
    Field(Box<[u8]>),
}

impl FromStr for RemoteAddress {
    type Err = ();

    /// Parses `socket`, an address, or `header:NAME`.
    fn from_str(text: &str) -> Result<RemoteAddress, ()> {
        match text.split_once(':') {
            _ if text == "socket" => Ok(RemoteAddress::Socket),
            Some(("header", name)) => Ok(RemoteAddress::Field(name.as_bytes().into())),
            _ => text.parse().map(RemoteAddress::Fixed).map_err(|_| ()),
        }
    }
}

/// Peers that may name their clients, by the PROXY protocol or by header fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Addresses as IPv6, and the number of their first bits that count.
    networks: Vec<(u128, u32)>,
    /// True if the peers of Unix sockets are included.
    has_unix: bool,
}

impl TrustedProxies {
    /// Parses networks such as `10.0.0.0/8`, addresses, and `unix` for the peers of Unix sockets.
    ///
    /// # Errors
    /// The first text that is none of these.
    pub fn parse(texts: Vec<String>) -> Result<TrustedProxies, String> {
        let mut proxies = TrustedProxies::default();
        for text in texts {
            if text == "unix" {
                proxies.has_unix = true;
            } else {
                proxies.networks.push(network(&text).ok_or(text)?);
            }
        }
        Ok(proxies)
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.has_unix
    }

    /// True if a peer is included: one comparison if there are none.
    pub(crate) fn include(&self, peer: Option<SocketAddr>) -> bool {
        match peer {
            Some(peer) => self.include_address(peer.ip()),
            None => self.has_unix,
        }
    }

    /// True if a node in the fields of a proxy is included.
    pub(crate) fn include_node(&self, node: Node) -> bool {
        match node {
            Node::Address(address) => self.include_address(address.ip()),
            Node::Unix => self.has_unix,
            Node::Unknown => false,
        }
    }

    fn include_address(&self, address: IpAddr) -> bool {
        let address = as_ipv6(address);
        let mut networks = self.networks.iter();
        networks.any(|(network, bits)| (address ^ network).checked_shr(u128::BITS - bits).unwrap_or(0) == 0)
    }
}

fn network(text: &str) -> Option<(u128, u32)> {
    let (address, bits) = text
        .split_once('/')
        .map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let (most, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((as_ipv6(address), bits + before))
}

/// IPv4 as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), as dual-stack sockets represent it.
fn as_ipv6(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits()),
    }
    .to_bits()
}

/// Header fields of trusted proxies that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// All, as long as they do not contradict each other.
    #[default]
    All,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// `X-Forwarded-For` and similar fields.
    XForwarded,
}

/// Clients that get the field Server-Timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTiming {
    /// None.
    #[default]
    Never,
    /// All.
    Always,
    /// Those with an address of the trusted proxies.
    Trusted,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(texts: &[&str]) -> Result<TrustedProxies, String> {
        TrustedProxies::parse(texts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_peer_is_trusted_if_it_is_in_a_network() {
        let all = proxies(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "::1"]).expect("networks");
        for (peer, is_trusted) in [
            ("10.255.0.1:1", true),
            ("11.0.0.1:1", false),
            ("[::ffff:10.0.0.1]:1", true),
            ("192.0.2.7:1", true),
            ("192.0.2.6:1", false),
            ("[2001:db8:7fff::1]:1", true),
            ("[2001:db8:8000::1]:1", false),
            ("[::1]:1", true),
            ("[::2]:1", false),
            ("127.0.0.1:1", false),
        ] {
            assert_eq!(
                all.include(Some(peer.parse().expect("an address"))),
                is_trusted,
                "{peer}"
            );
        }
        assert!(!all.include(None));
    }

    #[test]
    fn all_or_none_or_unix_sockets_alone_can_be_trusted() {
        let peer = Some("[2001:db8::1]:1".parse().expect("an address"));
        let unix = proxies(&["unix"]).expect("networks");
        assert!(unix.include(None) && !unix.include(peer));
        let everyone = proxies(&["::/0"]).expect("networks");
        assert!(everyone.include(peer) && !everyone.include(None));
        assert!(!TrustedProxies::default().include(peer) && !TrustedProxies::default().include(None));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "host",
        ] {
            assert_eq!(proxies(&["::1", text]), Err(text.to_string()));
        }
    }

    #[test]
    fn a_remote_address_is_read_from_its_words() {
        for (text, expected) in [
            ("socket", Ok(RemoteAddress::Socket)),
            ("127.0.0.1", Ok(RemoteAddress::Fixed([127, 0, 0, 1].into()))),
            ("::1", Ok(RemoteAddress::Fixed(Ipv6Addr::LOCALHOST.into()))),
            ("header:X-Real-IP", Ok(RemoteAddress::Field(b"X-Real-IP"[..].into()))),
            ("proxy_protocol:v1", Err(())),
            ("nonsense", Err(())),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
    }
}
