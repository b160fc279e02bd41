//! Requests of certificate authorities that want to see whether a host is ours (RFC 8555 §8.3).

use super::responder::Responder;
use crate::acme::Challenges;
use crate::connection::Connection;

/// The type that RFC 8555 §8.3 wants.
const CONTENT_TYPE: &[u8] = b"application/octet-stream";

/// Answers the request that is ready, if there is an answer to it; returns true if the connection ends with it. A request
/// that only looks like one of an authority goes to the app, which may know it.
pub(super) fn answer(responder: &Responder, challenges: &Challenges, connection: &mut Connection) -> Option<bool> {
    let request = &connection.stream.request;
    if !matches!(request.method(), b"GET" | b"HEAD") || request.has_body() {
        return None;
    }
    let answer = challenges.answer(request.path())?;
    Some(responder.respond(connection, |exchange| {
        exchange.respond_with_bytes(CONTENT_TYPE, &answer)
    }))
}
