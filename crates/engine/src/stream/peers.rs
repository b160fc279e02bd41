//! Addresses of the other end: the peer of the socket, the client in its PROXY header, and the client in the fields of
//! a request.
//!
//! ```text
//!   client ── proxy ── proxy ── proxy ──── socket
//!     ▲                 ▲         ▲
//!     │                 │         └ the peer
//!     │                 └ the speaker: the address in the PROXY header; it sends the requests
//!     └ fields of a request, as far as the speaker and the proxies before it are trusted
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
    /// Client, unless a request names another one.
    speaker: Option<SocketAddr>,
    /// True if fields of the speaker count.
    is_trusted: bool,
    /// True if the settings name the peer of the socket as a proxy.
    is_vouched: bool,
    /// True if the speaker's address does not identify the client: it is a proxy, or all clients have the same one.
    is_anybody: bool,
    /// Client of the last request, if its fields have named it: its response may still wait.
    last: Option<SocketAddr>,
    /// PROXY header, if it has information that counts. It migrates with the connection to other workers.
    proxy_header: Vec<u8>,
    /// Result of the TLS handshake in front of the proxy.
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

    /// The same for one of many requests, without the values from another request's fields.
    pub(crate) fn for_stream(&self) -> Peers {
        Peers {
            proxy_header: self.proxy_header.clone(),
            session: self.session.clone(),
            forwarded: Forwarded::default(),
            last: None,
            ..*self
        }
    }

    /// Address of the client.
    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.forwarded.client.or(self.speaker)
    }

    /// Owner of the client's shares of the totals: its network. Many clients may be behind a proxy that does not name
    /// them, or a Unix socket; then the connection with that key is the owner.
    pub(crate) fn owner(&self, key: u64) -> Owner {
        let speaker = self.speaker.filter(|_| !self.is_anybody);
        match self.forwarded.client.or(self.last).or(speaker) {
            Some(client) => Owner::Network(network(client.ip())),
            None => Owner::Key(key),
        }
    }

    /// Client of the last request, if its fields have named it.
    pub(crate) fn last(&self) -> Option<SocketAddr> {
        self.last
    }

    /// Notes the same of a request in another process.
    pub(crate) fn note_last(&mut self, last: Option<SocketAddr>) {
        self.last = last;
    }

    /// Address of the peer of the socket.
    pub(crate) fn socket(&self) -> Option<SocketAddr> {
        self.socket
    }

    /// See [`Peers::introduce`].
    pub(crate) fn proxy_header(&self) -> &[u8] {
        &self.proxy_header
    }

    /// True if the fields count that the sender of the requests adds.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// True if the client's own address is one of the trusted proxies.
    pub(crate) fn has_trusted_client(&self, request: &Request, config: &Config) -> bool {
        // A proxy may hide its client (RFC 7239 §6.3).
        let hides_client = || {
            let fields = [&b"forwarded"[..], b"x-forwarded-for"];
            self.forwarded.client.is_none() && fields.iter().any(|name| request.field(name).is_some())
        };
        let is_known = !matches!(config.remote_address, RemoteAddress::Fixed(_)) && !hides_client();
        is_known && config.trusted_proxies.include(self.client())
    }

    /// True if the client is known to be behind a proxy, or may be.
    pub(crate) fn is_proxied(&self) -> bool {
        self.is_trusted || !self.proxy_header.is_empty()
    }

    /// Result of the TLS handshake between the client and the proxy in front.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// True if the settings name the peer of the socket as a proxy.
    pub(super) fn is_vouched(&self) -> bool {
        self.is_vouched
    }

    /// Scheme that the client has used, if proxies report it.
    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.forwarded.scheme
    }

    /// Authority that the client has asked for, if proxies report it.
    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.forwarded.host.as_deref()
    }

    /// Port that the client has asked for, if proxies report it separately.
    pub(crate) fn port(&self) -> Option<u16> {
        self.forwarded.port
    }

    /// Reads the PROXY header at the start of `input`, before everything else, also before a TLS handshake. Returns its
    /// length, or `None` if it is incomplete.
    ///
    /// # Errors
    /// As soon as it cannot become a valid header: the connection must be refused.
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
                // A proxy that forwards bytes also forwards the fields of its client.
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

    /// Reads the fields of a request, as far as they count.
    ///
    /// # Errors
    /// If the fields are ambiguous.
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

    /// Discards the values from the fields of a request.
    pub(super) fn forget_request(&mut self) {
        if self.is_anybody {
            self.last = self.forwarded.client;
        }
        self.forwarded = Forwarded::default();
    }
}

/// For the log: the client, and the peer of the socket if that is a different one.
impl fmt::Display for Peers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(self.client(), out)?;
        if self.client() != self.socket {
            out.write_str(" via ")?;
            write_address(self.socket, out)?;
        }
        Ok(())
    }
}

/// Port 0 means that there is none.
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
