//! Refused requests: counts them, logs them, and writes the response.

use super::responder::Responder;
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::engine::record;
use crate::exchange::{Services, RETRY_AFTER};
use crate::http::refusal::Refusal;
use crate::observe::excess::About;
use std::sync::atomic::Ordering::Relaxed;

/// Methods that a client may repeat without being told to (RFC 9110 §9.2.2).
const IDEMPOTENT: [&[u8]; 6] = [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"TRACE"];

/// Responds to a complete request that is not run. Returns true if the connection ends with the response; `None` if
/// there is none. Over HTTP/2, a client that may not repeat its request is told that it may (RFC 9113 §8.7).
pub(super) fn decline(responder: &Responder, connection: &mut Connection, refusal: Refusal) -> Option<bool> {
    let worker = &responder.services.worker;
    note(&responder.services, connection, refusal);
    let (stream, status) = (&connection.stream, refusal.status());
    if !IDEMPOTENT.contains(&stream.request.method()) && stream.transport().decline() {
        record::unserved(worker, connection, status);
        return None;
    }
    let retry_after = refusal.retry_after().unwrap_or(RETRY_AFTER);
    Some(responder.write(connection, |exchange| {
        exchange.respond_plainly_with(status, &[(b"retry-after", retry_after)]);
    }))
}

/// Counts and logs a refusal.
fn note(services: &Services, connection: &Connection, refusal: Refusal) {
    let worker = &services.worker;
    worker.counters().refused_requests.fetch_add(1, Relaxed);
    worker.count_refusal(refusal);
    let (status, why, peers) = (refusal.status(), refusal.reason(), &connection.stream.peers);
    let about = if status >= 500 {
        About::NoRoom
    } else {
        About::RefusedRequest
    };
    worker.log.about_peer(
        about,
        peers.client(),
        format_args!("refused {status} ({why}) from {peers}"),
    );
}

/// Responds to a request that is refused before it is complete, or cannot be understood, and ends its connection.
pub(super) fn refuse(services: &Services, connection: &mut Connection, refusal: Refusal) -> Next {
    note(services, connection, refusal);
    let (worker, status) = (&services.worker, refusal.status());
    let buffer = connection.stream.output.buffer();
    let bytes = services.write_closing(status, false, buffer);
    record::refusal(worker, connection, status, bytes);
    connection.refused(Millis::now())
}
