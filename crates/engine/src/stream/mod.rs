//! Stream: one request after another, and their responses, over a transport. An HTTP/1 connection has exactly one
//! stream.

mod forwarded;
pub(crate) mod output;
pub(crate) mod peers;
mod presence;

use crate::config::fair_by::Flow;
use crate::config::{Config, HttpsRedirect, Scheme};
use crate::http::request::Request;
use crate::limits::budget::Budget;
use crate::spool::Spool;
use crate::tls::Session;
use crate::transport::listener::{Endpoint, Origin};
use crate::transport::Link;
use fairlead_wire::Error;
use output::{FileParts, Flush, Output, Spill};
use peers::Peers;
use rustix::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Paths of requests of certificate authorities.
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Stream {
    transport: Link,
    endpoint: Arc<Endpoint>,
    pub(crate) peers: Peers,
    /// Flow of the request, if turns go by flow.
    pub(crate) flow: Option<Flow>,
    /// True if the request may go ahead of the others.
    pub(crate) is_urgent: bool,
    /// Bytes that have arrived and belong to no request yet. If the transport gets another owner, they go with it.
    pub(crate) input: Vec<u8>,
    pub(crate) request: Request,
    pub(crate) output: Output,
    /// True if the client of the request was asked if it is still there.
    was_asked: bool,
}

impl Stream {
    /// `peer`: the peer of the socket.
    pub(crate) fn new(transport: Link, endpoint: Arc<Endpoint>, peer: Option<SocketAddr>, config: &Config) -> Stream {
        Stream {
            transport,
            endpoint,
            peers: Peers::new(peer, config),
            flow: None,
            is_urgent: false,
            input: Vec::new(),
            request: Request::default(),
            output: Output::default(),
            was_asked: false,
        }
    }

    /// Addresses of the other end, for the requests of an HTTP/2 connection.
    pub(crate) fn into_peers(self) -> (Arc<Endpoint>, Peers) {
        (self.endpoint, self.peers)
    }

    pub(crate) fn transport(&self) -> &Link {
        &self.transport
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.endpoint.origin
    }

    /// Address of the client: the address of the peer when the connection was accepted, unless proxies or the settings
    /// give another one. `None` for a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peers.client()
    }

    /// Result of the TLS handshake with the client: in our own handshake, or in the handshake of a proxy that reports
    /// it. A PROXY header that any peer may have sent never replaces our own handshake.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.transport.session().or_else(|| self.peers.session())
    }

    /// Handshake result that a trusted proxy reports, in addition to our own handshake with the proxy.
    pub(crate) fn claimed_session(&self) -> Option<&Arc<Session>> {
        self.transport.session()?;
        self.peers.session().filter(|_| self.peers.is_vouched())
    }

    /// True if the client has used https, as far as is known.
    pub(crate) fn is_secure(&self, config: &Config) -> bool {
        match config.rack_url_scheme.or(self.peers.scheme()) {
            Some(scheme) => scheme == Scheme::Https,
            None => self.origin().scheme == "https" || self.peers.session().is_some(),
        }
    }

    /// True if the client should repeat the request with TLS. Certificate authorities check without TLS if a host is
    /// ours, because it may have no certificate yet (RFC 8555 §8.3); load balancers request paths with priority without
    /// TLS.
    pub(crate) fn lacks_tls(&self, config: &Config) -> bool {
        let path = self.request.path();
        config.redirect_to_https != HttpsRedirect::Never
            && !self.is_secure(config)
            && !path.starts_with(CHALLENGES)
            && !config.priority_paths.iter().any(|own| own.as_bytes() == path)
    }

    /// Host that the client has asked for, and perhaps a port: from trusted proxies, or from the request.
    pub(crate) fn authority(&self) -> Option<&[u8]> {
        self.peers.host().or_else(|| self.request.host())
    }

    /// Moves the head at the start of the input to the request.
    ///
    /// # Errors
    /// If the fields of proxies in it are ambiguous.
    pub(crate) fn take_head(&mut self, config: &Config) -> Result<(), Error> {
        self.request.take_head(&mut self.input);
        self.peers.read(&self.request, config)
    }

    /// Ends the request. Its buffer is kept for the next one.
    pub(crate) fn forget_request(&mut self) {
        self.peers.forget_request();
        self.was_asked = false;
        let buffer = self.request.forget();
        if self.input.capacity() == 0 {
            self.input = buffer;
        }
    }

    /// Bytes of requests that are in memory.
    pub(crate) fn input_memory(&self) -> usize {
        self.input.len() + self.request.memory()
    }

    /// Adds body bytes to the output; see [`Output::push`].
    pub(crate) fn push(&mut self, bytes: &[u8], spill: Spill<'_>) -> io::Result<usize> {
        self.output.push(&*self.transport, bytes, spill, FileParts::Leave)
    }

    /// Called when nothing will be added to the output for a while; see [`Output::settle`].
    pub(crate) fn settle_output(&mut self, spool: &Arc<Spool>, own: impl FnOnce(&Peers) -> Arc<Budget>) {
        self.output.settle(spool, &*self.transport, || own(&self.peers));
    }

    /// Bytes that the kernel has taken, since the output was last empty or before. Only differences count.
    pub(crate) fn progress(&self) -> u64 {
        self.transport.carried().unwrap_or(self.output.progress())
    }

    /// Sends as much of the output as the transport takes without waiting.
    pub(crate) fn flush(&mut self, files: FileParts) -> io::Result<Flush> {
        self.output.flush(&*self.transport, files)
    }
}
