//! A failure, with a text from the authority or from this program. Texts of the authority are truncated here, and
//! escaped where they are shown.

use crate::events::Event;
use instant_acme::Error;
use serde_json::{json, Value};
use std::fmt;

/// The longest text that is taken from a problem document, in bytes.
const TEXT_MOST: usize = 2000;

/// Most parts of a problem document that are shown.
const PARTS_MOST: usize = 10;

/// The reason for the missing certificate.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// The last part of its name in RFC 8555 §6.7, or a name of this program.
    pub(crate) kind: String,
    pub(crate) message: String,
    /// The pause in seconds that the authority has asked for.
    pub(crate) retry_after: Option<u64>,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    pub(crate) fn new(kind: &str, message: String) -> Problem {
        Problem {
            kind: kind.to_owned(),
            message,
            retry_after: None,
        }
    }

    /// The authority violates RFC 8555.
    pub(crate) fn malformed(message: String) -> Problem {
        Problem::new("malformed", message)
    }

    /// Converts the library's error: a problem document, a problem of this program, or another error.
    pub(crate) fn from_library(error: Error) -> Problem {
        match error {
            Error::Api(document) => Problem::from_document(&document),
            Error::Timeout(next) => Problem {
                retry_after: next.map(|at| at.saturating_duration_since(std::time::Instant::now()).as_secs()),
                ..Problem::new("timeout", "the authority has not decided in time".to_owned())
            },
            Error::Other(other) => match other.downcast::<Problem>() {
                Ok(problem) => *problem,
                Err(other) => Problem::malformed(other.to_string()),
            },
            Error::KeyRejected => Problem::new("process", "the key of the account cannot be used".to_owned()),
            Error::Json(error) => Problem::malformed(format!("the authority has sent an invalid response: {error}")),
            error => Problem::malformed(format!("the request to the authority failed: {error}")),
        }
    }

    /// Converts a problem document (RFC 7807), with its parts (RFC 8555 §6.7.1).
    pub(crate) fn from_document(document: &instant_acme::Problem) -> Problem {
        let kind = document.r#type.as_deref().and_then(|name| name.rsplit(':').next());
        let kind = kind.filter(|kind| !kind.is_empty()).unwrap_or("unknown");
        let parts = document.subproblems.iter().take(PARTS_MOST).map(|part| {
            let host = part.identifier.as_ref().map(|host| host.authorized_text());
            format!(
                "{}: {}",
                host.unwrap_or_default(),
                part.detail.as_deref().unwrap_or_default()
            )
        });
        let texts: Vec<String> = document.detail.clone().into_iter().chain(parts).collect();
        Problem::new(kind, format!("{} ({kind})", texts.join("; ")))
    }

    /// Adds a host to the problem.
    pub(crate) fn of_host(self, host: &str) -> Problem {
        Problem {
            message: format!("{host}: {}", self.message),
            ..self
        }
    }

    /// True if the authority has refused this nonce only (RFC 8555 §6.5).
    pub(crate) fn is_bad_nonce(&self) -> bool {
        self.kind == "badNonce"
    }

    /// Reports the problem to the server.
    pub(crate) fn tell(self) {
        Event::Failed {
            r#type: self.kind,
            message: cut(&self.message).to_owned(),
            retry_after: self.retry_after,
        }
        .tell();
    }
}

/// A host as a text.
trait AuthorizedText {
    fn authorized_text(&self) -> String;
}

impl AuthorizedText for instant_acme::Identifier {
    fn authorized_text(&self) -> String {
        self.authorized(false).to_string()
    }
}

/// A problem document that the library can read, for any input: only text, of limited length.
pub(crate) fn readable(status: u16, body: &str) -> Vec<u8> {
    let document: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(|text| cut(text).to_owned());
    let parts = document
        .get("subproblems")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let parts: Vec<Value> = parts
        .iter()
        .take(PARTS_MOST)
        .map(|part| {
            let host = part.get("identifier").and_then(|host| text(host, "value"));
            json!({
                "type": text(part, "type"),
                "detail": text(part, "detail"),
                "identifier": host.map(|host| json!({ "type": "dns", "value": host })),
            })
        })
        .collect();
    let kind = text(&document, "type").unwrap_or_else(|| "serverInternal".to_owned());
    let detail = text(&document, "detail").unwrap_or_else(|| format!("the authority responded with status {status}"));
    json!({ "type": kind, "detail": detail, "status": status, "subproblems": parts })
        .to_string()
        .into_bytes()
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    let end = (0..=TEXT_MOST.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, body: &str) -> Problem {
        let document: instant_acme::Problem = serde_json::from_slice(&readable(status, body)).expect("readable");
        Problem::from_document(&document)
    }

    #[test]
    fn a_document_keeps_its_type_and_its_parts() {
        let found = problem(
            403,
            r#"{"type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": "no",
                "subproblems": [{"type": "x", "detail": "bad", "identifier": {"type": "dns", "value": "a.example"}}, 7, null]}"#,
        );
        assert_eq!(found.kind, "rejectedIdentifier");
        assert_eq!(found.message, "no; a.example: bad; : ; :  (rejectedIdentifier)");
    }

    #[test]
    fn what_is_no_document_is_a_problem_with_the_status() {
        for body in [
            "",
            "<html>",
            "[]",
            "null",
            "7",
            "{\"type\": 7, \"detail\": {}}",
            &"[".repeat(10_000),
        ] {
            let found = problem(502, body);
            assert_eq!(
                found.message,
                "the authority responded with status 502 (serverInternal)"
            );
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let body = json!({ "type": "x", "detail": "é".repeat(100_000) }).to_string();
        assert!(problem(400, &body).message.len() <= TEXT_MOST + 10);
    }
}
