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
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Signature schemes of the keys that `ring` supports.
const SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ED25519,
];

/// The certificates of one listener. A lookup costs the same beside any number of certificates.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    /// In the configured order.
    all: Vec<Stapled>,
    /// Of all certificates.
    first: FirstOfEachKind,
    /// By host in lower case; `*.` stands for one label.
    by_host: HashMap<String, FirstOfEachKind>,
}

/// Positions of certificates, ascending: the first with each kind of key. A peer that supports a key supports the first one of its kind.
#[derive(Debug, Default)]
struct FirstOfEachKind(Vec<usize>);

impl FirstOfEachKind {
    fn add(&mut self, position: usize, all: &[Stapled]) {
        let kind = schemes(&all[position]);
        if self.0.iter().all(|earlier| schemes(&all[*earlier]) != kind) {
            self.0.push(position);
        }
    }

    fn of<'a>(&'a self, all: &'a [Stapled]) -> impl Iterator<Item = &'a Stapled> {
        self.0.iter().map(|position| &all[*position])
    }
}

/// The key can use these of `SCHEMES`.
fn schemes(one: &Stapled) -> [bool; SCHEMES.len()] {
    let key = &one.at(0).key; // it is the same at any time
    SCHEMES.map(|scheme| key.choose_scheme(&[scheme]).is_some())
}

impl Certificates {
    /// Reads and checks the certificates. Also returns warnings.
    pub(super) fn load(
        settings: &[CertificateSettings],
        provider: &CryptoProvider,
        now: SystemTime,
    ) -> Result<(Certificates, Vec<String>), String> {
        let mut warnings = Vec::new();
        let mut certificates = Certificates::default();
        for one in settings {
            let key = certified_key(one, provider)?;
            let (name, own) = (&one.chain.name, &key.cert[0]);
            warnings.extend(
                identity::validity_problem(own, now).map(|problem| format!("{name}: the certificate {problem}")),
            );
            let hosts = identity::hosts(own);
            certificates.add(
                hosts,
                Stapled::new(key, one.ocsp.as_ref(), seconds_of(now), &mut warnings)?,
            );
        }
        Ok((certificates, warnings))
    }

    fn add(&mut self, hosts: Vec<String>, key: Stapled) {
        let position = self.all.len();
        self.all.push(key);
        self.first.add(position, &self.all);
        for host in hosts {
            self.by_host.entry(host).or_default().add(position, &self.all);
        }
    }

    /// Returns the first certificate for the host with a key that the peer supports: exact names first, then wildcards,
    /// then any. Some clients send a dot at the end of the name, which RFC 6066 forbids.
    fn find(&self, host: Option<&str>, schemes: &[SignatureScheme], now: Seconds) -> Option<Arc<CertifiedKey>> {
        let host = host.map(|host| host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase());
        let wildcard = host
            .as_deref()
            .and_then(|host| host.split_once('.'))
            .map(|(_, domain)| format!("*.{domain}"));
        let of = |name: &Option<String>| {
            let first = name.as_ref().and_then(|name| self.by_host.get(name));
            first.into_iter().flat_map(|first| first.of(&self.all))
        };
        let is_understood = |one: &&Stapled| one.at(now).key.choose_scheme(schemes).is_some();
        let named = || of(&host).chain(of(&wildcard));
        // A key that the peer does not support fails the handshake with the right alert.
        let found = named().find(is_understood).or_else(|| named().next());
        let found = found
            .or_else(|| self.first.of(&self.all).find(is_understood))
            .or(self.all.first());
        found.map(|one| Arc::clone(one.at(now)))
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
    fn the_first_of_several_certificates_for_a_host_is_chosen() {
        let authority = authority();
        let settings =
            [&["other.test"][..], &["twice.test"], &["more.test", "twice.test"]].map(|hosts| authority.server(hosts));
        let provider = rustls::crypto::ring::default_provider();
        let (all, _) = Certificates::load(&settings, &provider, SystemTime::now()).unwrap();
        let chosen = |host| {
            identity::hosts(
                &all.find(Some(host), &[SignatureScheme::ECDSA_NISTP256_SHA256], 0)
                    .unwrap()
                    .cert[0],
            )
        };
        assert_eq!(chosen("twice.test"), ["twice.test"]);
        assert_eq!(chosen("more.test"), ["more.test", "twice.test"]);
    }

    #[test]
    fn a_lookup_considers_one_certificate_of_each_kind_of_key() {
        let authority = authority();
        let host = ["same.test"];
        let mut settings = vec![authority.server(&host), authority.server(&host)];
        settings.push(authority.server_with(&host, &rcgen::PKCS_ECDSA_P384_SHA384));
        settings.push(authority.server_with(&host, &rcgen::PKCS_ED25519));
        settings.push(authority.server(&["other.test"]));
        let provider = rustls::crypto::ring::default_provider();
        let (all, _) = Certificates::load(&settings, &provider, SystemTime::now()).unwrap();
        assert_eq!(all.by_host["same.test"].0, [0, 2, 3]);
        assert_eq!(all.first.0, [0, 2, 3]);
        let chosen = |host, scheme| all.find(Some(host), &[scheme], 0).unwrap();
        for (scheme, position) in [
            (SignatureScheme::ECDSA_NISTP256_SHA256, 0),
            (SignatureScheme::ECDSA_NISTP384_SHA384, 2),
            (SignatureScheme::ED25519, 3),
            (SignatureScheme::RSA_PSS_SHA256, 0), // none; the handshake fails
        ] {
            for host in ["same.test", "unknown.test"] {
                assert!(
                    Arc::ptr_eq(&chosen(host, scheme), all.all[position].at(0)),
                    "{host} {scheme:?}"
                );
            }
        }
        assert!(Arc::ptr_eq(
            &chosen("other.test", SignatureScheme::ED25519),
            all.all[4].at(0)
        ));
    }

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
        assert_eq!(chosen(Some("exact.wild.test.")), "exact.wild.test");
        assert_eq!(chosen(Some("other.wild.test")), "*.wild.test");
        assert_eq!(chosen(Some("other.wild.test.")), "*.wild.test");
        assert_eq!(chosen(Some("a.other.wild.test")), "first.test");
        assert_eq!(chosen(Some("wild.test")), "first.test");
        assert_eq!(chosen(None), "first.test");
    }
}
