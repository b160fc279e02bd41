//! Requests of certificate authorities that want to see whether a host is ours (RFC 8555 §8.3).

use super::Engine;
use crate::acme::Challenges;
use crate::connection::Connection;

/// The type that RFC 8555 §8.3 wants.
const CONTENT_TYPE: &[u8] = b"application/octet-stream";

impl Engine {
    /// Answers the request that is ready, if there is an answer to it; returns whether the connection ends with it. What
    /// looks like such a request and is not known here may be known to the app.
    pub(super) fn answer_challenge(&self, challenges: &Challenges, connection: &mut Connection) -> Option<bool> {
        let request = &connection.stream.request;
        if !matches!(request.method(), b"GET" | b"HEAD") || request.has_body() {
            return None;
        }
        let answer = challenges.answer(request.path())?;
        Some(self.respond_without_app(connection, |exchange| {
            exchange.respond_with_bytes(CONTENT_TYPE, &answer)
        }))
    }
}
