//! Logs and counts requests, logs slow ones once more, and slow clients that are closed.

use crate::clock::Nanos;
use crate::cluster::responses::{RequestKind, ResponseKind};
use crate::connection::slow_request::{SlowRequest, Times};
use crate::connection::Connection;
use crate::exchange::Ended;
use crate::http::request::Waits;
use crate::observe::access_log::{escaped, LogLine};
use crate::observe::excess::About;
use crate::stream::peers::Peers;
use crate::stream::Stream;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Logs and counts a response that ends now, and logs the app's error in it, if any. `lock_wait` as in
/// [`App::lock_wait`](crate::App::lock_wait).
pub(super) fn response(
    worker: &Arc<Worker>,
    connection: &mut Connection,
    ended: &Ended,
    lock_wait: Option<Duration>,
    now: Nanos,
) {
    let stream = &connection.stream;
    if let Some(fault) = ended.faulty {
        let target = escaped(stream.request.target());
        worker.log.error(format_args!("{fault} ({target})"));
    }
    let took = now - stream.request.arrived;
    count(worker, stream, ended.status, took);
    if is_slow(worker, took) {
        let Waits { queue, waiting_room } = stream.request.waits();
        let times = Times {
            took,
            queue,
            waiting_room,
            lock: lock_wait,
            sending: ended.sending,
        };
        slow_request(worker, connection, ended, times);
    }
    let stream = &connection.stream;
    if ended.status < 400 && worker.config.skips_in_log(stream.request.path()) {
        return;
    }
    if !worker.config.access_log_sample.takes(ended.status) {
        return;
    }
    access(worker, &stream.peers, |[host, peer]| LogLine {
        host,
        peer,
        request: Some(&stream.request),
        status: ended.status,
        bytes: ended.body_bytes,
        took,
        lock_wait,
    });
}

/// The kind of a request, for the metrics.
pub(super) fn kind(worker: &Worker, stream: &Stream) -> RequestKind {
    RequestKind::new(stream.request.method(), stream.is_secure(&worker.config))
}

/// Counts a response, unless the settings leave its path out.
fn count(worker: &Worker, stream: &Stream, status: u16, took: Duration) {
    if worker.config.skips_in_metrics(stream.request.path()) {
        return;
    }
    let kind = ResponseKind {
        request: kind(worker, stream),
        version: stream.request.version(),
        status,
    };
    worker.count_response(kind, took);
}

fn is_slow(worker: &Worker, took: Duration) -> bool {
    let limit = worker.config.slow_request;
    !limit.is_zero() && took > limit
}

/// Logs the times of a request, as soon as its response is sent.
fn slow_request(worker: &Arc<Worker>, connection: &mut Connection, ended: &Ended, times: Times) {
    let request = &connection.stream.request;
    let (method, path, status) = (escaped(request.method()), escaped(request.path()), ended.status);
    let is_sent = connection.stream.output.is_empty();
    let slow_request = SlowRequest::new(worker, format!("{method} {path} {status}"), times, is_sent);
    if !is_sent {
        connection.log_when_sent(slow_request);
    }
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

/// Logs a request that was dropped because its client had left, with the status that nginx uses for it.
pub(super) fn abandoned(worker: &Worker, connection: &Connection) {
    unserved(worker, connection, 499);
}

/// Logs and counts a complete request that was not run, and that has no response with this status.
pub(super) fn unserved(worker: &Worker, connection: &Connection, status: u16) {
    let request = &connection.stream.request;
    let took = Nanos::now() - request.arrived;
    count(worker, &connection.stream, status, took);
    access(worker, &connection.stream.peers, |[host, peer]| LogLine {
        host,
        peer,
        request: Some(request),
        status,
        bytes: 0,
        took,
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
