//! The secret that permits a request to control the server, and its check. Without a secret, every program that reaches
//! the control server is permitted, except web pages: browsers mark their requests, and name the host of the page.

use super::request::Request;
use ring::digest::{digest, SHA256};
use std::net::{Ipv4Addr, Ipv6Addr};
use subtle::ConstantTimeEq;

/// Most values of `token` that are checked in one request.
const GUESSES: usize = 4;

/// The check of requests.
#[derive(Debug)]
pub(super) struct Token {
    /// SHA-256 of the secret. Digests have the same length, and the time to compare them reveals nothing about the
    /// secret.
    digest: Option<Vec<u8>>,
    /// The host in the address of the control server, in lower case; `None` for a Unix socket.
    host: Option<String>,
}

impl Token {
    /// `text`: `None` if there is no secret. `url`: the address of the control server.
    pub(super) fn new(text: Option<&str>, url: &str) -> Token {
        Token {
            digest: text.map(|text| sha256(text.as_bytes())),
            host: host_of(url),
        }
    }

    /// Returns true if the request has the secret: as `?token=`, or as `authorization: Bearer`.
    pub(super) fn allows(&self, request: &Request) -> bool {
        let Some(digest) = &self.digest else {
            return is_own_page(request) && self.is_own_host(request);
        };
        let given = request.parameters("token").take(GUESSES);
        let mut texts = given
            .flat_map(|text| [text.to_vec(), unescape(text)])
            .chain(bearer(request));
        texts.any(|text| sha256(&text).ct_eq(digest).into())
    }

    /// Returns true if a page of another origin may have made a request without the secret. Browsers mark their requests
    /// only for addresses that they trust: `https`, and the loopback interface.
    pub(super) fn suspects(&self, request: &Request) -> bool {
        let is_browser = || {
            request
                .field("user-agent")
                .is_some_and(|name| name.starts_with(b"Mozilla/"))
        };
        self.digest.is_none() && request.field("sec-fetch-site").is_none() && is_browser()
    }

    /// The text for a request that is not allowed; the first one is Puma's.
    pub(super) fn refusal(&self) -> &'static str {
        match self.digest {
            Some(_) => "Invalid auth token",
            None => "The request comes from a web page, or is for another host",
        }
    }

    /// A page can have its own host name resolve to an address of this machine (DNS rebinding). The request then names
    /// that host, so an address in the field is safe. Programs other than browsers need not send a host. For a Unix
    /// socket the host means nothing, and browsers cannot reach one.
    fn is_own_host(&self, request: &Request) -> bool {
        let (Some(own), Some(field)) = (&self.host, request.field("host")) else {
            return true;
        };
        let Ok(field) = std::str::from_utf8(field) else {
            return false;
        };
        let field = field.to_ascii_lowercase();
        let host = without_port(&field, 0);
        let host = host.strip_suffix('.').unwrap_or(host);
        host == "localhost" || host == own || is_address(host)
    }
}

/// Browsers' marks on requests that no page of another origin has made (Fetch Metadata).
fn is_own_page(request: &Request) -> bool {
    matches!(request.field("sec-fetch-site"), None | Some(b"none" | b"same-origin"))
}

fn sha256(text: &[u8]) -> Vec<u8> {
    digest(&SHA256, text).as_ref().to_vec()
}

fn host_of(url: &str) -> Option<String> {
    let rest = url.strip_prefix("tcp://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    Some(without_port(authority, 1).to_ascii_lowercase())
}

/// Removes a colon and the digits after it, if there are at least `least` digits.
fn without_port(authority: &str, least: usize) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.len() >= least && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.map_or_else(
        || host.parse::<Ipv4Addr>().is_ok(),
        |inner| inner.parse::<Ipv6Addr>().is_ok(),
    )
}

/// Decodes percent-encoded bytes (%2F).
fn unescape(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, others)) = rest.split_first() {
        let escaped = others.get(..2).filter(|_| *first == b'%').and_then(byte_of);
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &others[2..] } else { others };
    }
    bytes
}

fn byte_of(digits: &[u8]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

fn bearer(request: &Request) -> Option<Vec<u8>> {
    let value = request.field("authorization")?;
    let (scheme, rest) = (value.get(..6)?, &value[6..]);
    let text = rest.trim_ascii_start();
    let spaces = rest.len() - text.len();
    let is_one = scheme.eq_ignore_ascii_case(b"bearer") && spaces > 0 && !text.iter().any(u8::is_ascii_whitespace);
    (is_one && !text.is_empty()).then(|| text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, field: &str) -> Request {
        let end = if field.is_empty() { "" } else { "\r\n" };
        Request::parse(format!("GET {target} HTTP/1.1{end}{field}").as_bytes()).expect("a head")
    }

    fn secret(text: &str) -> Token {
        Token::new(Some(text), "tcp://127.0.0.1:9293")
    }

    #[test]
    fn it_is_taken_from_the_query_as_puma_has_it() {
        let token = secret("s3cret");
        let allows = |target| token.allows(&request(target, ""));

        assert!(allows("/stop?token=s3cret"));
        assert!(allows("/stop?a=b&token=s3cret"));
        for target in [
            "/stop",
            "/stop?token=",
            "/stop?token=s3cre",
            "/stop?token=s3cret1",
            "/stop?xtoken=s3cret",
        ] {
            assert!(!allows(target), "{target}");
        }
    }

    #[test]
    fn only_the_first_four_are_looked_at() {
        let token = secret("s3cret");
        let allows = |wrong: usize| token.allows(&request(&format!("/?{}token=s3cret", "token=x&".repeat(wrong)), ""));

        assert!(allows(3));
        assert!(!allows(4));
    }

    #[test]
    fn it_is_taken_from_a_bearer_field() {
        let token = secret("s3cret");
        let allows = |value: &str| token.allows(&request("/stop", &format!("Authorization: {value}")));

        assert!(allows("Bearer s3cret") && allows("bearer   s3cret"));
        for value in [
            "Basic s3cret",
            "Bearer other",
            "Bearers3cret",
            "Bearer",
            "Bearer s3cret x",
            "",
        ] {
            assert!(!allows(value), "{value:?}");
        }
    }

    #[test]
    fn it_may_be_escaped_in_the_query() {
        assert!(secret("a b%/ä").allows(&request("/?token=a%20b%25%2F%C3%a4", "")));
        assert!(secret("%zz%1").allows(&request("/?token=%zz%1", "")));
    }

    #[test]
    fn without_a_secret_everything_is_allowed_but_pages_of_other_origins() {
        let token = Token::new(None, "unix:///run/control.sock");
        let allows = |field: &str| token.allows(&request("/stop", field));

        assert!(allows("") && allows("Sec-Fetch-Site: none") && allows("sec-fetch-site: same-origin"));
        assert!(!allows("Sec-Fetch-Site: cross-site") && !allows("Sec-Fetch-Site: same-site"));
    }

    #[test]
    fn without_a_secret_a_name_that_was_made_to_lead_here_is_refused() {
        let token = Token::new(None, "tcp://Shop.internal:9293");
        let allows = |host: &str| token.allows(&request("/stop", &format!("Host: {host}")));

        for host in [
            "localhost:9293",
            "LOCALHOST",
            "127.0.0.1:9293",
            "10.0.0.1",
            "[::1]:9293",
            "shop.internal:9293",
            "shop.internal.",
        ] {
            assert!(allows(host), "{host}");
        }
        for host in [
            "evil.example:9293",
            "127.0.0.1.evil.example",
            "1.2.3.4.5",
            "localhost.evil.example",
            "[evil.example]",
            "shop",
            "",
        ] {
            assert!(!allows(host), "{host:?}");
        }
        assert!(token.allows(&request("/stop", "")));
    }

    #[test]
    fn at_a_unix_socket_or_with_a_secret_the_host_means_nothing() {
        assert!(Token::new(None, "unix:///run/control.sock").allows(&request("/stop", "Host: anything")));
        assert!(secret("s3cret").allows(&request("/stop?token=s3cret", "Host: anything.example")));
    }

    #[test]
    fn without_a_secret_a_browser_must_mark_its_request() {
        let suspects = |token: &Token, fields: &str| token.suspects(&request("/stop", fields));
        let open = Token::new(None, "tcp://10.0.0.1:9293");
        assert!(suspects(&open, "User-Agent: Mozilla/5.0 (X11)"));
        assert!(!suspects(&open, "User-Agent: curl/8"));
        assert!(!suspects(&open, ""));
        assert!(!suspects(
            &open,
            "User-Agent: Mozilla/5.0\r\nSec-Fetch-Site: same-origin"
        ));
        assert!(!suspects(&secret("s3cret"), "User-Agent: Mozilla/5.0"));
    }
}
