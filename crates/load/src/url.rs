//! Target URLs: `http://host[:port][/path]`, the same with `https://`, `ws://` or `wss://`, or `unix:///path/to.sock`.
//!
//! Names are resolved here, once, before the run.

use http::uri::{Authority, PathAndQuery};
use http::Uri;
use rustix::net::{SocketAddrAny, SocketAddrUnix};
use serde::Serialize;
use std::net::ToSocketAddrs;

const SCHEMES: &str = "a URL starts with http://, https://, ws://, wss:// or unix://";
const NOT_GRAPHIC: &str = "spaces, control characters and non-ASCII must be percent-encoded";

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Url {
    #[serde(rename = "url")]
    pub(crate) text: String,
    #[serde(skip)]
    pub(crate) endpoint: Endpoint,
    /// Path and query, as they go into the request line.
    pub(crate) path: String,
    /// `ws://` or `wss://`: requests a WebSocket (RFC 6455 §3).
    #[serde(skip)]
    pub(crate) websocket: bool,
    /// `https://` or `wss://`: requests TLS.
    #[serde(skip)]
    pub(crate) secure: bool,
}

/// Address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: String },
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Url, String> {
        Url::read(text).map_err(|why| format!("{text}: {why}"))
    }

    fn read(text: &str) -> Result<Url, String> {
        if let Some(path) = text.strip_prefix("unix://") {
            return Url::of_socket(text, path);
        }
        if !is_graphic(text) {
            return Err(NOT_GRAPHIC.into());
        }
        let uri: Uri = text
            .parse()
            .map_err(|why| format!("{why}; a URL looks like http://localhost:9292/path"))?;
        let (websocket, secure) = match uri.scheme_str() {
            Some("http") => (false, false),
            Some("https") => (false, true),
            Some("ws") => (true, false),
            Some("wss") => (true, true),
            _ => return Err(SCHEMES.into()),
        };
        let authority = uri.authority().ok_or("the host is missing")?;
        Ok(Url {
            text: text.into(),
            endpoint: Endpoint::of(authority, default_port(secure))?,
            path: request_path(uri.path_and_query().map_or("/", PathAndQuery::as_str))?,
            websocket,
            secure,
        })
    }

    fn of_socket(text: &str, path: &str) -> Result<Url, String> {
        if !path.starts_with('/') || path.contains('\0') {
            return Err("a unix URL needs an absolute path, as in unix:///run/app.sock".into());
        }
        Ok(Url {
            text: text.into(),
            endpoint: Endpoint::Unix { path: path.into() },
            path: "/".into(),
            websocket: false,
            secure: false,
        })
    }

    /// Name that a certificate has to match, with TLS.
    pub(crate) fn secure_host(&self) -> Option<&str> {
        match &self.endpoint {
            Endpoint::Tcp { host, .. } if self.secure => Some(host),
            Endpoint::Tcp { .. } | Endpoint::Unix { .. } => None,
        }
    }

    /// The value of the Host field (RFC 9110 §7.2).
    pub(crate) fn host(&self) -> String {
        match &self.endpoint {
            Endpoint::Unix { .. } => "localhost".into(),
            Endpoint::Tcp { host, port } => {
                let host = if host.contains(':') {
                    format!("[{host}]")
                } else {
                    host.clone()
                };
                if *port == default_port(self.secure) {
                    host
                } else {
                    format!("{host}:{port}")
                }
            }
        }
    }
}

impl Endpoint {
    fn of(authority: &Authority, default_port: u16) -> Result<Endpoint, &'static str> {
        if authority.as_str().contains('@') {
            return Err("user names in URLs are not supported; use -H 'Authorization: …'");
        }
        let host = authority.host();
        let port = match authority.as_str()[host.len()..].strip_prefix(':') {
            Some("") => default_port,
            Some(digits) => match digits.parse() {
                Ok(port) if port > 0 => port,
                _ => return Err("the port must be a number from 1 to 65535"),
            },
            None if host.len() == authority.as_str().len() => default_port,
            None => return Err("expected a port after the IPv6 address"),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() {
            return Err("the host is missing");
        }
        Ok(Endpoint::Tcp {
            host: host.into(),
            port,
        })
    }

    /// Every address of the endpoint, in the order in which they are tried; never empty.
    pub(crate) fn resolve(&self) -> Result<Vec<SocketAddrAny>, String> {
        match self {
            Endpoint::Unix { path } => match SocketAddrUnix::new(path.as_str()) {
                Ok(address) => Ok(vec![address.into()]),
                Err(error) => Err(format!("{path}: {error}")),
            },
            Endpoint::Tcp { host, port } => {
                let found = (host.as_str(), *port).to_socket_addrs();
                let addresses: Vec<SocketAddrAny> = found
                    .map_err(|error| format!("{host}: {error}"))?
                    .map(SocketAddrAny::from)
                    .collect();
                if addresses.is_empty() {
                    return Err(format!("{host}: no address found"));
                }
                Ok(addresses)
            }
        }
    }
}

fn default_port(secure: bool) -> u16 {
    if secure {
        443
    } else {
        80
    }
}

/// Checks a request target from the user and drops its fragment, which is never sent (RFC 9110 §4.2.5).
pub(crate) fn request_path(text: &str) -> Result<String, String> {
    let text = text.split('#').next().unwrap_or_default();
    if !is_graphic(text) {
        return Err(format!("{text}: {NOT_GRAPHIC}"));
    }
    if text.starts_with('/') || text == "*" {
        Ok(text.into())
    } else {
        Ok(format!("/{text}"))
    }
}

fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> (String, u16, String, String) {
        let url = Url::parse(text).expect(text);
        let host_field = url.host();
        match url.endpoint {
            Endpoint::Tcp { host, port } => (host, port, url.path, host_field),
            Endpoint::Unix { .. } => panic!("{text} is not a unix URL"),
        }
    }

    #[test]
    fn http_urls_give_host_port_path_and_host_field() {
        let table = [
            ("http://localhost", ("localhost", 80, "/", "localhost")),
            ("http://localhost:9292", ("localhost", 9292, "/", "localhost:9292")),
            (
                "http://a.example:80/x/y?z=1#frag",
                ("a.example", 80, "/x/y?z=1", "a.example"),
            ),
            ("http://127.0.0.1:1?q", ("127.0.0.1", 1, "/?q", "127.0.0.1:1")),
            ("http://[::1]:9292/", ("::1", 9292, "/", "[::1]:9292")),
            ("http://[::1]", ("::1", 80, "/", "[::1]")),
            ("http://host:/", ("host", 80, "/", "host")),
            ("https://host", ("host", 443, "/", "host")),
            ("https://host:80/", ("host", 80, "/", "host:80")),
            ("wss://host:443/", ("host", 443, "/", "host")),
        ];
        for (text, (host, port, path, field)) in table {
            assert_eq!(tcp(text), (host.into(), port, path.into(), field.into()), "{text}");
        }
    }

    #[test]
    fn a_websocket_url_is_an_http_url_of_another_scheme() {
        assert_eq!(
            tcp("ws://localhost:9292/echo"),
            ("localhost".into(), 9292, "/echo".into(), "localhost:9292".into())
        );
        let websocket = |text: &str| Url::parse(text).map(|url| url.websocket);
        assert_eq!((websocket("ws://h/"), websocket("http://h/")), (Ok(true), Ok(false)));
        assert_eq!((websocket("wss://h/"), websocket("https://h/")), (Ok(true), Ok(false)));
    }

    #[test]
    fn the_scheme_says_whether_tls_is_wanted_and_of_whom() {
        let table = [
            ("https://a.example/", Some("a.example")),
            ("wss://[::1]:1/", Some("::1")),
            ("http://a.example/", None),
            ("ws://a.example:443/", None),
            ("unix:///run/app.sock", None),
        ];
        for (text, host) in table {
            assert_eq!(Url::parse(text).expect(text).secure_host(), host, "{text}");
        }
    }

    #[test]
    fn a_unix_url_is_a_socket_path() {
        let url = Url::parse("unix:///run/app.sock").expect("valid");
        assert_eq!(
            url.endpoint,
            Endpoint::Unix {
                path: "/run/app.sock".into()
            }
        );
        assert_eq!((url.path.as_str(), url.host().as_str()), ("/", "localhost"));
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_a_reason() {
        let table = [
            ("localhost:9292", "starts with http://"),
            ("ftp://localhost/", "starts with http://"),
            ("http://", "looks like http://"),
            ("http://:80/", "host is missing"),
            ("http://host:0/", "port"),
            ("http://host:65536/", "port"),
            ("http://host:http/", "port"),
            ("http://me:secret@host/", "user names"),
            ("http://[::1/", "invalid authority"),
            ("http://[::1]x/", "port after"),
            ("http://host:80:81/", "invalid authority"),
            ("http://host/a b", "percent-encoded"),
            ("http://host/é", "percent-encoded"),
            ("unix://relative.sock", "absolute"),
        ];
        for (text, reason) in table {
            let refusal = Url::parse(text).expect_err(text);
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_socket_path_that_the_kernel_cannot_hold_is_refused() {
        let endpoint = Endpoint::Unix {
            path: format!("/{}", "x".repeat(200)),
        };
        assert!(endpoint.resolve().is_err());
    }
}
