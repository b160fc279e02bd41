//! Which clients may connect: those with a certificate of the right authority that has not been revoked.

use super::certificates::certificates;
use super::{identity, ClientAuthentication, Source, TlsSettings};
use ring::digest::{Context, SHA256};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::WebPkiClientVerifier;
use rustls::RootCertStore;
use std::sync::Arc;
use std::time::SystemTime;

/// What makes two listeners the same for a session: one that was made under other rules must not be resumed.
pub(super) type Policy = [u8; 32];

/// The rules of a listener.
pub(super) struct Rules {
    /// `None` if no client is asked.
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
    let authorities = authorities.ok_or("clients are asked for certificates, but no authority is given (ca)")?;
    let mut roots = RootCertStore::empty();
    let mut warnings = Vec::new();
    for certificate in certificates(authorities)? {
        let problem = identity::validity_problem(&certificate, now);
        warnings
            .extend(problem.map(|problem| format!("{}: a certificate of an authority {problem}", authorities.name)));
        let added = roots.add(certificate);
        added.map_err(|error| format!("{}: a certificate cannot be used: {error}", authorities.name))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    if let Some(lists) = &settings.revocation_lists {
        let lists = (lists, revocation_lists(lists)?);
        warnings.extend(overdue(lists.0, &lists.1, now));
        builder = builder.with_crls(lists.1).enforce_revocation_expiration();
    }
    if settings.client_authentication == ClientAuthentication::Optional {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder
        .build()
        .map_err(|error| format!("client certificates cannot be checked: {error}"))?;
    Ok(Rules {
        verifier: Some(verifier),
        policy: policy(settings),
        warnings,
    })
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
        return Err(format!("{}: there is no revocation list in it", source.name));
    }
    Ok(all)
}

/// A warning, if one of the lists should have been replaced: clients of its authority are refused then.
fn overdue(source: &Source, lists: &[CertificateRevocationListDer<'_>], now: SystemTime) -> Option<String> {
    let is_overdue = lists.iter().any(|list| identity::is_overdue(list, now));
    is_overdue.then(|| {
        format!(
            "{}: a revocation list should have been replaced by now; clients of its authority are refused until it is",
            source.name
        )
    })
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
