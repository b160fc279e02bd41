//! Trusted authorities: web servers with a certificate that the system trusts, or with one from the file that the order
//! names.

use crate::problem::Problem;
use std::fmt;
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_name, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// TLS settings for an authority. `ca`: the path of a file with the only trusted certificates.
pub(crate) fn settings(ca: Option<&str>) -> Result<ClientConfig, Problem> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    Ok(match ca {
        None => builder.with_root_certificates(of_system()?).with_no_client_auth(),
        Some(path) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Named::new(path)?))
            .with_no_client_auth(),
    })
}

fn unusable(reason: &dyn fmt::Display) -> Problem {
    Problem::new("connection", format!("TLS cannot be used: {reason}"))
}

fn of_system() -> Result<RootCertStore, Problem> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(unusable(
            &"this system has no trusted certificates; install ca-certificates",
        ));
    }
    Ok(roots)
}

/// Trusts the certificates of a file, and certificates that they have issued.
#[derive(Debug)]
struct Named {
    certificates: Vec<CertificateDer<'static>>,
    issued: Arc<WebPkiServerVerifier>,
}

impl Named {
    fn new(path: &str) -> Result<Named, Problem> {
        let unreadable =
            |error: &dyn fmt::Display| Problem::new("connection", format!("ca: {path} cannot be used: {error}"));
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
        let certificates = certificates
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(&error))?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()))
            .build()
            .map_err(|error| unreadable(&error))?;
        Ok(Named { certificates, issued })
    }
}

impl ServerCertVerifier for Named {
    /// A server may also use a certificate of the file itself, even a CA certificate.
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|own| own == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.issued.verify_server_cert(certificate, others, name, stapled, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}
