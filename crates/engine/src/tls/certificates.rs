//! The certificates of a listener, and the choice of one for a peer (RFC 6066 §3).

use super::stapling::Stapled;
use super::x509::{seconds_of, Seconds};
use super::{identity, CertificateSettings, Source};
use crate::clock::unix_seconds;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureScheme};
use std::sync::Arc;
use std::time::SystemTime;

/// The certificates of one listener, in the configured order.
#[derive(Debug)]
pub(super) struct Certificates(Vec<Named>);

#[derive(Debug)]
struct Named {
    /// The hosts of the certificate, in lower case; `*.` stands for one label.
    hosts: Vec<String>,
    key: Stapled,
}

impl Certificates {
    /// Reads and checks the certificates. Also returns warnings.
    pub(super) fn load(
        settings: &[CertificateSettings],
        provider: &CryptoProvider,
        now: SystemTime,
    ) -> Result<(Certificates, Vec<String>), String> {
        let mut warnings = Vec::new();
        let mut all = Vec::new();
        for one in settings {
            let key = certified_key(one, provider)?;
            let (name, own) = (&one.chain.name, &key.cert[0]);
            warnings.extend(
                identity::validity_problem(own, now).map(|problem| format!("{name}: the certificate {problem}")),
            );
            all.push(Named {
                hosts: identity::hosts(own),
                key: Stapled::new(key, one.ocsp.as_ref(), seconds_of(now), &mut warnings)?,
            });
        }
        Ok((Certificates(all), warnings))
    }

    /// Returns the first certificate for the host with a key that the peer supports: exact names first, then wildcards,
    /// then any.
    fn find(&self, host: Option<&str>, schemes: &[SignatureScheme], now: Seconds) -> Option<Arc<CertifiedKey>> {
        let host = host.map(str::to_ascii_lowercase);
        let wildcard = host
            .as_deref()
            .and_then(|host| host.split_once('.'))
            .map(|(_, domain)| format!("*.{domain}"));
        let of = |name: &Option<String>| {
            let name = name.clone();
            self.0
                .iter()
                .filter(move |one| name.as_ref().is_some_and(|name| one.hosts.contains(name)))
        };
        let is_understood = |one: &&Named| one.key.at(now).key.choose_scheme(schemes).is_some();
        let named = || of(&host).chain(of(&wildcard));
        // A key that the peer does not support fails the handshake with the right alert.
        let found = named().find(is_understood).or_else(|| named().next());
        let found = found.or_else(|| self.0.iter().find(is_understood)).or(self.0.first());
        found.map(|one| Arc::clone(one.key.at(now)))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.find(hello.server_name(), hello.signature_schemes(), unix_seconds())
    }
}

fn certified_key(settings: &CertificateSettings, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let (chain, key) = (&settings.chain, &settings.key);
    let certificates = certificates(chain)?;
    let private = PrivateKeyDer::from_pem_slice(&key.bytes).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => format!("{}: it contains no private key in PEM", key.name),
        error => format!("{}: the private key cannot be read: {error}", key.name),
    })?;
    let private = provider.key_provider.load_private_key(private);
    let private = private.map_err(|_| format!("{}: the private key is of a kind that is not supported", key.name))?;
    let pair = CertifiedKey::new(certificates, private);
    match pair.keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(Error::InconsistentKeys(_)) => {
            return Err(format!(
                "the key {} does not belong to the certificate {}",
                key.name, chain.name
            ));
        }
        Err(error) => return Err(format!("{}: the certificate cannot be used: {error}", chain.name)),
    }
    Ok(pair)
}

/// The certificates of a source in PEM, at least one.
pub(super) fn certificates(source: &Source) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(&source.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{}: the certificate cannot be read: {error}", source.name))?;
    if all.is_empty() {
        return Err(format!("{}: it contains no certificate in PEM", source.name));
    }
    Ok(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::tls::tests::authority;

    #[test]
    fn a_host_gets_the_certificate_that_names_it() {
        let authority = authority();
        let settings = ["first.test", "*.wild.test", "exact.wild.test"].map(|host| authority.server(&[host]));
        let provider = rustls::crypto::ring::default_provider();
        let (all, warnings) = Certificates::load(&settings, &provider, SystemTime::now()).unwrap();
        assert!(warnings.is_empty());
        let chosen = |host| {
            let found = all.find(host, &[SignatureScheme::ECDSA_NISTP256_SHA256], 0).unwrap();
            identity::hosts(&found.cert[0]).remove(0)
        };
        assert_eq!(chosen(Some("exact.wild.test")), "exact.wild.test");
        assert_eq!(chosen(Some("EXACT.wild.test")), "exact.wild.test");
        assert_eq!(chosen(Some("other.wild.test")), "*.wild.test");
        assert_eq!(chosen(Some("a.other.wild.test")), "first.test");
        assert_eq!(chosen(Some("wild.test")), "first.test");
        assert_eq!(chosen(None), "first.test");
    }
}
