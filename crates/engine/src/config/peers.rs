//! Settings about who is at the other end of a connection: where the address of a client comes from, and whose header
//! fields count.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Where the address of a client comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RemoteAddress {
    /// The peer of the socket.
    #[default]
    Socket,
    /// Every client has this one.
    Fixed(IpAddr),
    /// A header field of each request, if there is one: its first address.
    Field(Box<[u8]>),
    /// The line with which each connection begins, version 1 of the PROXY protocol.
    ProxyLine,
}

impl FromStr for RemoteAddress {
    type Err = ();

    /// `socket`, an address, `header:NAME` or `proxy_protocol:v1`.
    fn from_str(text: &str) -> Result<RemoteAddress, ()> {
        match text.split_once(':') {
            _ if text == "socket" => Ok(RemoteAddress::Socket),
            Some(("header", name)) => Ok(RemoteAddress::Field(name.as_bytes().into())),
            Some(("proxy_protocol", "v1")) => Ok(RemoteAddress::ProxyLine),
            _ => text.parse().map(RemoteAddress::Fixed).map_err(|_| ()),
        }
    }
}

impl RemoteAddress {
    /// The address of a client, given the peer of its socket.
    pub(crate) fn of_peer(&self, peer: Option<SocketAddr>) -> Option<SocketAddr> {
        match self {
            RemoteAddress::Fixed(address) => Some((*address, peer.map_or(0, |peer| peer.port())).into()),
            _ => peer,
        }
    }
}

/// The first address of a field value; a port may follow it.
pub(crate) fn first_address(value: &[u8]) -> Option<IpAddr> {
    let word = value.split(|byte| matches!(byte, b',' | b' ' | b'\t')).next()?;
    let word = std::str::from_utf8(word).ok()?;
    let with_port = || word.parse::<SocketAddr>().ok().map(|address| address.ip());
    word.parse().ok().or_else(with_port)
}

/// Peers whose header fields tell how the client reached them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Addresses as IPv6, and how many of their first bits count.
    networks: Vec<(u128, u32)>,
    /// Whoever connects to a Unix socket.
    has_unix: bool,
}

impl TrustedProxies {
    /// From networks such as `10.0.0.0/8`, addresses, and `unix` for the peers of Unix sockets.
    ///
    /// # Errors
    /// The text that is none of these.
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

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.has_unix
    }

    /// Whether a peer is among them: one comparison if there are none.
    pub(crate) fn include(&self, peer: Option<SocketAddr>) -> bool {
        let Some(peer) = peer else { return self.has_unix };
        let address = as_ipv6(peer.ip());
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

/// IPv4 as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), as sockets for both have it.
fn as_ipv6(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits()),
    }
    .to_bits()
}

/// How a client reached the server, or the proxy in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
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
    fn a_field_begins_with_an_address() {
        for (value, expected) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1, 10.0.0.1", Some("192.0.2.1")),
            ("192.0.2.1:80 x", Some("192.0.2.1")),
            ("[2001:db8::1]:80", Some("2001:db8::1")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("", None),
            (" 192.0.2.1", None),
            ("unknown", None),
            ("192.0.2.1.example", None),
        ] {
            let expected = expected.map(|text| text.parse::<IpAddr>().expect("an address"));
            assert_eq!(first_address(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn a_remote_address_is_read_from_its_words() {
        for (text, expected) in [
            ("socket", Ok(RemoteAddress::Socket)),
            ("127.0.0.1", Ok(RemoteAddress::Fixed([127, 0, 0, 1].into()))),
            ("::1", Ok(RemoteAddress::Fixed(Ipv6Addr::LOCALHOST.into()))),
            ("header:X-Real-IP", Ok(RemoteAddress::Field(b"X-Real-IP"[..].into()))),
            ("proxy_protocol:v1", Ok(RemoteAddress::ProxyLine)),
            ("proxy_protocol:v2", Err(())),
            ("nonsense", Err(())),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
    }
}
