//! Client authentication: only clients with a certificate of the right authority that has not been revoked may connect.

use super::certificates::certificates;
use super::revocation::Lists;
use super::verifier::Verifier;
use super::x509::{seconds_of, X509};
use super::{identity, ClientAuthentication, Source, TlsSettings};
use ring::digest::{Context, SHA256};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;
use std::time::SystemTime;

/// A digest of the rules of a listener. A session that was made under other rules must not be resumed.
pub(super) type Policy = [u8; 32];

/// The rules of a listener.
pub(super) struct Rules {
    /// `None` if clients are not asked for certificates.
    pub(super) verifier: Option<Arc<dyn ClientCertVerifier>>,
    pub(super) policy: Policy,
    pub(super) warnings: Vec<String>,
}

pub(super) fn load(settings: &TlsSettings, provider: &Arc<CryptoProvider>, now: SystemTime) -> Result<Rules, String> {
    if settings.client_authentication == ClientAuthentication::None {
        return Ok(Rules {
            verifier: None,
            policy: policy(settings),
            warnings: Vec::new(),
        });
    }
    let authorities = settings.client_authorities.as_ref();
    let authorities = authorities.ok_or("clients are asked for certificates, but there is no authority; set ca")?;
    let certificates = certificates(authorities)?;
    let mut warnings = Vec::new();
    for certificate in &certificates {
        let problem = identity::validity_problem(certificate, now);
        warnings.extend(problem.map(|problem| {
            format!(
                "{}: a certificate of an authority {problem}; its clients are refused",
                authorities.name
            )
        }));
        if X509::read(certificate).is_some_and(|one| one.has_unknown_critical_extension()) {
            warnings.push(format!(
                "{}: a certificate of an authority has a critical extension that is not supported; its clients are refused",
                authorities.name
            ));
        }
    }
    let lists = match &settings.revocation_lists {
        Some(source) => Some(lists(source, provider, now, &mut warnings)?),
        None => None,
    };
    let is_strict = settings.client_authentication == ClientAuthentication::Required;
    let verifier = Verifier::new(certificates, lists, is_strict, provider)
        .map_err(|error| format!("{}: a certificate cannot be used: {error}", authorities.name))?;
    if !verifier.tells_names() {
        warnings.push(format!(
            "{}: the names of the authorities are too long for a handshake, so clients are not told which certificates are accepted",
            authorities.name
        ));
    }
    Ok(Rules {
        verifier: Some(Arc::new(verifier)),
        policy: policy(settings),
        warnings,
    })
}

/// Reads the lists. Adds a warning if a list is overdue or has an unsupported signature, because clients of its
/// authority are then refused.
fn lists(
    source: &Source,
    provider: &CryptoProvider,
    now: SystemTime,
    warnings: &mut Vec<String>,
) -> Result<Lists, String> {
    let algorithms = provider.signature_verification_algorithms.all;
    let mut lists = Lists::default();
    for list in revocation_lists(source)? {
        let added = lists.add(list, algorithms);
        added.map_err(|error| format!("{}: a revocation list cannot be used: {error}", source.name))?;
    }
    if lists.is_overdue(seconds_of(now)) {
        warnings.push(format!(
            "{}: a revocation list should have been replaced by now; clients of its authority are refused until it is",
            source.name
        ));
    }
    warnings.extend(lists.unchecked().map(|issuer| {
        format!(
            "{}: the revocation list of {issuer} is signed with an algorithm that is not supported, such as SHA-1; clients that are on \
             it are refused, and all clients of this authority if it has no other list",
            source.name
        )
    }));
    Ok(lists)
}

/// Lists in PEM, or one in DER.
fn revocation_lists(source: &Source) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    if source.bytes.first() == Some(&0x30) {
        return Ok(vec![source.bytes.clone().into()]);
    }
    let all = CertificateRevocationListDer::pem_slice_iter(&source.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{}: the revocation list cannot be read: {error}", source.name))?;
    if all.is_empty() {
        return Err(format!("{}: it contains no revocation list", source.name));
    }
    Ok(all)
}

fn policy(settings: &TlsSettings) -> Policy {
    let mut context = Context::new(&SHA256);
    let mode = settings.client_authentication as u8;
    context.update(&[mode]);
    if mode != ClientAuthentication::None as u8 {
        for source in [&settings.client_authorities, &settings.revocation_lists] {
            let bytes = source.as_ref().map_or(&[][..], |source| &source.bytes);
            context.update(&(bytes.len() as u64).to_le_bytes());
            context.update(bytes);
        }
    }
    let mut policy = Policy::default();
    policy.copy_from_slice(context.finish().as_ref());
    policy
}
