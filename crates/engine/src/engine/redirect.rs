//! Requests that have come without TLS, where the settings want it: the client is told to come again with it.

use super::Engine;
use crate::config::HttpsRedirect;
use crate::connection::Connection;
use crate::stream::Stream;
use fairlead_wire::{host_and_port, TargetForm};

const USUAL_PORT: u16 = 443;

impl Engine {
    /// Responds to the request that is ready, if it is to come again with TLS; returns whether the connection ends with it.
    pub(super) fn redirect_to_https(&self, connection: &mut Connection) -> Option<bool> {
        let stream = &connection.stream;
        if !stream.lacks_tls(&self.worker.config) {
            return None;
        }
        let location = location(stream, self.https_port(stream));
        // A browser would make a GET of any other request, and leave the body out (RFC 9110 §15.4.2).
        let status = match stream.request.method() {
            b"GET" | b"HEAD" => 301,
            _ => 308,
        };
        Some(self.respond_without_app(connection, |exchange| match location {
            Some(location) => exchange.respond_plainly_with(status, &[(b"location", &location)]),
            // HTTP/1.0 has no Host, and nobody else knows what the client has asked for.
            None => exchange.respond_plainly(400),
        }))
    }

    /// Where the client comes again. Behind a proxy the listener is not the one that it sees.
    fn https_port(&self, stream: &Stream) -> u16 {
        match self.worker.config.redirect_to_https {
            HttpsRedirect::ToPort(port) => port,
            HttpsRedirect::ToListener if stream.peers.is_proxied() => USUAL_PORT,
            HttpsRedirect::ToListener | HttpsRedirect::Never => {
                let mut origins = self.endpoints.iter().map(|endpoint| &endpoint.origin);
                origins
                    .find(|origin| origin.scheme == "https")
                    .map_or(USUAL_PORT, |origin| origin.port)
            }
        }
    }
}

/// The same with TLS. The host is that of the request: it was checked, and nothing but a client's own request sets it.
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
