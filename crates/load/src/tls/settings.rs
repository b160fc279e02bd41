//! Trusted authorities, the client's certificate, versions and ALPN.
//!
//! Without `--cacert`, clients use the system's trusted certificates (rustls-native-certs): a certificate that works in
//! a browser or in curl on this machine works here, including an organisation's own authority, and the list is as new
//! as the system's. A compiled-in list would have neither property.

use crate::options::{TlsOptions, Trust};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The one protocol to offer by ALPN (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// Also for WebSockets. Servers need not agree to it.
    Http1,
    /// Servers have to agree to it (RFC 9113 §3.2).
    Http2,
}

impl Alpn {
    pub(super) fn id(self) -> &'static [u8] {
        match self {
            Alpn::Http1 => b"http/1.1",
            Alpn::Http2 => b"h2",
        }
    }
}

pub(super) fn config(options: &TlsOptions, alpn: Alpn) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(options.versions())
        .map_err(|error| error.to_string())?;
    let builder = match &options.trust {
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Credulous(provider))),
        Trust::System => builder.with_root_certificates(system_authorities()?),
        Trust::Authorities(certificates) => builder.with_root_certificates(authorities(certificates)?),
    };
    let mut config = identify(builder, options)?;
    config.alpn_protocols = vec![alpn.id().to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn identify(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    options: &TlsOptions,
) -> Result<ClientConfig, String> {
    let Some(identity) = &options.identity else {
        return Ok(builder.with_no_client_auth());
    };
    builder
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(|error| format!("--cert: {error}"))
}

fn authorities(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("--cacert: {error}"))?;
    }
    Ok(roots)
}

fn system_authorities() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems have old certificates that no parser accepts any more; the others are good.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found
            .errors
            .first()
            .map_or(String::new(), |error| format!(" ({error})"));
        return Err(format!(
            "this system has no trusted certificates{why}; use --cacert FILE or --insecure"
        ));
    }
    Ok(roots)
}

/// Accepts every server. Anybody could have made the certificate, so its signature is not checked either.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
