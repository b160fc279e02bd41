//! Header fields in which proxies describe the path of a request: its client, and the scheme, host and port that the
//! client used. Only for requests of trusted peers; see [`fairlead_wire::forwarded`] for the limits of this trust.

use crate::config::{Config, ForwardedFields, RemoteAddress, Scheme};
use crate::http::request::Request;
use fairlead_wire::forwarded::{member_of_hop, members_from_last, read_elements, trace, Element, Node, Trace};
use fairlead_wire::{host_and_port, Error};
use std::net::SocketAddr;

/// See the head of this file. `None`: no field says so.
#[derive(Debug, Default)]
pub(super) struct Forwarded {
    /// Client; its port is 0 if it is unknown.
    pub(super) client: Option<SocketAddr>,
    pub(super) scheme: Option<Scheme>,
    /// Authority that the client has asked for: a host, and perhaps a port.
    pub(super) host: Option<Box<[u8]>>,
    pub(super) port: Option<u16>,
}

impl Forwarded {
    /// Reads the fields of a request from a trusted peer.
    ///
    /// # Errors
    /// If a field is malformed, or two of them contradict each other: then the client has sent one of them, and it is
    /// unknown which one. Ignoring both is no solution, because the request would seem to come from the proxy itself.
    pub(super) fn read(request: &Request, config: &Config) -> Result<Forwarded, Error> {
        let lines = Lines::of(request, config);
        let mut elements = Vec::new();
        for line in &lines.forwarded {
            read_elements(line, &mut elements)?;
        }
        let (listed, told) = (trace_list(&lines.addresses, config), trace_elements(&elements, config));
        let nearest = listed.or(told).map_or(0, |trace| trace.hops);
        let element = elements.iter().rev().nth(told.map_or(0, |trace| trace.hops));
        let told_client = told.filter(|_| !lines.has_own_field).map(|trace| trace.client);
        let client = agreed([listed.map(|trace| trace.client), told_client], |a, b| {
            a.address() == b.address()
        })?;
        let scheme = agreed(
            [
                lines.scheme(nearest),
                element.and_then(|element| scheme(element.scheme.as_ref()?)),
            ],
            Scheme::eq,
        )?;
        let hosts = [
            member_of_hop(&lines.hosts, nearest),
            element.and_then(|element| element.host.as_deref()),
        ];
        let host = agreed(
            hosts.map(|host| host.filter(|host| host_and_port(host).is_some())),
            is_same_host,
        )?;
        Ok(Forwarded {
            client: client.and_then(|client| match client {
                Node::Address(address) => Some(address),
                Node::Unix | Node::Unknown => None,
            }),
            scheme,
            host: host.map(Into::into),
            port: member_of_hop(&lines.ports, nearest).and_then(port),
        })
    }
}

/// First address of a field value, whatever its source; a port may follow it.
pub(super) fn first_address(value: &[u8]) -> Option<SocketAddr> {
    let word = value.split(|byte| matches!(byte, b',' | b' ' | b'\t')).next()?;
    let address = Node::parse(word).address()?;
    Some((address, 0).into())
}

/// Values of the fields, in the order of their lines.
#[derive(Default)]
struct Lines<'a> {
    /// Clients: X-Forwarded-For, or the field that the settings name.
    addresses: Vec<&'a [u8]>,
    has_own_field: bool,
    protocols: Vec<&'a [u8]>,
    schemes: Vec<&'a [u8]>,
    /// `on` or `off`.
    switches: Vec<&'a [u8]>,
    hosts: Vec<&'a [u8]>,
    ports: Vec<&'a [u8]>,
    forwarded: Vec<&'a [u8]>,
}

impl<'a> Lines<'a> {
    fn of(request: &'a Request, config: &Config) -> Lines<'a> {
        let own = match &config.remote_address {
            RemoteAddress::Field(name) => Some(&**name),
            RemoteAddress::Socket | RemoteAddress::Fixed(_) => None,
        };
        let mut lines = Lines {
            has_own_field: own.is_some(),
            ..Lines::default()
        };
        let has_list = config.forwarded_fields != ForwardedFields::Forwarded;
        let has_forwarded = config.forwarded_fields != ForwardedFields::XForwarded;
        for (name, value) in request.fields() {
            if own.is_some_and(|own| own.eq_ignore_ascii_case(name)) {
                lines.addresses.push(value);
            }
            if let Some(lines) = lines.named(name, has_list, has_forwarded) {
                lines.push(value);
            }
        }
        lines
    }

    /// Returns the list for the values of a field, if the field counts.
    fn named(&mut self, name: &[u8], has_list: bool, has_forwarded: bool) -> Option<&mut Vec<&'a [u8]>> {
        let is = |own: &[u8]| name.eq_ignore_ascii_case(own);
        match name.len() {
            9 if has_forwarded && is(b"forwarded") => Some(&mut self.forwarded),
            _ if !has_list => None,
            15 if !self.has_own_field && is(b"x-forwarded-for") => Some(&mut self.addresses),
            15 if is(b"x-forwarded-ssl") => Some(&mut self.switches),
            16 if is(b"x-forwarded-host") => Some(&mut self.hosts),
            16 if is(b"x-forwarded-port") => Some(&mut self.ports),
            17 if is(b"x-forwarded-proto") => Some(&mut self.protocols),
            18 if is(b"x-forwarded-scheme") => Some(&mut self.schemes),
            _ => None,
        }
    }

    /// Scheme from three fields. The first present field counts, because many proxies are configured to set another
    /// field to a constant.
    fn scheme(&self, hops: usize) -> Option<Scheme> {
        let of = |lines: &[&[u8]]| member_of_hop(lines, hops).and_then(scheme);
        let switched = || match member_of_hop(&self.switches, hops)? {
            value if value.eq_ignore_ascii_case(b"on") => Some(Scheme::Https),
            value if value.eq_ignore_ascii_case(b"off") => Some(Scheme::Http),
            _ => None,
        };
        of(&self.protocols).or_else(|| of(&self.schemes)).or_else(switched)
    }
}

fn trace_list(lines: &[&[u8]], config: &Config) -> Option<Trace> {
    let nodes = members_from_last(lines).map(Node::parse);
    trace(nodes, |node| config.trusted_proxies.include_node(node))
}

/// `None` if no element names a client.
fn trace_elements(elements: &[Element<'_>], config: &Config) -> Option<Trace> {
    let nodes = elements.iter().rev().map(|element| element.client);
    nodes.clone().any(|node| node.is_some()).then_some(())?;
    let nodes = nodes.map(|node| node.unwrap_or(Node::Unknown));
    trace(nodes, |node| config.trusted_proxies.include_node(node))
}

/// Returns the common value, or the only one.
fn agreed<T: Copy>(said: [Option<T>; 2], is_same: impl Fn(&T, &T) -> bool) -> Result<Option<T>, Error> {
    match said {
        [Some(one), Some(other)] if !is_same(&one, &other) => Err(Error::ContradictoryForwarded),
        [one, other] => Ok(one.or(other)),
    }
}

fn is_same_host(one: &&[u8], other: &&[u8]) -> bool {
    let name = |text| host_and_port(text).map(|(name, _)| name);
    match (name(one), name(other)) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        _ => false,
    }
}

/// A proxy may also send the scheme of a WebSocket.
fn scheme(text: &[u8]) -> Option<Scheme> {
    match text.to_ascii_lowercase().as_slice() {
        b"https" | b"wss" => Some(Scheme::Https),
        b"http" | b"ws" => Some(Scheme::Http),
        _ => None,
    }
}

fn port(text: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(text).ok()?;
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_decimal && *port > 0)
}
