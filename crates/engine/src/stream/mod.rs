//! A stream: one request after another, and their responses, over a transport. An HTTP/1 connection has exactly one
//! stream.

pub(crate) mod output;

use crate::config::fair_by::Party;
use crate::config::peers::first_address;
use crate::config::{Config, RemoteAddress};
use crate::http::request::Request;
use crate::transport::listener::Origin;
use crate::transport::Link;
use output::{FileParts, Flush, Output, Spill};
use rustix::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Stream {
    transport: Link,
    origin: Arc<Origin>,
    peer: Option<SocketAddr>,
    /// The client that a field of the request names.
    named: Option<SocketAddr>,
    /// Whether fields of the peer tell how the client has reached it.
    pub(crate) is_peer_trusted: bool,
    /// Whom the request counts for, if turns go by party.
    pub(crate) party: Option<Party>,
    /// Whether the request may go ahead of the others.
    pub(crate) is_urgent: bool,
    /// Bytes that have arrived and belong to no request yet. If the transport changes its owner, they go with it.
    pub(crate) input: Vec<u8>,
    pub(crate) request: Request,
    pub(crate) output: Output,
}

impl Stream {
    pub(crate) fn new(transport: Link, origin: Arc<Origin>, peer: Option<SocketAddr>) -> Stream {
        Stream {
            transport,
            origin,
            peer,
            named: None,
            is_peer_trusted: false,
            party: None,
            is_urgent: false,
            input: Vec::new(),
            request: Request::default(),
            output: Output::default(),
        }
    }

    pub(crate) fn transport(&self) -> &Link {
        &self.transport
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// The client's address: that of the peer when the connection was accepted, unless the settings say otherwise.
    /// `None` for a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.named.or(self.peer)
    }

    /// The same without what the request says.
    pub(crate) fn connection_peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The proxy in front has said for whom it speaks.
    pub(crate) fn speaks_for(&mut self, client: SocketAddr) {
        self.peer = Some(client);
    }

    /// Moves the head at the start of the input to the request.
    pub(crate) fn take_head(&mut self, config: &Config) {
        self.request.take_head(&mut self.input);
        if let RemoteAddress::Field(name) = &config.remote_address {
            let counts = config.trusted_proxies.is_empty() || self.is_peer_trusted;
            let value = self.request.field(name).filter(|_| counts);
            self.named = value.and_then(first_address).map(|address| (address, 0).into());
        }
    }

    /// Whether a proxy that is trusted says that the client has reached it by https.
    pub(crate) fn is_forwarded_secure(&self) -> bool {
        self.is_peer_trusted && self.request.is_forwarded_secure()
    }

    /// Ends the request. Its buffer is kept for the next one.
    pub(crate) fn forget_request(&mut self) {
        self.named = None;
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

    /// Sends as much of the output as the transport takes without waiting.
    pub(crate) fn flush(&mut self, files: FileParts) -> io::Result<Flush> {
        self.output.flush(&*self.transport, files)
    }
}
