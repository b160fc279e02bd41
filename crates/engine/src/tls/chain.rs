//! The chain from a client's certificate to a trusted authority, and the rules for it that rustls does not check.
//!
//! The search is cheap, even with hostile input: it goes by names, and checks signatures from the trusted end, so the
//! first certificate that no authority has issued ends it.

use super::constraints;
use super::x509::{Algorithms, Seconds, X509};
use rustls::pki_types::CertificateDer;
use rustls::CertificateError;
use std::collections::HashMap;

/// Most signatures that are checked, and most certificates that are tried for a position in the chain.
const SIGNATURES: usize = 16;
const STEPS: usize = 64;

/// Most certificates in a chain.
const LONGEST: usize = 9;

/// The purpose "client authentication" (RFC 5280 §4.2.1.12).
const CLIENT_AUTHENTICATION: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// Trusted certificates, by name.
#[derive(Debug, Default)]
pub(super) struct Authorities {
    all: Vec<CertificateDer<'static>>,
    by_subject: HashMap<Vec<u8>, Vec<usize>>,
}

/// A client's certificate, intermediate certificates, and the trusted one, which may be the client's own.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    pub(super) links: Vec<X509<'a>>,
    /// The number of the last certificate among the trusted ones.
    pub(super) anchor: usize,
}

/// The state of one search, with its remaining budget.
struct Search<'s, 'a> {
    authorities: &'a Authorities,
    sent: &'s [X509<'a>],
    now: Seconds,
    algorithms: Algorithms,
    signatures: usize,
    steps: usize,
}

impl Authorities {
    /// Adds a certificate; returns `None` if it cannot be read.
    pub(super) fn add(&mut self, certificate: CertificateDer<'static>) -> Option<()> {
        let subject = X509::read(&certificate)?.subject.to_vec();
        let number = self.all.len();
        self.by_subject.entry(subject).or_default().push(number);
        self.all.push(certificate);
        Some(())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = X509<'_>> {
        self.all.iter().filter_map(|one| X509::read(one))
    }

    /// The certificates with this name, with their numbers.
    fn named<'a>(&'a self, subject: &[u8]) -> impl Iterator<Item = (usize, X509<'a>)> {
        let numbers = self.by_subject.get(subject).into_iter().flatten();
        numbers.filter_map(|number| Some((*number, X509::read(&self.all[*number])?)))
    }

    /// The certificates that can have issued `certificate`; first those valid at `now`.
    fn issuers_of<'a>(&'a self, certificate: &X509<'_>, now: Seconds) -> Vec<(usize, X509<'a>)> {
        let named = self.named(certificate.issuer);
        let mut issuers: Vec<_> = named
            .filter(|(_, one)| one.der != certificate.der && certificate.names_as_issuer(one))
            .collect();
        issuers.sort_by_key(|(_, one)| !one.is_valid(now));
        issuers
    }

    /// The number of a certificate, if it is a trusted one.
    fn number_of(&self, certificate: &X509<'_>) -> Option<usize> {
        let mut named = self.named(certificate.subject);
        named
            .find(|(_, one)| one.der == certificate.der)
            .map(|(number, _)| number)
    }

    /// Finds the chain of the first certificate of `sent`, up to a self-signed one if the trusted certificates lead
    /// there.
    ///
    /// # Errors
    /// If there is no chain, or the search is too expensive.
    pub(super) fn chain<'a>(
        &'a self,
        sent: &[X509<'a>],
        now: Seconds,
        algorithms: Algorithms,
    ) -> Result<Chain<'a>, CertificateError> {
        let mut search = Search {
            authorities: self,
            sent,
            now,
            algorithms,
            signatures: SIGNATURES,
            steps: STEPS,
        };
        let mut links = vec![sent.first().ok_or(CertificateError::UnknownIssuer)?.clone()];
        let anchor = search.complete(&mut links).ok_or(CertificateError::UnknownIssuer)?;
        Ok(Chain { links, anchor })
    }
}

impl<'s, 'a> Search<'s, 'a> {
    /// Adds the missing certificates after the last one of `links`. Returns the number of the trusted one at the end.
    fn complete(&mut self, links: &mut Vec<X509<'a>>) -> Option<usize> {
        self.steps = self.steps.checked_sub(1)?;
        let last = links.last()?.clone();
        let own = self.authorities.number_of(&last);
        if let Some(number) = own.filter(|_| last.is_self_signed()) {
            return self.is_signed(links).then_some(number);
        }
        let issuers = self.authorities.issuers_of(&last, self.now);
        for (_, issuer) in &issuers {
            if let Some(anchor) = self.complete_with(issuer.clone(), links) {
                return Some(anchor);
            }
        }
        // A client's own certificate is trusted only with its issuer. Any other one is the end if its issuer is not
        // trusted.
        if let Some(number) = own.filter(|_| links.len() > 1) {
            return (issuers.is_empty() && self.is_signed(links)).then_some(number);
        }
        let issuers = self.sent_issuers_of(&last);
        issuers
            .into_iter()
            .find_map(|issuer| self.complete_with(issuer.clone(), links))
    }

    /// The certificates that the client has sent and that can have issued `certificate`; first those valid now.
    fn sent_issuers_of(&self, certificate: &X509<'_>) -> Vec<&'s X509<'a>> {
        let others = self.sent.iter().skip(1);
        let mut issuers: Vec<_> = others.filter(|one| certificate.names_as_issuer(one)).collect();
        issuers.sort_by_key(|one| !one.is_valid(self.now));
        issuers
    }

    fn complete_with(&mut self, issuer: X509<'a>, links: &mut Vec<X509<'a>>) -> Option<usize> {
        // A key that occurs twice leads in a circle.
        let is_known = |link: &X509<'_>| link.key.whole == issuer.key.whole && link.subject == issuer.subject;
        if links.len() == LONGEST || links.iter().any(is_known) {
            return None;
        }
        links.push(issuer);
        let anchor = self.complete(links);
        if anchor.is_none() {
            links.pop();
        }
        anchor
    }

    /// Returns true if each certificate has signed the one before it.
    fn is_signed(&mut self, links: &[X509<'a>]) -> bool {
        links.windows(2).rev().all(|pair| {
            let is_left = self.signatures > 0;
            self.signatures = self.signatures.saturating_sub(1);
            is_left && pair[0].signed.is_by(&pair[1].key, self.algorithms)
        })
    }
}

impl X509<'_> {
    pub(super) fn is_valid(&self, now: Seconds) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    fn check_time(&self, now: Seconds) -> Result<(), CertificateError> {
        match now {
            _ if now < self.not_before => Err(CertificateError::NotValidYet),
            _ if now > self.not_after => Err(CertificateError::Expired),
            _ => Ok(()),
        }
    }

    /// Returns true if it may be the certificate of a client.
    fn is_for_clients(&self) -> bool {
        let of = &self.extensions;
        let signs = of.has_usage(0) != Some(false) || of.has_usage(4) == Some(true);
        signs && self.serves_clients() && of.has_netscape_type(0) != Some(false)
    }

    /// Returns true if its purposes include client authentication.
    fn serves_clients(&self) -> bool {
        self.extensions.has_purpose(CLIENT_AUTHENTICATION) != Some(false)
    }
}

impl Chain<'_> {
    /// Checks the rules of OpenSSL for each certificate. rustls checks fewer rules for intermediate certificates, and
    /// none for the trusted one.
    pub(super) fn check(&self, now: Seconds) -> Result<(), CertificateError> {
        // Number of certificates between this one and the client's, as far as they count (RFC 5280 §4.2.1.9).
        let mut below = 0;
        for (index, link) in self.links.iter().enumerate() {
            link.check_time(now)?;
            let serves = match index {
                0 => link.is_for_clients(),
                _ => link.serves_clients(),
            };
            if !serves {
                return Err(CertificateError::InvalidPurpose);
            }
            let is_too_long = index > 1 && link.most_below().is_some_and(|most| below > most);
            if index > 0 && (!link.is_authority() || is_too_long) {
                return Err(CertificateError::UnknownIssuer);
            }
            below += usize::from(index > 0 && !link.is_self_issued());
        }
        if self.links.last().is_some_and(X509::has_unknown_critical_extension) {
            return Err(CertificateError::UnhandledCriticalExtension);
        }
        constraints::check(&self.links)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    type Issuer = CertifiedIssuer<'static, KeyPair>;

    fn params(name: &str, is_authority: bool) -> CertificateParams {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    }

    fn authority(name: &str) -> Issuer {
        Issuer::self_signed(params(name, true), KeyPair::generate().unwrap()).unwrap()
    }

    fn search<'s, 'a>(authorities: &'a Authorities, sent: &'s [X509<'a>]) -> Search<'s, 'a> {
        Search {
            authorities,
            sent,
            now: 1_800_000_000,
            algorithms: rustls::crypto::ring::default_provider()
                .signature_verification_algorithms
                .all,
            signatures: SIGNATURES,
            steps: STEPS,
        }
    }

    #[test]
    fn a_stranger_causes_few_steps_and_one_signature() {
        // Seven of the same name: each could be the issuer of each, and none is an authority's.
        let mut strangers: Vec<_> = (0..7).map(|_| authority("stranger")).collect();
        let trusted = authority("trusted");
        let mut authorities = Authorities::default();
        authorities.add(trusted.der().clone()).unwrap();
        let own = params("own", false)
            .signed_by(&KeyPair::generate().unwrap(), &strangers[0])
            .unwrap();
        let sent: Vec<_> = std::iter::once(own.der())
            .chain(strangers.iter().map(|one| one.der()))
            .collect();
        let sent: Vec<_> = sent.into_iter().map(|one| X509::read(one).unwrap()).collect();
        let mut idle = search(&authorities, &sent);
        assert!(idle.complete(&mut vec![sent[0].clone()]).is_none());
        assert_eq!(
            (idle.steps, idle.signatures),
            (0, SIGNATURES),
            "all steps, no signature"
        );

        // One with the name of the authority, but not issued by it.
        strangers.truncate(1);
        let pretender = authority("trusted");
        let own = params("own", false)
            .signed_by(&KeyPair::generate().unwrap(), &pretender)
            .unwrap();
        let sent = [X509::read(own.der()).unwrap()];
        let mut forged = search(&authorities, &sent);
        assert!(forged.complete(&mut vec![sent[0].clone()]).is_none());
        assert_eq!(forged.signatures, SIGNATURES - 1);
    }
}
