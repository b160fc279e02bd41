//! What a certificate says: as text, for the application, and as far as the server itself wants to know it.

use super::Session;
use std::fmt::Write;
use std::time::SystemTime;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::crl::CertificateList;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{Decode, Encode, Tag, Tagged};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::name::Name;

type Certificate = CertificateInner<Raw>;

/// What follows from a session, for the application.
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
    /// The further ones that the client has sent, in PEM.
    pub chain: Vec<String>,
    /// Whose it is (RFC 4514).
    pub subject: String,
    /// Who has issued it (RFC 4514).
    pub issuer: String,
    /// Its serial number in hexadecimal digits.
    pub serial: String,
}

impl Identity {
    /// The client's; `None` if it has sent no certificate.
    pub(super) fn of(session: &Session) -> Option<Identity> {
        let (own, rest) = session.client_chain.split_first()?;
        let mut identity = Identity {
            pem: pem(own),
            chain: rest.iter().map(|one| pem(one)).collect(),
            ..Identity::default()
        };
        if let Ok(certificate) = Certificate::from_der(own) {
            let certificate = certificate.tbs_certificate;
            identity.subject = name(&certificate.subject);
            identity.issuer = name(&certificate.issuer);
            identity.serial = serial(certificate.serial_number.as_bytes());
        }
        Some(identity)
    }
}

/// The name that OpenSSL has for a cipher suite of the IANA: `ECDHE-RSA-AES128-GCM-SHA256`. Those of TLS 1.3 have the same.
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

/// The hosts that a certificate is for, in lower case: its alternative names, or the common name if it has none.
pub(super) fn hosts(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else {
        return Vec::new();
    };
    let certificate = certificate.tbs_certificate;
    let extensions = certificate.extensions.unwrap_or_default();
    let alternative = extensions
        .iter()
        .find(|extension| extension.extn_id == SubjectAltName::OID);
    if let Some(names) = alternative.and_then(|names| SubjectAltName::from_der(names.extn_value.as_bytes()).ok()) {
        let of = |name: &GeneralName| match name {
            GeneralName::DnsName(host) => Some(host.as_str().to_ascii_lowercase()),
            _ => None,
        };
        return names.0.iter().filter_map(of).collect();
    }
    let parts = certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let common = parts.filter(|part| attribute(&part.oid) == Some("CN"));
    common.filter_map(value).map(|host| host.to_ascii_lowercase()).collect()
}

/// What is wrong with the time for which a certificate is valid, to complete "the certificate".
pub(super) fn validity_problem(der: &[u8], now: SystemTime) -> Option<String> {
    let validity = Certificate::from_der(der).ok()?.tbs_certificate.validity;
    if now > validity.not_after.to_system_time() {
        return Some(format!("has expired ({})", validity.not_after));
    }
    (now < validity.not_before.to_system_time()).then(|| format!("is not valid yet ({})", validity.not_before))
}

/// Whether a revocation list should have been replaced.
pub(super) fn is_overdue(der: &[u8], now: SystemTime) -> bool {
    let list = CertificateList::from_der(der).ok();
    list.and_then(|list| list.tbs_cert_list.next_update)
        .is_some_and(|due| now > due.to_system_time())
}

fn pem(der: &[u8]) -> String {
    x509_cert::der::pem::encode_string("CERTIFICATE", LineEnding::LF, der).unwrap_or_default()
}

/// In upper case, without the zero that makes it positive.
fn serial(bytes: &[u8]) -> String {
    let digits = match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    hexadecimal(digits)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        })
}

/// The last part first, as RFC 4514 §2.1 has it.
fn name(name: &Name) -> String {
    let part = |attributes: &[AttributeTypeAndValue]| attributes.iter().rev().map(pair).collect::<Vec<_>>().join("+");
    let parts: Vec<String> = name.0.iter().rev().map(|one| part(one.0.as_slice())).collect();
    parts.join(",")
}

fn pair(pair: &AttributeTypeAndValue) -> String {
    match (attribute(&pair.oid), value(pair)) {
        (Some(name), Some(value)) => format!("{name}={}", escaped(value)),
        _ => format!(
            "{}=#{}",
            pair.oid,
            hexadecimal(&pair.value.to_der().unwrap_or_default())
        ),
    }
}

/// The text of a value; `None` if it is no text, or in one of the encodings that nobody uses any more.
fn value(pair: &AttributeTypeAndValue) -> Option<&str> {
    let value = &pair.value;
    match value.tag() {
        Tag::PrintableString => PrintableStringRef::try_from(value).ok().map(|text| text.as_str()),
        Tag::Utf8String => Utf8StringRef::try_from(value).ok().map(|text| text.as_str()),
        Tag::Ia5String => Ia5StringRef::try_from(value).ok().map(|text| text.as_str()),
        Tag::TeletexString => TeletexStringRef::try_from(value).ok().map(|text| text.as_str()),
        _ => None,
    }
}

/// RFC 4514 §2.4. What is not ASCII is escaped too, byte by byte, as OpenSSL does: the env has ASCII only then.
fn escaped(value: &str) -> String {
    let last = value.len().saturating_sub(1);
    let mut text = String::with_capacity(value.len());
    for (index, byte) in value.bytes().enumerate() {
        let is_special = match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => true,
            b'#' => index == 0,
            b' ' => index == 0 || index == last,
            _ => false,
        };
        let _ = match byte {
            _ if is_special => write!(text, "\\{}", char::from(byte)),
            b' '..=b'~' => write!(text, "{}", char::from(byte)),
            _ => write!(text, "\\{byte:02X}"),
        };
    }
    text
}

/// The names that OpenSSL has for the attributes that are in use.
fn attribute(oid: &ObjectIdentifier) -> Option<&'static str> {
    const NAMES: [(&str, &str); 18] = [
        ("2.5.4.3", "CN"),
        ("2.5.4.4", "SN"),
        ("2.5.4.5", "serialNumber"),
        ("2.5.4.6", "C"),
        ("2.5.4.7", "L"),
        ("2.5.4.8", "ST"),
        ("2.5.4.9", "street"),
        ("2.5.4.10", "O"),
        ("2.5.4.11", "OU"),
        ("2.5.4.12", "title"),
        ("2.5.4.17", "postalCode"),
        ("2.5.4.42", "GN"),
        ("2.5.4.43", "initials"),
        ("2.5.4.46", "dnQualifier"),
        ("2.5.4.97", "organizationIdentifier"),
        ("0.9.2342.19200300.100.1.1", "UID"),
        ("0.9.2342.19200300.100.1.25", "DC"),
        ("1.2.840.113549.1.9.1", "emailAddress"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| ObjectIdentifier::new_unwrap(number) == *oid)
        .map(|(_, name)| *name)
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
    fn what_has_a_meaning_in_a_name_is_escaped() {
        assert_eq!(escaped(" #a,b+\"c\\ "), "\\ #a\\,b\\+\\\"c\\\\\\ ");
        assert_eq!(escaped("#1"), "\\#1");
        assert_eq!(escaped("\u{e4}\n"), "\\C3\\A4\\0A");
        assert_eq!(escaped(""), "");
    }

    #[test]
    fn serial_numbers_are_in_hexadecimal_digits() {
        assert_eq!(serial(&[0, 0xfe, 1]), "FE01");
        assert_eq!(serial(&[1]), "01");
        assert_eq!(serial(&[0]), "00");
    }
}
