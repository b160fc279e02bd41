//! Logs requests.

use super::Engine;
use crate::clock::Nanos;
use crate::connection::Connection;
use crate::exchange::Ended;
use crate::http::request::Request;
use crate::observe::access_log::{escaped, LogLine};
use fairlead_wire::Version;
use std::net::SocketAddr;

impl Engine {
    /// Logs a response, and the application's fault in it, if any.
    pub(super) fn record(&self, connection: &Connection, ended: &Ended) {
        let stream = &connection.stream;
        if let Some(fault) = ended.faulty {
            let target = escaped(stream.request.target());
            self.worker.log.error(format_args!("{fault} ({target})"));
        }
        let seconds = (Nanos::now() - stream.request.arrived).as_secs_f64();
        self.record_access(
            stream.peer(),
            Some(&stream.request),
            (ended.status, ended.body_bytes),
            seconds,
        );
    }

    /// Logs a request that the server refused. Its target and fields are left out, because it may be incomplete.
    pub(super) fn record_refusal(&self, connection: &Connection, status: u16, bytes: u64) {
        self.record_access(connection.stream.peer(), None, (status, bytes), 0.0);
    }

    fn record_access(&self, peer: Option<SocketAddr>, request: Option<&Request>, response: (u16, u64), seconds: f64) {
        let Some(format) = self.worker.log.access_format() else {
            return;
        };
        let host = peer.map_or_else(|| "-".to_string(), |peer| peer.ip().to_canonical().to_string());
        let field = |name: &[u8]| request.and_then(|request| request.field(name)).unwrap_or_default();
        let (status, bytes) = response;
        let line = LogLine {
            host,
            method: request.map_or(b"-", Request::method),
            target: request.map_or(b"-", Request::target),
            protocol: match request.map(Request::version) {
                None => "-",
                Some(Version::Http10) => "HTTP/1.0",
                Some(Version::Http11) => "HTTP/1.1",
            },
            referer: field(b"referer"),
            user_agent: field(b"user-agent"),
            status,
            bytes,
            seconds,
        };
        self.worker.log.access(|out| line.write(format, out));
    }
}
