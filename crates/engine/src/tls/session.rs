//! The result of a TLS handshake, for the application.

use super::identity::Details;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConnection};
use std::sync::OnceLock;

/// The name of HTTP/2 (RFC 9113 §3.1).
pub(super) const HTTP2: &[u8] = b"h2";

/// The name of HTTP/1.1 (RFC 7301 §6).
pub(super) const HTTP1: &[u8] = b"http/1.1";

/// Bits of an encoded session.
const RESUMED: u8 = 1;
const AGREED_ON_HTTP1: u8 = 2;
const AGREED_ON_HTTP2: u8 = 4;

/// The result of the handshake with a peer, or the result that a trusted proxy reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The version, as OpenSSL names it: `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The cipher suite, as the IANA names it.
    pub cipher: String,
    /// The host that the peer has requested (SNI).
    pub server_name: Option<String>,
    /// The client's certificate chain in DER, its own first; empty if it has sent none.
    pub client_chain: Vec<Vec<u8>>,
    /// The common name of the client's certificate, as a proxy reports it, possibly without the certificate.
    pub common_name: Option<String>,
    /// The result of the check of the client's certificate.
    pub verification: Verification,
    /// An earlier session was resumed.
    pub is_resumed: bool,
    /// HTTP/2 follows (ALPN).
    pub is_http2: bool,
    /// Both sides have agreed on HTTP/1.1 (ALPN); false if they have agreed on nothing.
    pub is_http1: bool,
    /// Derived from the other fields when the application first needs it; empty at first.
    pub details: OnceLock<Box<Details>>,
}

impl Session {
    /// The result of a completed handshake.
    pub(crate) fn of(connection: &ServerConnection) -> Session {
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let suite = connection.negotiated_cipher_suite();
        let chain = connection.peer_certificates().unwrap_or_default();
        Session {
            version: version.to_string(),
            cipher: suite.map_or_else(String::new, |suite| name_of(suite.suite())),
            server_name: connection.server_name().map(str::to_string),
            client_chain: chain.iter().map(|certificate| certificate.to_vec()).collect(),
            common_name: None,
            verification: match chain {
                [] => Verification::None,
                _ => Verification::Success,
            },
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            is_http2: connection.alpn_protocol() == Some(HTTP2),
            is_http1: connection.alpn_protocol() == Some(HTTP1),
            details: OnceLock::new(),
        }
    }

    /// Encodes the result of a handshake for another worker. Facts from a proxy are in its own header.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let flags = [
            (self.is_resumed, RESUMED),
            (self.is_http1, AGREED_ON_HTTP1),
            (self.is_http2, AGREED_ON_HTTP2),
        ];
        let flags = flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .fold(0, |all, (_, bit)| all | bit);
        let mut bytes = vec![flags, self.verification as u8];
        let mut add = |part: &[u8]| {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        };
        add(self.version.as_bytes());
        add(self.cipher.as_bytes());
        // No host has an empty name.
        add(self.server_name.as_deref().unwrap_or_default().as_bytes());
        self.client_chain.iter().for_each(|certificate| add(certificate));
        bytes
    }

    /// Decodes bytes from another worker; `None` if they are malformed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Session> {
        let ([flags, verification], mut rest) = bytes.split_first_chunk()?;
        let mut parts = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (part, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            parts.push(part.to_vec());
            rest = after;
        }
        if !rest.is_empty() {
            return None;
        }
        let mut parts = parts.into_iter();
        let mut text = || String::from_utf8(parts.next()?).ok();
        let (version, cipher, server_name) = (text()?, text()?, text()?);
        Some(Session {
            version,
            cipher,
            server_name: Some(server_name).filter(|name| !name.is_empty()),
            client_chain: parts.collect(),
            // Only proxies report it.
            common_name: None,
            verification: [Verification::None, Verification::Success, Verification::Failed]
                .into_iter()
                .find(|one| *one as u8 == *verification)?,
            is_resumed: flags & RESUMED != 0,
            is_http2: flags & AGREED_ON_HTTP2 != 0,
            is_http1: flags & AGREED_ON_HTTP1 != 0,
            details: OnceLock::new(),
        })
    }

    /// Returns the details, which are derived once for all requests of the connection.
    pub fn details(&self) -> &Details {
        self.details.get_or_init(|| Box::new(Details::of(self)))
    }
}

/// The IANA's name of a cipher suite, in which rustls writes `13` for TLS 1.3.
fn name_of(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}

/// The result of the check of a client's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// There was none.
    #[default]
    None,
    /// It is valid.
    Success,
    /// It is not valid, but the settings admit its owner.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_travels() {
        for (server_name, client_chain) in [(None, vec![]), (Some("localhost"), vec![vec![1; 300], vec![2]])] {
            let session = Session {
                version: "TLSv1.3".into(),
                cipher: "TLS_AES_128_GCM_SHA256".into(),
                server_name: server_name.map(str::to_string),
                client_chain,
                common_name: None,
                verification: Verification::Failed,
                is_resumed: true,
                is_http2: false,
                is_http1: true,
                details: OnceLock::new(),
            };
            let bytes = session.to_bytes();
            assert_eq!(Session::from_bytes(&bytes), Some(session));
            assert_eq!(Session::from_bytes(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Session::from_bytes(&bytes[..4]), None);
        }
    }
}
