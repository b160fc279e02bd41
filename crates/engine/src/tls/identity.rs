//! The contents of a certificate: as text, for the application, and as far as the server itself needs them.

use super::der::{context, Elements};
use super::names::{self, hexadecimal};
use super::x509::{seconds_of, SUBJECT_ALTERNATIVE_NAME, X509};
use super::Session;
use std::time::{Duration, SystemTime};
use x509_cert::der::pem::LineEnding;
use x509_cert::der::DateTime;

/// Facts about a session for the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The cipher suite, as OpenSSL names it.
    pub cipher: String,
    /// The client, if it has sent a certificate.
    pub identity: Option<Identity>,
}

impl Details {
    pub(super) fn of(session: &Session) -> Details {
        Details {
            cipher: openssl_name(&session.cipher),
            identity: Identity::of(session),
        }
    }
}

/// A client's certificate as text, as nginx and Apache have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The certificate in PEM.
    pub pem: String,
    /// The other certificates that the client has sent, in PEM.
    pub chain: Vec<String>,
    /// Its owner (RFC 4514).
    pub subject: String,
    /// Its issuer (RFC 4514).
    pub issuer: String,
    /// Its serial number in hexadecimal digits.
    pub serial: String,
}

impl Identity {
    /// The identity of the client; `None` if it has sent no certificate.
    pub(super) fn of(session: &Session) -> Option<Identity> {
        let (own, rest) = session.client_chain.split_first()?;
        let mut identity = Identity {
            pem: pem(own),
            chain: rest.iter().map(|one| pem(one)).collect(),
            ..Identity::default()
        };
        if let Some(certificate) = X509::read(own) {
            identity.subject = names::text(certificate.subject);
            identity.issuer = names::text(certificate.issuer);
            identity.serial = serial(certificate.serial);
        }
        Some(identity)
    }
}

/// OpenSSL's name of a cipher suite of the IANA: `ECDHE-RSA-AES128-GCM-SHA256`. Suites of TLS 1.3 have the same name.
fn openssl_name(suite: &str) -> String {
    let suite = suite.replace("TLS13_", "TLS_");
    match suite.strip_prefix("TLS_").and_then(|name| name.split_once("_WITH_")) {
        Some((exchange, cipher)) => format!("{exchange}_{cipher}")
            .replace("AES_", "AES")
            .replace("POLY1305_SHA256", "POLY1305")
            .replace('_', "-"),
        None => suite,
    }
}

/// The hosts of a certificate, in lower case: its alternative names, or the common name if it has none.
pub(super) fn hosts(der: &[u8]) -> Vec<String> {
    let Some(certificate) = X509::read(der) else {
        return Vec::new();
    };
    let alternative = certificate.extensions.get(SUBJECT_ALTERNATIVE_NAME);
    if let Some(names) = alternative.and_then(Elements::of_sequence) {
        // A DNS name (RFC 5280 §4.2.1.6).
        let hosts = names.filter(|name| name.tag == context(2));
        let hosts = hosts.filter_map(|host| std::str::from_utf8(host.content).ok());
        return hosts.map(str::to_ascii_lowercase).collect();
    }
    let common = names::values(certificate.subject, "CN");
    common.iter().map(|host| host.to_ascii_lowercase()).collect()
}

/// The problem with the validity period of a certificate, to complete "the certificate".
pub(super) fn validity_problem(der: &[u8], now: SystemTime) -> Option<String> {
    let certificate = X509::read(der)?;
    let now = seconds_of(now);
    let date = |seconds| {
        DateTime::from_unix_duration(Duration::from_secs(seconds))
            .map_or_else(|_| "never".into(), |date| date.to_string())
    };
    if now > certificate.not_after {
        return Some(format!("has expired ({})", date(certificate.not_after)));
    }
    (now < certificate.not_before).then(|| format!("is not valid yet ({})", date(certificate.not_before)))
}

fn pem(der: &[u8]) -> String {
    x509_cert::der::pem::encode_string("CERTIFICATE", LineEnding::LF, der).unwrap_or_default()
}

/// The digits in upper case, without the zero that makes the number positive.
fn serial(bytes: &[u8]) -> String {
    let digits = match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    hexadecimal(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_of_openssl() {
        for (ours, theirs) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            (
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
            ),
        ] {
            assert_eq!(openssl_name(ours), theirs);
        }
    }

    #[test]
    fn serial_numbers_are_in_hexadecimal_digits() {
        assert_eq!(serial(&[0, 0xfe, 1]), "FE01");
        assert_eq!(serial(&[1]), "01");
        assert_eq!(serial(&[0]), "00");
    }
}
