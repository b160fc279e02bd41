//! Makes connections from the sockets that come from other workers.

use crate::clock::Millis;
use crate::connection::connections::Connections;
use crate::connection::Connection;
use crate::limits::descriptors::Counted;
use crate::transport::listener::Endpoint;
use crate::transport::poller::Interest;
use crate::transport::{Link, Socket};
use crate::worker::Worker;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// See the head of this file.
pub(in crate::engine) struct IncomingConnections {
    worker: Arc<Worker>,
    connections: Arc<Connections>,
    /// Endpoints of the listeners, in the order that all workers share.
    endpoints: Arc<[Arc<Endpoint>]>,
}

impl IncomingConnections {
    pub(in crate::engine) fn new(
        worker: &Arc<Worker>,
        connections: &Arc<Connections>,
        endpoints: &Arc<[Arc<Endpoint>]>,
    ) -> Arc<IncomingConnections> {
        Arc::new(IncomingConnections {
            worker: Arc::clone(worker),
            connections: Arc::clone(connections),
            endpoints: Arc::clone(endpoints),
        })
    }

    /// The endpoint of a connection with this fingerprint of its origin and this peer.
    pub(super) fn endpoint_of(&self, origin: u32, peer: Option<SocketAddr>) -> Option<&Arc<Endpoint>> {
        let mut known = self.endpoints.iter();
        let known = known.find(|one| one.origin.fingerprint() == origin);
        known.filter(|endpoint| endpoint.origin.unix || peer.is_some())
    }

    /// An endpoint for a connection that will have no further request, if its own is unknown here.
    pub(super) fn stand_in(&self, has_tls: bool) -> Option<&Arc<Endpoint>> {
        self.endpoints.iter().find(|one| one.tls.is_some() || !has_tls)
    }

    /// Makes a connection that another worker had, from its socket, its endpoint, and its peer. If this fails, returns the
    /// transport, if there is one, and the reason.
    pub(super) fn connection_of(
        &self,
        socket: OwnedFd,
        endpoint: Option<&Arc<Endpoint>>,
        peer: Option<SocketAddr>,
        interest: Option<Interest>,
        to_link: impl FnOnce(&Endpoint, Counted<OwnedFd>) -> Result<Link, &'static str>,
    ) -> Result<Connection, (Option<Link>, &'static str)> {
        let socket = Counted::new(socket, self.worker.config.descriptors.for_transfer());
        let Some(endpoint) = endpoint else {
            return Err((Some(Arc::new(Socket::new(socket))), "its origin is unknown"));
        };
        let transport = to_link(endpoint, socket).map_err(|reason| (None, reason))?;
        match self
            .connections
            .open(&transport, interest, endpoint, peer, Millis::now())
        {
            Ok(connection) => Ok(connection),
            Err(_) => Err((Some(transport), "it cannot be watched")),
        }
    }
}
