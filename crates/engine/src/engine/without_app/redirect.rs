//! Requests without TLS that the settings require to use TLS: redirects the client to `https`.

use super::responder::Responder;
use crate::config::{Config, HttpsRedirect};
use crate::connection::Connection;
use crate::stream::Stream;
use crate::transport::listener::Endpoint;
use fairlead_wire::{host_and_port, TargetForm};
use std::sync::Arc;

const USUAL_PORT: u16 = 443;

/// Target of redirects.
pub(super) enum Redirect {
    ToPort(u16),
    /// To the first listener with TLS, which has this port.
    ToListener(u16),
}

impl Redirect {
    /// `None` if no request is redirected. `endpoints`: the endpoints of the listeners.
    pub(super) fn new(config: &Config, endpoints: &[Arc<Endpoint>]) -> Option<Redirect> {
        match config.redirect_to_https {
            HttpsRedirect::Never => None,
            HttpsRedirect::ToPort(port) => Some(Redirect::ToPort(port)),
            HttpsRedirect::ToListener => {
                let mut origins = endpoints.iter().map(|endpoint| &endpoint.origin);
                let with_tls = origins.find(|origin| origin.scheme == "https");
                Some(Redirect::ToListener(with_tls.map_or(USUAL_PORT, |origin| origin.port)))
            }
        }
    }

    /// Responds to the request that is ready, if it has to be repeated with TLS; returns true if the connection ends
    /// with the response.
    pub(super) fn answer(&self, responder: &Responder, connection: &mut Connection) -> Option<bool> {
        let stream = &connection.stream;
        if !stream.lacks_tls(&responder.services.worker.config) {
            return None;
        }
        let location = location(stream, self.port(stream));
        // After a 301, a browser would repeat any other request as a GET without the body (RFC 9110 §15.4.2).
        let status = match stream.request.method() {
            b"GET" | b"HEAD" => 301,
            _ => 308,
        };
        Some(responder.respond(connection, |exchange| match location {
            Some(location) => exchange.respond_plainly_with(status, &[(b"location", &location)]),
            // A request of HTTP/1.0 has no Host, so the target is unknown.
            None => exchange.respond_plainly(400),
        }))
    }

    /// Port for the repeated request. A client behind a proxy does not see our listener.
    fn port(&self, stream: &Stream) -> u16 {
        match *self {
            Redirect::ToListener(_) if stream.peers.is_proxied() => USUAL_PORT,
            Redirect::ToPort(port) | Redirect::ToListener(port) => port,
        }
    }
}

/// The same target with `https`. The host is from the request; it was checked, and only the client itself can set it.
fn location(stream: &Stream, port: u16) -> Option<Vec<u8>> {
    let request = &stream.request;
    let (host, _) = host_and_port(stream.authority()?)?;
    let mut location = [b"https://", host].concat();
    if port != USUAL_PORT {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    match (request.target_form(), request.path()) {
        (TargetForm::Asterisk, _) | (_, b"") => location.push(b'/'),
        (_, path) => location.extend_from_slice(path),
    }
    if let Some(query) = request.query() {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    Some(location)
}
