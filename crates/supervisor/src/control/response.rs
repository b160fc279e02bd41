//! A response of the control server.

use super::json;
use serde::Serialize;

/// A status, the type of the body, and the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    status: u16,
    kind: &'static str,
    /// Further fields.
    fields: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

impl Response {
    /// Status 200 with this value as JSON.
    pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Response {
        Response::json_with(200, value)
    }

    /// Any status with this value as JSON.
    pub(super) fn json_with<T: Serialize + ?Sized>(status: u16, value: &T) -> Response {
        match json::generate(value) {
            Ok(body) => Response::raw(status, body),
            Err(_) => Response::text(500, "The command failed"),
        }
    }

    /// A value that is JSON already.
    pub(super) fn raw(status: u16, body: impl Into<Vec<u8>>) -> Response {
        Response::new(status, "application/json", body)
    }

    /// Puma's response to an accepted command, identical to the last space.
    pub(super) fn ok() -> Response {
        Response::raw(200, r#"{ "status": "ok" }"#)
    }

    /// A line of text.
    pub(super) fn text(status: u16, body: impl Into<Vec<u8>>) -> Response {
        Response::new(status, "text/plain", body)
    }

    /// Status 200 with a text of this type.
    pub(super) fn typed(kind: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response::new(200, kind, body)
    }

    fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response {
            status,
            kind,
            fields: Vec::new(),
            body: body.into(),
        }
    }

    /// The same with one more field.
    pub(super) fn with_field(mut self, name: &'static str, value: &'static str) -> Response {
        self.fields.push((name, value));
        self
    }

    /// The bytes to send.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (status, reason, kind, length) = (self.status, reason(self.status), self.kind, self.body.len());
        let mut head =
            format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\n{ALWAYS}content-length: {length}\r\n");
        for (name, value) in &self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }
}

/// The beginning of a stream of server-sent events, which ends with the connection.
pub(super) fn head_of_events() -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{ALWAYS}\r\n").into_bytes()
}

/// Fields of every response. No browser may take one for something else: the token is for scripts of the dashboard, and
/// nothing else here is for a browser.
const ALWAYS: &str = "cache-control: no-store\r\nconnection: close\r\nx-content-type-options: nosniff\r\n";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_closes_the_connection_and_is_not_kept() {
        let text =
            "HTTP/1.1 409 Conflict\r\ncontent-type: text/plain\r\ncache-control: no-store\r\nconnection: close\r\n\
                    x-content-type-options: nosniff\r\ncontent-length: 2\r\n\r\nno";

        assert_eq!(text.as_bytes(), Response::text(409, "no").to_bytes());
    }
}
