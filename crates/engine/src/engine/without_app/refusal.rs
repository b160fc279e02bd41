//! Refused requests: counts them, logs them, and writes the response.

use super::responder::Responder;
use crate::clock::{http_date, Millis};
use crate::connection::{Connection, Next};
use crate::engine::record;
use crate::exchange::{Services, HTML};
use crate::http::http1::{write_head, BodyFraming, ConnectionField, HeadEnd};
use crate::http::refusal::Refusal;
use crate::http::response::ResponseHead;
use crate::observe::excess::About;
use fairlead_wire::http1::reason;
use std::sync::atomic::Ordering::Relaxed;

const PLAIN_TEXT: &str = "text/plain";

/// Seconds after which a client may try again.
const RETRY_AFTER: &[u8] = b"1";

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
    Some(responder.write(connection, |exchange| {
        exchange.respond_plainly_with(status, &[(b"retry-after", RETRY_AFTER)]);
    }))
}

/// Counts and logs a refusal.
fn note(services: &Services, connection: &Connection, refusal: Refusal) {
    let worker = &services.worker;
    worker.counters().refused_requests.fetch_add(1, Relaxed);
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
    let plain = format!("{}\n", reason(status));
    let (content_type, body) = match services.files.page(status) {
        Some(page) => (HTML, page),
        None => (PLAIN_TEXT, plain.as_bytes()),
    };
    let mut head = ResponseHead::default();
    head.start(status);
    head.fields.add(b"content-type", content_type.as_bytes());
    if status == 503 {
        head.fields.add(b"retry-after", RETRY_AFTER);
    }
    let date = http_date();
    let end = HeadEnd {
        framing: Some(BodyFraming::Length(body.len() as u64)),
        connection: ConnectionField::Close,
        date: Some(date.as_bytes()),
        is_head_request: false,
    };
    record::refusal(worker, connection, status, body.len() as u64);
    let buffer = connection.stream.output.buffer();
    write_head(&head, end, buffer);
    buffer.extend_from_slice(body);
    connection.refused(Millis::now())
}
