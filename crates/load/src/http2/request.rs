//! The requests of a run, prepared once before it: the head and the body for h2.

use crate::options::{Options, Share};
use crate::request::{content_length, given};
use crate::url::Url;
use bytes::Bytes;
use http::uri::{PathAndQuery, Uri};
use http::HeaderName;

/// A request that is sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) head: http::Request<()>,
    pub(super) body: Bytes,
}

/// Fields of an HTTP/1.1 connection that HTTP/2 forbids (RFC 9113 §8.2.2).
const FOREIGN: [&str; 6] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The requests of a run, one for each kind; without a mix, one. The error is one line for the user.
pub(crate) fn requests(options: &Options) -> Result<Vec<Request>, String> {
    let one = |method: &str, path: &str, body: &[u8]| Request::new(&options.url, method, path, &options.headers, body);
    if options.mix.is_empty() {
        return Ok(vec![one(&options.method, &options.url.path, &options.body)?]);
    }
    let of_share = |share: &Share| one(&share.method, &share.path, &share.body);
    options.mix.iter().map(of_share).collect()
}

impl Request {
    /// A `Host` among `headers` becomes the authority, as RFC 9113 §8.3.1 requires.
    fn new(url: &Url, method: &str, path: &str, headers: &[(String, String)], body: &[u8]) -> Result<Request, String> {
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        let host = headers.iter().find(|(name, _)| is_host(name));
        let authority = host.map_or_else(|| url.host(), |(_, host)| host.clone());
        let mut head = http::Request::builder().method(method).uri(uri(url, &authority, path)?);
        if let (Some(length), false) = (content_length(method, body), given(headers, "content-length")) {
            head = head.header(http::header::CONTENT_LENGTH, length);
        }
        for (name, value) in headers.iter().filter(|(name, _)| !is_host(name)) {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|why| format!("--header: {name}: {why}"))?;
            if FOREIGN.contains(&name.as_str()) {
                return Err(format!("--header: {name} is forbidden in HTTP/2 (RFC 9113 §8.2.2)"));
            }
            head = head.header(name, value.as_bytes());
        }
        Ok(Request {
            head: head.body(()).map_err(|why| format!("no request for HTTP/2: {why}"))?,
            body: Bytes::copy_from_slice(body),
        })
    }
}

fn uri(url: &Url, authority: &str, path: &str) -> Result<Uri, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{path} at {authority} cannot be requested: {why}");
    let path: PathAndQuery = path.parse().map_err(|why| wrong(&why))?;
    let scheme = if url.secure { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
    uri.build().map_err(|why| wrong(&why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options;

    fn request(args: &[&str]) -> Result<Request, String> {
        requests(&options(args)).map(|mut all| all.remove(0))
    }

    fn fields(request: &Request) -> Vec<(&str, &[u8])> {
        let fields = request.head.headers().iter();
        fields.map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
    }

    #[test]
    fn the_plain_request_has_no_fields() {
        let request = request(&["http://h:1/p?q", "--http2"]).expect("right");
        assert_eq!(request.head.uri(), "http://h:1/p?q");
        assert!(fields(&request).is_empty() && request.body.is_empty());
    }

    #[test]
    fn a_body_makes_it_a_post_with_its_length() {
        let request = request(&["https://h/", "--http2", "--body", "abc", "-H", "X-A: b"]).expect("right");
        assert_eq!(
            (request.head.method().as_str(), &request.body[..]),
            ("POST", &b"abc"[..])
        );
        assert_eq!(fields(&request), [("content-length", &b"3"[..]), ("x-a", &b"b"[..])]);
    }

    #[test]
    fn a_host_becomes_the_authority() {
        let request = request(&["unix:///x.sock", "--http2", "-H", "Host: other:1"]).expect("right");
        assert_eq!(request.head.uri(), "http://other:1/");
        assert!(fields(&request).is_empty());
    }

    #[test]
    fn fields_of_connections_are_refused() {
        for field in ["Connection: close", "transfer-encoding: chunked", "TE: trailers"] {
            let refusal = request(&["http://h/", "--http2", "-H", field]).expect_err(field);
            assert!(refusal.contains("is forbidden in HTTP/2"), "{refusal}");
        }
    }
}
