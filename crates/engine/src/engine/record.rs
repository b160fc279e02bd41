//! Logs requests.

use super::Engine;
use crate::clock::Nanos;
use crate::connection::Connection;
use crate::exchange::Ended;
use crate::observe::access_log::{escaped, LogLine};
use crate::stream::peers::Peers;
use std::net::SocketAddr;
use std::time::Duration;

impl Engine {
    /// Logs a response, and the application's fault in it, if any. `lock_wait` as in
    /// [`App::lock_wait`](crate::App::lock_wait).
    pub(super) fn record(&self, connection: &Connection, ended: &Ended, lock_wait: Option<Duration>) {
        let stream = &connection.stream;
        if let Some(fault) = ended.faulty {
            let target = escaped(stream.request.target());
            self.worker.log.error(format_args!("{fault} ({target})"));
        }
        self.record_access(&stream.peers, |[host, peer]| LogLine {
            host,
            peer,
            request: Some(&stream.request),
            status: ended.status,
            bytes: ended.body_bytes,
            took: Nanos::now() - stream.request.arrived,
            lock_wait,
        });
    }

    /// Logs a request that the server refused. Its target and fields are left out, because it may be incomplete.
    pub(super) fn record_refusal(&self, connection: &Connection, status: u16, bytes: u64) {
        self.record_access(&connection.stream.peers, |[host, peer]| LogLine {
            host,
            peer,
            request: None,
            status,
            bytes,
            took: Duration::ZERO,
            lock_wait: None,
        });
    }

    fn record_access<'a>(&self, peers: &Peers, line: impl FnOnce([String; 2]) -> LogLine<'a>) {
        let Some(format) = self.worker.log.access_format() else {
            return;
        };
        let text = |address: Option<SocketAddr>| match address {
            Some(address) => address.ip().to_canonical().to_string(),
            None => "-".to_string(),
        };
        let line = line([peers.client(), peers.socket()].map(text));
        self.worker.log.access(|out| line.write(format, out));
    }
}
