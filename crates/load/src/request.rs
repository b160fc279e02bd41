//! The bytes of the request, or of each request of a mix, formatted once before the run.

use crate::options::{Options, Share};
use crate::url::Url;

/// Limit for the copies of a request in one buffer, from which one write sends several pipelined requests.
const COPIES_BYTES: usize = 64 * 1024;

/// The bytes of each kind of request; without a mix, of the one kind.
pub(crate) fn wires(options: &Options) -> Vec<Wire> {
    if options.mix.is_empty() {
        return vec![Wire::new(options, &Target::of(options))];
    }
    let wire = |share: &Share| Wire::new(options, &Target::of_share(share));
    options.mix.iter().map(wire).collect()
}

/// The parts of a request that differ within a mix.
struct Target<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a [u8],
}

impl<'a> Target<'a> {
    fn of(options: &'a Options) -> Target<'a> {
        Target {
            method: &options.method,
            path: &options.url.path,
            body: &options.body,
        }
    }

    fn of_share(share: &'a Share) -> Target<'a> {
        Target {
            method: &share.method,
            path: &share.path,
            body: &share.body,
        }
    }
}

/// Copies of one request: a write of `k` requests is one slice.
#[derive(Debug)]
pub(crate) struct Wire {
    bytes: Vec<u8>,
    /// Length of one request.
    pub(crate) len: usize,
    copies: usize,
    /// The method is idempotent (RFC 9110 §9.2.2), so the request may be sent again.
    pub(crate) is_idempotent: bool,
}

/// Idempotent methods.
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"];

impl Wire {
    fn new(options: &Options, target: &Target<'_>) -> Wire {
        let one = format(options, target);
        let len = one.len();
        let copies = (COPIES_BYTES / len).clamp(1, options.pipeline);
        Wire {
            bytes: one.repeat(copies),
            len,
            copies,
            is_idempotent: IDEMPOTENT.contains(&target.method),
        }
    }

    /// The next bytes to send when `requests` are left and `offset` bytes of the first are already sent.
    pub(crate) fn slice(&self, offset: usize, requests: usize) -> &[u8] {
        &self.bytes[offset..requests.min(self.copies) * self.len]
    }
}

fn format(options: &Options, target: &Target<'_>) -> Vec<u8> {
    let mut fields = Vec::new();
    if !options.keep_alive {
        fields.push(("Connection", "close".to_owned()));
    }
    let chunked = given(&options.headers, "transfer-encoding");
    if let (Some(length), false) = (content_length(target.method, target.body), chunked) {
        fields.push(("Content-Length", length.to_string()));
    }
    let mut request = head(target.method, target.path, &options.url, fields, &options.headers);
    request.extend_from_slice(target.body);
    request
}

/// RFC 9110 §8.6: a method that anticipates content sends its length even if there is none.
pub(crate) fn content_length(method: &str, body: &[u8]) -> Option<usize> {
    let anticipates = matches!(method, "POST" | "PUT" | "PATCH");
    (anticipates || !body.is_empty()).then_some(body.len())
}

/// Returns `true` if the user has set a field.
pub(crate) fn given(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
}

/// A request up to its content. Fields in `headers` replace default fields of the same name.
pub(crate) fn head(
    method: &str,
    path: &str,
    url: &Url,
    fields: Vec<(&str, String)>,
    headers: &[(String, String)],
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let ours = [("Host", url.host())].into_iter().chain(fields);
    let ours = ours.filter(|(name, _)| !given(headers, name));
    let theirs = headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
    for (name, value) in ours.chain(theirs) {
        head.extend([name, ": ", &value, "\r\n"]);
    }
    head.push_str("\r\n");
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options;

    fn text(args: &[&str]) -> String {
        let options = options(args);
        String::from_utf8(format(&options, &Target::of(&options))).expect("ASCII")
    }

    #[test]
    fn the_plain_request_has_only_a_host() {
        assert_eq!(text(&["http://h:1/p?q"]), "GET /p?q HTTP/1.1\r\nHost: h:1\r\n\r\n");
    }

    #[test]
    fn a_body_makes_it_a_post_with_its_length() {
        let expected = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX-A: b\r\n\r\nabc";
        assert_eq!(text(&["http://h/", "--body", "abc", "-H", "X-A:  b "]), expected);
    }

    #[test]
    fn without_keep_alive_the_request_asks_for_the_close() {
        assert!(text(&["http://h/", "--no-keep-alive"]).contains("Connection: close\r\n"));
    }

    #[test]
    fn fields_given_by_the_user_replace_ours() {
        let request = text(&["http://h/", "-m", "PUT", "-H", "host: other", "-H", "content-length: 0"]);
        assert_eq!(request, "PUT / HTTP/1.1\r\nhost: other\r\ncontent-length: 0\r\n\r\n");
    }

    #[test]
    fn slices_continue_where_the_last_write_stopped() {
        let options = options(&["http://h/", "--pipeline", "3"]);
        let wire = Wire::new(&options, &Target::of(&options));
        assert_eq!(wire.slice(0, 2).len(), 2 * wire.len);
        assert_eq!(wire.slice(5, 1), &wire.bytes[5..wire.len]);
        assert_eq!(wire.slice(0, 9).len(), 3 * wire.len, "never more than there are copies");
    }
}
