//! Connections to an authority: TCP, perhaps through a proxy, then TLS, within a time limit.

use crate::input::Proxy;
use crate::problem::Problem;
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::TlsConnector;

/// Time limit for a connection, including the lookup of the name and TLS.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The longest head of a response, in bytes.
const HEAD_MOST: usize = 64 * 1024;

/// The longest response of a proxy, in bytes.
const PROXY_HEAD_MOST: usize = 8 * 1024;

/// Makes connections.
pub(crate) struct Dialer {
    tls: TlsConnector,
    proxy: Option<Proxy>,
}

/// A host and a port.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Origin {
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an address that begins with `https`.
    pub(crate) fn of(uri: &Uri) -> Result<Origin, Problem> {
        let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
        let host =
            host.ok_or_else(|| Problem::malformed(format!("the address {uri} of the authority is not https")))?;
        Ok(Origin {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(443),
        })
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> Problem {
        Problem::new("connection", format!("cannot reach {self}: {reason}"))
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

impl Dialer {
    pub(crate) fn new(tls: ClientConfig, proxy: Option<Proxy>) -> Dialer {
        Dialer {
            tls: TlsConnector::from(Arc::new(tls)),
            proxy,
        }
    }

    /// A new connection for requests.
    pub(crate) async fn connect(&self, origin: &Origin) -> Result<SendRequest<Full<Bytes>>, Problem> {
        let connected = tokio::time::timeout(TIMEOUT, self.secured(origin)).await;
        connected.map_err(|_| origin.failed(&format!("no connection within {} s", TIMEOUT.as_secs())))?
    }

    async fn secured(&self, origin: &Origin) -> Result<SendRequest<Full<Bytes>>, Problem> {
        let failed = |error: &dyn std::fmt::Display| origin.failed(error);
        let name = ServerName::try_from(origin.host.clone()).map_err(|error| failed(&error))?;
        let socket = match &self.proxy {
            None => dial(&origin.host, origin.port).await,
            Some(proxy) => through(proxy, origin).await,
        };
        let socket = socket.map_err(|error| failed(&error))?;
        let stream = self.tls.connect(name, socket).await.map_err(|error| failed(&error))?;
        let opened = http1::Builder::new()
            .max_buf_size(HEAD_MOST)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = opened.map_err(|error| failed(&error))?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn dial(host: &str, port: u16) -> std::io::Result<TcpStream> {
    TcpStream::connect((host, port)).await
}

/// A tunnel (RFC 9110 §9.3.6).
async fn through(proxy: &Proxy, origin: &Origin) -> std::io::Result<TcpStream> {
    let mut socket = dial(&proxy.host, proxy.port).await?;
    let authorization = proxy
        .authorization
        .iter()
        .map(|value| format!("Proxy-Authorization: {value}\r\n"));
    let fields: String = authorization.collect();
    let request = format!("CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\n{fields}\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= PROXY_HEAD_MOST {
            return Err(std::io::Error::other("the response of the proxy is too long"));
        }
        // A byte at a time, because the following bytes belong to TLS.
        head.push(socket.read_u8().await?);
    }
    match head.split(|byte| *byte == b' ').nth(1) {
        Some(status) if status.starts_with(b"2") => Ok(socket),
        _ => Err(std::io::Error::other(format!(
            "the proxy {}:{} has refused to connect",
            proxy.host, proxy.port
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_name_or_an_address() {
        let origin = |text: &str| {
            Origin::of(&text.parse().expect("an address")).map(|origin| (origin.host.clone(), origin.to_string()))
        };
        let pair = |one: &str, two: &str| (one.to_owned(), two.to_owned());
        assert_eq!(
            origin("https://ca.example/dir").ok(),
            Some(pair("ca.example", "ca.example:443"))
        );
        assert_eq!(origin("https://[::1]:14000/dir").ok(), Some(pair("::1", "[::1]:14000")));
        assert!(origin("http://ca.example/dir").is_err());
        assert!(origin("/dir").is_err());
    }
}
