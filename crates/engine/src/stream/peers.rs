//! Who is at the other end: the peer of the socket, whoever it speaks for by the PROXY protocol, and the client that a
//! request names.
//!
//! ```text
//!   client ── proxy ── proxy ── proxy ──── socket
//!     ▲                 ▲         ▲
//!     │                 │         └ the peer
//!     │                 └ the speaker: whom the header of the PROXY protocol names; whoever sends the requests
//!     └ fields of a request, as far as the speaker and those before it are trusted
//! ```

use super::forwarded::{first_address, Forwarded};
use crate::config::fair_by::network;
use crate::config::{Config, RemoteAddress, Scheme};
use crate::http::request::Request;
use crate::limits::holders::Owner;
use crate::tls::{Session, Verification};
use fairlead_wire::{Error, ProxyHeader, ProxyTls, ProxyVersions};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// See the head of this file. An address is `None` for a Unix socket.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    socket: Option<SocketAddr>,
    /// The client, if no request says otherwise.
    speaker: Option<SocketAddr>,
    /// Whether fields of the speaker count.
    is_trusted: bool,
    /// Whether the settings name the peer of the socket as a proxy.
    is_vouched: bool,
    /// Whether the speaker's address says nothing about the client: it is a proxy, or all clients have the same one.
    is_anybody: bool,
    /// The client of the last request, if its fields have named it: its response may still wait.
    last: Option<SocketAddr>,
    /// The header of the PROXY protocol, if it says anything that counts. It goes with the connection to other workers.
    proxy_header: Vec<u8>,
    /// What TLS has agreed on in front of the proxy.
    session: Option<Arc<Session>>,
    forwarded: Forwarded,
}

impl Peers {
    pub(super) fn new(socket: Option<SocketAddr>, config: &Config) -> Peers {
        let speaker = match config.remote_address {
            RemoteAddress::Fixed(address) => Some((address, socket.map_or(0, |peer| peer.port())).into()),
            RemoteAddress::Socket | RemoteAddress::Field(_) => socket,
        };
        Peers {
            socket,
            speaker,
            is_trusted: config.trusted_proxies.include(socket),
            is_vouched: config.trusted_proxies.include(socket),
            is_anybody: config.trusted_proxies.include(socket) || config.remote_address != RemoteAddress::Socket,
            ..Peers::default()
        }
    }

    /// The same for one of many requests, without what fields of another one have said.
    pub(crate) fn for_stream(&self) -> Peers {
        Peers {
            proxy_header: self.proxy_header.clone(),
            session: self.session.clone(),
            forwarded: Forwarded::default(),
            last: None,
            ..*self
        }
    }

    /// The client's address.
    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.forwarded.client.or(self.speaker)
    }

    /// Whose shares of the totals count together: those of the client's network. Many clients may be behind a proxy that does
    /// not name them, or a Unix socket; then the connection or session with that key counts for itself.
    pub(crate) fn owner(&self, key: u64) -> Owner {
        let speaker = self.speaker.filter(|_| !self.is_anybody);
        match self.forwarded.client.or(self.last).or(speaker) {
            Some(client) => Owner::Network(network(client.ip())),
            None => Owner::Key(key),
        }
    }

    /// The address of the peer of the socket.
    pub(crate) fn socket(&self) -> Option<SocketAddr> {
        self.socket
    }

    /// See [`Peers::introduce`].
    pub(crate) fn proxy_header(&self) -> &[u8] {
        &self.proxy_header
    }

    /// Whether the client is known to be behind a proxy, or may be.
    pub(crate) fn is_proxied(&self) -> bool {
        self.is_trusted || !self.proxy_header.is_empty()
    }

    /// What the proxy in front has agreed on with the client.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Whether the settings name the peer of the socket as a proxy.
    pub(super) fn is_vouched(&self) -> bool {
        self.is_vouched
    }

    /// The scheme that the client has used, if proxies tell it.
    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.forwarded.scheme
    }

    /// The authority that the client has asked for, if proxies tell it.
    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.forwarded.host.as_deref()
    }

    /// The port that the client has asked, if proxies tell it by itself.
    pub(crate) fn port(&self) -> Option<u16> {
        self.forwarded.port
    }

    /// Reads the header of the PROXY protocol at the start of `input`, which comes before everything else, also before a
    /// TLS handshake. Returns its length, or `None` if it is not complete.
    ///
    /// # Errors
    /// As soon as it cannot become one: the connection must be refused.
    pub(crate) fn introduce(
        &mut self,
        input: &[u8],
        versions: ProxyVersions,
        config: &Config,
    ) -> Result<Option<usize>, Error> {
        let Some(header) = ProxyHeader::parse(input, versions)? else {
            return Ok(None);
        };
        let len = header.len;
        let counts = config.trusted_proxies.is_empty() || config.trusted_proxies.include(self.socket);
        if counts && (header.client.is_some() || header.tls.is_some()) {
            self.proxy_header = input[..len].to_vec();
            if let Some(client) = header.client {
                // Whoever forwards bytes forwards the fields of its client, too.
                self.is_trusted = config.trusted_proxies.include(Some(client));
                self.is_anybody = self.is_trusted || config.remote_address != RemoteAddress::Socket;
                if !matches!(config.remote_address, RemoteAddress::Fixed(_)) {
                    self.speaker = Some(client);
                }
            }
            self.session = header.tls.map(|tls| Arc::new(session(&tls, header.authority)));
        }
        Ok(Some(len))
    }

    /// Reads what the fields of a request say, as far as they count.
    ///
    /// # Errors
    /// If nobody can tell what they say.
    pub(super) fn read(&mut self, request: &Request, config: &Config) -> Result<(), Error> {
        if self.is_anybody {
            self.last = None;
        }
        if self.is_trusted {
            self.forwarded = Forwarded::read(request, config)?;
            if matches!(config.remote_address, RemoteAddress::Fixed(_)) {
                self.forwarded.client = None;
            }
        } else if let RemoteAddress::Field(name) = &config.remote_address {
            if config.trusted_proxies.is_empty() {
                self.forwarded.client = request.field(name).and_then(first_address);
            }
        }
        Ok(())
    }

    /// Forgets what the fields of a request have said.
    pub(super) fn forget_request(&mut self) {
        if self.is_anybody {
            self.last = self.forwarded.client;
        }
        self.forwarded = Forwarded::default();
    }
}

/// For the log: the client, and the peer of the socket if that is another one.
impl fmt::Display for Peers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(self.client(), out)?;
        if self.client() != self.socket {
            out.write_str(" by way of ")?;
            write_address(self.socket, out)?;
        }
        Ok(())
    }
}

/// Port 0 is none.
fn write_address(address: Option<SocketAddr>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match address {
        None => out.write_str("a local client"),
        Some(address) if address.port() == 0 => write!(out, "{}", address.ip()),
        Some(address) => write!(out, "{address}"),
    }
}

fn session(tls: &ProxyTls<'_>, authority: Option<&str>) -> Session {
    Session {
        version: tls.version.into(),
        cipher: tls.cipher.into(),
        server_name: authority.map(Into::into),
        client_chain: tls.certificate.map(Into::into).into_iter().collect(),
        common_name: tls.common_name.map(Into::into),
        verification: match (tls.has_certificate, tls.is_verified) {
            (false, _) => Verification::None,
            (true, true) => Verification::Success,
            (true, false) => Verification::Failed,
        },
        is_resumed: tls.is_resumed,
        ..Session::default()
    }
}
