//! Checks the certificates of clients: the chain (`chain.rs`), the checks of rustls, and revocation (`revocation.rs`).

use super::chain::Authorities;
use super::revocation::Lists;
use super::x509::{Algorithms, X509};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Most certificates that a client may send.
const MOST_SENT: usize = 8;

/// Most bytes of authority names that are sent to clients: a message of TLS 1.3 has 64 KiB for them and all else.
const NAMES_BYTES: usize = 32 * 1024;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Verifier {
    authorities: Authorities,
    /// For each authority, the checks of rustls for a chain that ends with it.
    anchors: Vec<Arc<dyn ClientCertVerifier>>,
    names: Vec<DistinguishedName>,
    lists: Option<Lists>,
    algorithms: Algorithms,
    /// Clients need a certificate.
    is_strict: bool,
}

/// The number of certificates that a client has sent, if there are too many.
#[derive(Debug)]
struct TooMany(usize);

impl fmt::Display for TooMany {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "it has sent {} certificates; at most {MOST_SENT} are checked",
            self.0
        )
    }
}

impl std::error::Error for TooMany {}

/// The reason for a failed handshake, for the log. rustls shows our errors as their fields.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(own))) => own.to_string(),
        error => error.to_string(),
    }
}

impl Verifier {
    /// `certificates`: the authorities.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        lists: Option<Lists>,
        is_strict: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let mut authorities = Authorities::default();
        let (mut anchors, mut names) = (Vec::new(), Vec::new());
        for certificate in certificates {
            let mut root = RootCertStore::empty();
            root.add(certificate.clone()).map_err(|error| error.to_string())?;
            names.extend(root.subjects());
            let builder = WebPkiClientVerifier::builder_with_provider(root.into(), Arc::clone(provider));
            anchors.push(builder.build().map_err(|error| error.to_string())?);
            authorities.add(certificate).ok_or("a field is malformed")?;
        }
        let algorithms = provider.signature_verification_algorithms.all;
        if let Some(lists) = &lists {
            authorities.all().for_each(|issuer| lists.prepare(&issuer, algorithms));
        }
        let mut seen = HashSet::new();
        names.retain(|name: &DistinguishedName| seen.insert(name.as_ref().to_vec()));
        if names.iter().map(|name| name.as_ref().len() + 2).sum::<usize>() > NAMES_BYTES {
            names.clear();
        }
        Ok(Verifier {
            authorities,
            anchors,
            names,
            lists,
            algorithms,
            is_strict,
        })
    }

    /// Returns true if the names of the accepted authorities are sent to clients.
    pub(super) fn tells_names(&self) -> bool {
        !self.names.is_empty()
    }

    fn check(&self, own: &CertificateDer<'_>, rest: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let count = 1 + rest.len();
        if count > MOST_SENT {
            return Err(CertificateError::Other(OtherError(Arc::new(TooMany(count)))).into());
        }
        let sent = std::iter::once(own).chain(rest).map(|one| X509::read(one));
        let sent = sent.collect::<Option<Vec<_>>>().ok_or(CertificateError::BadEncoding)?;
        let seconds = now.as_secs();
        let chain = self.authorities.chain(&sent, seconds, self.algorithms)?;
        let links = &chain.links[1..chain.links.len().max(2) - 1];
        let between: Vec<CertificateDer<'_>> = links.iter().map(|link| link.der.into()).collect();
        self.anchors[chain.anchor].verify_client_cert(own, &between, now)?;
        chain.check(seconds)?;
        match &self.lists {
            Some(lists) => Ok(lists.check(&chain, seconds, self.algorithms)?),
            None => Ok(()),
        }
    }
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_strict
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.names
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(own, rest, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.anchors[0].verify_tls12_signature(message, own, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.anchors[0].verify_tls13_signature(message, own, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.anchors[0].supported_verify_schemes()
    }
}
