//! Where to connect to: `http://host[:port][/path]`, the same with `ws://`, or `unix:///path/to.sock`.
//!
//! Names are resolved here, once, before the run.

use rustix::net::{SocketAddrAny, SocketAddrUnix};
use std::net::ToSocketAddrs;

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) text: String,
    pub(crate) endpoint: Endpoint,
    /// Path and query, as they go into the request line.
    pub(crate) path: String,
    /// `ws://`: a WebSocket is wanted (RFC 6455 §3).
    pub(crate) websocket: bool,
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: String },
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Url, String> {
        let websocket = text.starts_with("ws://");
        if let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("ws://")) {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let (host, port) = split_authority(authority).map_err(|why| format!("{text}: {why}"))?;
            let endpoint = Endpoint::Tcp { host, port };
            return Ok(Url {
                text: text.into(),
                endpoint,
                path: request_path(path)?,
                websocket,
            });
        }
        if let Some(path) = text.strip_prefix("unix://") {
            if !path.starts_with('/') || path.contains('\0') {
                return Err(format!(
                    "{text}: a unix URL needs an absolute path, as in unix:///run/app.sock"
                ));
            }
            return Ok(Url {
                text: text.into(),
                endpoint: Endpoint::Unix { path: path.into() },
                path: "/".into(),
                websocket,
            });
        }
        if text.starts_with("https://") {
            return Err(format!("{text}: https is not supported; measure the plain HTTP port"));
        }
        if text.starts_with("wss://") {
            return Err(format!(
                "{text}: wss is not supported; measure the plain WebSocket port"
            ));
        }
        Err(format!("{text}: a URL starts with http://, ws:// or unix://"))
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
                if *port == 80 {
                    host
                } else {
                    format!("{host}:{port}")
                }
            }
        }
    }
}

impl Endpoint {
    /// Every address the endpoint has, in the order they should be tried; never empty.
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

/// Checks a request target given by the user and drops its fragment, which never goes on the wire (RFC 9110 §4.2.5).
pub(crate) fn request_path(text: &str) -> Result<String, String> {
    let text = text.split('#').next().unwrap_or_default();
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "{text}: spaces, control characters and non-ASCII must be percent-encoded"
        ));
    }
    if text.starts_with('/') || text == "*" {
        Ok(text.into())
    } else {
        Ok(format!("/{text}"))
    }
}

fn split_authority(authority: &str) -> Result<(String, u16), &'static str> {
    if authority.contains('@') {
        return Err("user names in URLs are not supported; use -H 'Authorization: …'");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest
                .split_once(']')
                .ok_or("the bracket of the IPv6 address is not closed")?;
            match after {
                "" => (host, None),
                _ => (
                    host,
                    Some(
                        after
                            .strip_prefix(':')
                            .ok_or("expected a port after the IPv6 address")?,
                    ),
                ),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("the host is missing");
    }
    let port = match port {
        None | Some("") => 80,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err("the port must be a number from 1 to 65535"),
        },
    };
    Ok((host.into(), port))
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
            ("https://localhost/", "https"),
            ("wss://localhost/", "wss"),
            ("localhost:9292", "starts with http://"),
            ("http://", "host is missing"),
            ("http://:80/", "host is missing"),
            ("http://host:0/", "port"),
            ("http://host:65536/", "port"),
            ("http://host:http/", "port"),
            ("http://me:secret@host/", "user names"),
            ("http://[::1/", "not closed"),
            ("http://[::1]x/", "port after"),
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
