//! Logs requests and slow clients that are closed.

use crate::clock::Nanos;
use crate::connection::Connection;
use crate::exchange::Ended;
use crate::observe::access_log::{escaped, LogLine};
use crate::observe::excess::About;
use crate::stream::peers::Peers;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::time::Duration;

/// Logs a response, and the app's error in it, if any. `lock_wait` as in [`App::lock_wait`](crate::App::lock_wait).
pub(super) fn response(worker: &Worker, connection: &Connection, ended: &Ended, lock_wait: Option<Duration>) {
    let stream = &connection.stream;
    if let Some(fault) = ended.faulty {
        let target = escaped(stream.request.target());
        worker.log.error(format_args!("{fault} ({target})"));
    }
    access(worker, &stream.peers, |[host, peer]| LogLine {
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
pub(super) fn refusal(worker: &Worker, connection: &Connection, status: u16, bytes: u64) {
    access(worker, &connection.stream.peers, |[host, peer]| LogLine {
        host,
        peer,
        request: None,
        status,
        bytes,
        took: Duration::ZERO,
        lock_wait: None,
    });
}

/// Logs that a client has not taken its response in time.
pub(super) fn slow_client(worker: &Worker) {
    let seconds = worker.write_timeout().as_secs();
    worker.log.about_peer(
        About::SlowReader,
        None,
        format_args!("aborted a response: the client did not take it within {seconds} s"),
    );
}

fn access<'a>(worker: &Worker, peers: &Peers, line: impl FnOnce([String; 2]) -> LogLine<'a>) {
    let Some(format) = worker.log.access_format() else {
        return;
    };
    let text = |address: Option<SocketAddr>| match address {
        Some(address) => address.ip().to_canonical().to_string(),
        None => "-".to_string(),
    };
    let line = line([peers.client(), peers.socket()].map(text));
    worker.log.access(|out| line.write(format, out));
}
