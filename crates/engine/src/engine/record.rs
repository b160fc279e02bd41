//! Logs requests, slow ones once more, and slow clients that are closed.

use crate::clock::Nanos;
use crate::connection::Connection;
use crate::exchange::Ended;
use crate::observe::access_log::{escaped, LogLine};
use crate::observe::excess::About;
use crate::stream::peers::Peers;
use crate::stream::Stream;
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
    let took = Nanos::now() - stream.request.arrived;
    if is_slow(worker, took) {
        slow_request(worker, stream, ended.status, took, lock_wait);
    }
    if ended.status < 400 && worker.config.skips_in_log(stream.request.path()) {
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

fn is_slow(worker: &Worker, took: Duration) -> bool {
    let limit = worker.config.slow_request;
    !limit.is_zero() && took > limit
}

/// Logs the waits of a request, and the rest of its time.
fn slow_request(worker: &Worker, stream: &Stream, status: u16, took: Duration, lock_wait: Option<Duration>) {
    let (request, waits) = (&stream.request, stream.request.waits());
    let rest = took
        .saturating_sub(waits.queue + waits.waiting_room)
        .saturating_sub(lock_wait.unwrap_or_default());
    let [took, queue, room, rest] = [took, waits.queue, waits.waiting_room, rest].map(|time| time.as_secs_f64());
    let lock = lock_wait.map_or(String::new(), |lock| format!(", lock {:.3}", lock.as_secs_f64()));
    let (method, path) = (escaped(request.method()), escaped(request.path()));
    worker.log.error(format_args!(
        "slow request: {method} {path} {status} took {took:.3} s (queue {queue:.3}, waiting room {room:.3}{lock}, application {rest:.3})"
    ));
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

/// Logs a complete request that was not run, and that has no response with this status.
pub(super) fn unserved(worker: &Worker, connection: &Connection, status: u16) {
    let request = &connection.stream.request;
    access(worker, &connection.stream.peers, |[host, peer]| LogLine {
        host,
        peer,
        request: Some(request),
        status,
        bytes: 0,
        took: Nanos::now() - request.arrived,
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
