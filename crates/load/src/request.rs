//! The bytes of the request, or of each request of a mix, formatted once before the run.

use crate::options::{Options, Share};
use crate::url::Url;

/// Limit for the copies of a request in one buffer, from which one write sends several pipelined requests.
const COPIES_BYTES: usize = 64 * 1024;

/// The bytes of each kind of request; without a mix, of the one kind.
pub(crate) fn wires(options: &Options) -> Vec<Wire> {
    if options.mix.is_empty() {
        return vec![Wire::new(options)];
    }
    let wire = |share: &Share| {
        let mut alone = options.clone();
        alone.url.path.clone_from(&share.path);
        alone.method.clone_from(&share.method);
        alone.body.clone_from(&share.body);
        Wire::new(&alone)
    };
    options.mix.iter().map(wire).collect()
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
    fn new(options: &Options) -> Wire {
        let one = format(options);
        let len = one.len();
        let copies = (COPIES_BYTES / len).clamp(1, options.pipeline);
        Wire {
            bytes: one.repeat(copies),
            len,
            copies,
            is_idempotent: IDEMPOTENT.contains(&options.method.as_str()),
        }
    }

    /// The next bytes to send when `requests` are left and `offset` bytes of the first are already sent.
    pub(crate) fn slice(&self, offset: usize, requests: usize) -> &[u8] {
        &self.bytes[offset..requests.min(self.copies) * self.len]
    }
}

fn format(options: &Options) -> Vec<u8> {
    let mut fields = Vec::new();
    if !options.keep_alive {
        fields.push(("Connection", "close".to_owned()));
    }
    let chunked = given(&options.headers, "transfer-encoding");
    if let (Some(length), false) = (content_length(&options.method, &options.body), chunked) {
        fields.push(("Content-Length", length.to_string()));
    }
    let mut request = head(&options.method, &options.url, fields, &options.headers);
    request.extend_from_slice(&options.body);
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
pub(crate) fn head(method: &str, url: &Url, fields: Vec<(&str, String)>, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("{method} {} HTTP/1.1\r\n", url.path);
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
        String::from_utf8(format(&options(args))).expect("ASCII")
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
        let wire = Wire::new(&options(&["http://h/", "--pipeline", "3"]));
        assert_eq!(wire.slice(0, 2).len(), 2 * wire.len);
        assert_eq!(wire.slice(5, 1), &wire.bytes[5..wire.len]);
        assert_eq!(wire.slice(0, 9).len(), 3 * wire.len, "never more than there are copies");
    }
}
