//! The fields of a certificate (RFC 5280 §4.1) that matter for decisions, and the signed part. All of them point into
//! its bytes.

use super::der::{
    context_constructed, Element, Elements, BIT_STRING, BOOLEAN, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE,
};
use rustls::pki_types::SignatureVerificationAlgorithm;
use std::time::{SystemTime, UNIX_EPOCH};
use x509_cert::der::Decode;
use x509_cert::time::Time;

/// The algorithms for checking signatures.
pub(super) type Algorithms = &'static [&'static dyn SignatureVerificationAlgorithm];

/// The numbers of extensions, in DER.
pub(super) const SUBJECT_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x0e];
pub(super) const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
pub(super) const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
pub(super) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
pub(super) const ISSUING_DISTRIBUTION_POINT: &[u8] = &[0x55, 0x1d, 0x1c];
pub(super) const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x1e];
pub(super) const DISTRIBUTION_POINTS: &[u8] = &[0x55, 0x1d, 0x1f];
pub(super) const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x23];
pub(super) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
pub(super) const NETSCAPE_TYPE: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x01, 0x01];

/// Extensions that may be critical in a trusted certificate, according to OpenSSL.
const KNOWN_CRITICAL: [&[u8]; 13] = [
    KEY_USAGE,
    SUBJECT_ALTERNATIVE_NAME,
    BASIC_CONSTRAINTS,
    NAME_CONSTRAINTS,
    DISTRIBUTION_POINTS,
    EXTENDED_KEY_USAGE,
    NETSCAPE_TYPE,
    // Policies, which do not limit the clients that may connect.
    &[0x55, 0x1d, 0x20],
    &[0x55, 0x1d, 0x21],
    &[0x55, 0x1d, 0x24],
    &[0x55, 0x1d, 0x36],
    // Addresses and numbers of networks (RFC 3779).
    &[0x2b, 6, 1, 5, 5, 7, 1, 7],
    &[0x2b, 6, 1, 5, 5, 7, 1, 8],
];

/// Seconds since 1970.
pub(super) type Seconds = u64;

/// Bytes with a signature: a certificate or a revocation list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    /// The signed part.
    pub(super) message: Element<'a>,
    algorithm: &'a [u8],
    signature: &'a [u8],
}

/// A public key, as in its owner's certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicKey<'a> {
    algorithm: &'a [u8],
    bits: &'a [u8],
    /// All of it.
    pub(super) whole: &'a [u8],
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub(super) struct X509<'a> {
    /// All of it.
    pub(super) der: &'a [u8],
    pub(super) signed: Signed<'a>,
    /// 1 to 3.
    pub(super) version: u8,
    pub(super) serial: &'a [u8],
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    pub(super) key: PublicKey<'a>,
    pub(super) extensions: Extensions<'a>,
}

/// The number, the critical flag, and the value of each extension.
#[derive(Clone, Debug, Default)]
pub(super) struct Extensions<'a>(pub(super) Vec<(&'a [u8], bool, &'a [u8])>);

impl<'a> Signed<'a> {
    pub(super) fn read(der: &'a [u8]) -> Option<Signed<'a>> {
        let mut parts = Elements::of_sequence(der)?;
        let signed = Signed {
            message: parts.next_of(SEQUENCE)?,
            algorithm: parts.next_of(SEQUENCE)?.content,
            signature: bits(parts.next_of(BIT_STRING)?)?,
        };
        parts.is_over().then_some(signed)
    }

    /// Returns true if there is an algorithm for such signatures.
    pub(super) fn is_checkable(&self, algorithms: Algorithms) -> bool {
        algorithms
            .iter()
            .any(|one| one.signature_alg_id().as_ref() == self.algorithm)
    }

    /// Returns true if the owner of this key has signed it.
    pub(super) fn is_by(&self, key: &PublicKey<'_>, algorithms: Algorithms) -> bool {
        let fits = |one: &&&dyn SignatureVerificationAlgorithm| {
            one.signature_alg_id().as_ref() == self.algorithm && one.public_key_alg_id().as_ref() == key.algorithm
        };
        let of_kind = algorithms.iter().find(fits);
        of_kind.is_some_and(|one| {
            one.verify_signature(key.bits, self.message.whole, self.signature)
                .is_ok()
        })
    }
}

impl<'a> X509<'a> {
    pub(super) fn read(der: &'a [u8]) -> Option<X509<'a>> {
        let signed = Signed::read(der)?;
        let mut parts = Elements::of(signed.message.content);
        let version = match parts.next_of(context_constructed(0)) {
            None => 1,
            Some(version) => match Elements::of(version.content).next_of(INTEGER)?.content {
                [version @ 0..=2] => version + 1,
                _ => return None,
            },
        };
        let serial = parts.next_of(INTEGER)?.content;
        parts.next_of(SEQUENCE)?;
        let issuer = parts.next_of(SEQUENCE)?.whole;
        let mut validity = Elements::of(parts.next_of(SEQUENCE)?.content);
        let (not_before, not_after) = (seconds(validity.next()?)?, seconds(validity.next()?)?);
        let subject = parts.next_of(SEQUENCE)?.whole;
        let key = PublicKey::read(parts.next_of(SEQUENCE)?)?;
        // Unique identifiers, which are not used.
        (1..=2).for_each(|number| _ = parts.next_of(0x80 | number));
        let extensions = match parts.next_of(context_constructed(3)) {
            Some(extensions) => Extensions::read(extensions)?,
            None => Extensions::default(),
        };
        parts.is_over().then_some(X509 {
            der,
            signed,
            version,
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            key,
            extensions,
        })
    }

    pub(super) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Returns true if its issuer's key is its own, according to its own fields.
    pub(super) fn is_self_signed(&self) -> bool {
        let claim = self.extensions.authority_key();
        self.is_self_issued() && claim.fits_key(self) && claim.serial.is_none_or(|serial| serial == self.serial)
    }

    /// Returns true if its basic constraints call it an authority, as the scopes of revocation lists require.
    pub(super) fn is_called_authority(&self) -> Option<bool> {
        let constraints = Elements::of_sequence(self.extensions.get(BASIC_CONSTRAINTS)?);
        let call = constraints.and_then(|mut parts| parts.next_of(BOOLEAN));
        Some(call.is_some_and(|call| call.content == [0xff]))
    }

    /// Returns true if it may issue certificates, by the rules of OpenSSL, which include certificates without basic
    /// constraints.
    pub(super) fn is_authority(&self) -> bool {
        let may_sign = self.extensions.has_usage(5);
        let is_old = self.version == 1 && self.is_self_issued();
        may_sign != Some(false)
            && !self.has_negative_length()
            && self.is_called_authority().unwrap_or(is_old || may_sign == Some(true))
    }

    /// The number of authorities that there may be between it and a client's certificate; `None`: more than a chain can
    /// have.
    pub(super) fn most_below(&self) -> Option<usize> {
        match self.path_length()? {
            [most @ 0..=0x7f] => Some(usize::from(*most)),
            _ => None,
        }
    }

    fn has_negative_length(&self) -> bool {
        matches!(self.path_length(), Some([] | [0x80..=0xff, ..]))
    }

    fn path_length(&self) -> Option<&'a [u8]> {
        let mut parts = Elements::of_sequence(self.extensions.get(BASIC_CONSTRAINTS)?)?;
        parts.next_of(BOOLEAN);
        Some(parts.next_of(INTEGER)?.content)
    }

    /// Returns true if it has a critical extension that OpenSSL would not understand either.
    pub(super) fn has_unknown_critical_extension(&self) -> bool {
        let all = self.extensions.0.iter();
        all.filter(|(_, is_critical, _)| *is_critical)
            .any(|(number, ..)| !KNOWN_CRITICAL.contains(number))
    }

    /// Returns true if the owner of `issuer` can have issued the certificate, according to the fields of both.
    pub(super) fn names_as_issuer(&self, issuer: &X509<'_>) -> bool {
        let claim = self.extensions.authority_key();
        self.issuer == issuer.subject
            && claim.fits_key(issuer)
            && claim.serial.is_none_or(|serial| serial == issuer.serial)
            && issuer.extensions.has_usage(5) != Some(false)
    }
}

impl<'a> PublicKey<'a> {
    fn read(element: Element<'a>) -> Option<PublicKey<'a>> {
        let mut parts = Elements::of(element.content);
        Some(PublicKey {
            algorithm: parts.next_of(SEQUENCE)?.content,
            bits: bits(parts.next_of(BIT_STRING)?)?,
            whole: element.whole,
        })
    }
}

/// The key of its issuer that a certificate or a list names (RFC 5280 §4.2.1.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AuthorityKey<'a> {
    identifier: Option<&'a [u8]>,
    serial: Option<&'a [u8]>,
}

impl AuthorityKey<'_> {
    /// Returns true if it can be the key of this certificate.
    pub(super) fn fits_key(&self, issuer: &X509<'_>) -> bool {
        match (self.identifier, issuer.extensions.key_identifier()) {
            (Some(named), Some(own)) => named == own,
            _ => true,
        }
    }
}

impl<'a> Extensions<'a> {
    /// Reads the extensions of an element that contains a sequence.
    pub(super) fn read(outer: Element<'a>) -> Option<Extensions<'a>> {
        let all = Elements::of_sequence(outer.content)?;
        let one = |extension: Element<'a>| {
            let mut parts = Elements::of(extension.content);
            let number = parts.next_of(OBJECT_IDENTIFIER)?.content;
            let is_critical = parts.next_of(BOOLEAN).is_some_and(|critical| critical.content != [0]);
            Some((number, is_critical, parts.next_of(OCTET_STRING)?.content))
        };
        all.map(one).collect::<Option<_>>().map(Extensions)
    }

    pub(super) fn get(&self, number: &[u8]) -> Option<&'a [u8]> {
        let found = self.0.iter().find(|(own, ..)| *own == number);
        found.map(|(.., value)| *value)
    }

    /// Returns true if the key may be used for this (the number of a bit, RFC 5280 §4.2.1.3); `None` if there is no
    /// such extension.
    pub(super) fn has_usage(&self, bit: usize) -> Option<bool> {
        Some(has_bit(self.get(KEY_USAGE)?, bit))
    }

    /// Returns true if Netscape's extension has this bit; `None` if there is none.
    pub(super) fn has_netscape_type(&self, bit: usize) -> Option<bool> {
        Some(has_bit(self.get(NETSCAPE_TYPE)?, bit))
    }

    /// Returns true if the purposes include this one; `None` if there is no such extension.
    pub(super) fn has_purpose(&self, purpose: &[u8]) -> Option<bool> {
        let mut purposes = Elements::of_sequence(self.get(EXTENDED_KEY_USAGE)?).unwrap_or(Elements::of(&[]));
        Some(purposes.any(|one| one.content == purpose))
    }

    pub(super) fn authority_key(&self) -> AuthorityKey<'a> {
        let parts = self.get(AUTHORITY_KEY_IDENTIFIER).and_then(Elements::of_sequence);
        let find = |tag: u8| parts.and_then(|mut parts| parts.find(|part| part.tag == tag));
        AuthorityKey {
            identifier: find(0x80).map(|part| part.content),
            serial: find(0x82).map(|part| part.content),
        }
    }

    fn key_identifier(&self) -> Option<&'a [u8]> {
        let value = self.get(SUBJECT_KEY_IDENTIFIER)?;
        Some(Elements::of(value).next_of(OCTET_STRING)?.content)
    }
}

pub(super) fn seconds_of(time: SystemTime) -> Seconds {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A time, in either of the two forms (RFC 5280 §4.1.2.5).
pub(super) fn seconds(time: Element<'_>) -> Option<Seconds> {
    let time = Time::from_der(time.whole).ok()?;
    Some(time.to_unix_duration().as_secs())
}

/// The bytes of a bit string that has whole bytes.
fn bits(element: Element<'_>) -> Option<&[u8]> {
    match element.content {
        [0, bits @ ..] => Some(bits),
        _ => None,
    }
}

/// Returns true if a bit string has this bit, counted from its start.
fn has_bit(der: &[u8], bit: usize) -> bool {
    let string = Elements::of(der).next_of(BIT_STRING);
    let byte = string.and_then(|string| string.content.get(1 + bit / 8).copied());
    byte.is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0)
}
