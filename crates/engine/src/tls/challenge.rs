//! The challenge of a certificate authority that is solved with a certificate (TLS-ALPN-01, RFC 8737).

use crate::acme::Challenges;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ClientHello;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::ServerConfig;
use std::sync::Arc;

/// The ALPN protocol of such a handshake. Nothing is sent after it.
pub(crate) const PROTOCOL: &[u8] = b"acme-tls/1";

/// The configuration for the authority that has sent `hello`. `None` for any other client, and if there is no
/// certificate for the host.
pub(super) fn config_for(challenges: &Challenges, hello: &ClientHello<'_>) -> Option<Arc<ServerConfig>> {
    // It offers no other protocol (RFC 8737 §3).
    let mut protocols = hello.alpn()?;
    if protocols.next() != Some(PROTOCOL) || protocols.next().is_some() {
        return None;
    }
    config(&challenges.certificate(hello.server_name()?)?)
}

/// The certificate is not checked: rustls does not know its critical extension.
fn config(pem: &[u8]) -> Option<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
    let key = provider.key_provider.load_private_key(key).ok()?;
    let certificate = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    Some(Arc::new(config))
}
