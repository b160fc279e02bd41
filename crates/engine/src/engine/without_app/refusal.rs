//! Refused requests: counts them, logs them, and writes the response.

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

/// Responds to a request without the app.
pub(super) fn refuse(services: &Services, connection: &mut Connection, refusal: Refusal) -> Next {
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
    let plain = format!("{}\n", reason(status));
    let (content_type, body) = match services.files.page(status) {
        Some(page) => (HTML, page),
        None => (PLAIN_TEXT, plain.as_bytes()),
    };
    let mut head = ResponseHead::default();
    head.start(status);
    head.fields.add(b"content-type", content_type.as_bytes());
    if status == 503 {
        head.fields.add(b"retry-after", b"1");
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
