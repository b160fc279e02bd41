//! Requests of certificate authorities that check if a host is ours (RFC 8555 §8.3).

use super::responder::Responder;
use crate::acme::Challenges;
use crate::connection::Connection;

/// Media type that RFC 8555 §8.3 requires.
const CONTENT_TYPE: &[u8] = b"application/octet-stream";

/// Responds to the request that is ready, if it is for a known challenge; returns true if the connection ends with the
/// response. A request that only looks like one of an authority goes to the app.
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
