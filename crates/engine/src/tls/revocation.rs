//! Revocation lists (RFC 5280 §5): the choice of the list for a certificate, and the lookup in it.
//!
//! A signature is checked once for each key, and the entries stay in the bytes of the file, so that a list with a
//! million entries costs a handshake no more than a short one.

use super::chain::Chain;
use super::der::{context, context_constructed, Element, Elements, BOOLEAN, INTEGER, OBJECT_IDENTIFIER, SEQUENCE};
use super::x509::{
    seconds, Algorithms, Extensions, Seconds, Signed, AUTHORITY_KEY_IDENTIFIER, ISSUING_DISTRIBUTION_POINT, X509,
};
use super::{names, points};
use crate::sync::Mutex;
use ring::digest::{digest, SHA256};
use rustls::pki_types::CertificateRevocationListDer;
use rustls::CertificateError;
use std::collections::HashMap;

/// Most keys for which a list remembers if they have made its signature.
const MOST_KEYS: usize = 64;

/// The number of a list (RFC 5280 §5.2.3).
const LIST_NUMBER: &[u8] = &[0x55, 0x1d, 0x14];

/// The reason for a revocation, in its entry (RFC 5280 §5.3.1), and the time from which the certificate must not be
/// trusted (§5.3.2).
const REASON: &[u8] = &[0x55, 0x1d, 0x15];
const INVALIDITY_DATE: &[u8] = &[0x55, 0x1d, 0x18];

/// The lists of a listener, by their issuers.
#[derive(Debug, Default)]
pub(super) struct Lists {
    all: Vec<List>,
    by_issuer: HashMap<Vec<u8>, Vec<usize>>,
}

/// A revocation list.
#[derive(Debug)]
struct List {
    der: CertificateRevocationListDer<'static>,
    since: Seconds,
    /// The time by which there has to be another one, if given.
    until: Option<Seconds>,
    /// Positions of the serial numbers, in the order of their values.
    entries: Vec<(u32, u16)>,
    /// Its kind of signature can be checked.
    is_checkable: bool,
    /// For each of these keys: true if its owner has signed the list.
    signers: Mutex<HashMap<[u8; 32], bool>>,
}

/// The fields of a list that are used after it was added.
struct Fields<'a> {
    issuer: &'a [u8],
    since: Seconds,
    until: Option<Seconds>,
    entries: Elements<'a>,
    extensions: Extensions<'a>,
}

impl Lists {
    /// Adds a list.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub(super) fn add(
        &mut self,
        der: CertificateRevocationListDer<'static>,
        algorithms: Algorithms,
    ) -> Result<(), &'static str> {
        let fields = Fields::read(&der).ok_or("it is no revocation list")?;
        check_extensions(&fields)?;
        let list = List {
            since: fields.since,
            until: fields.until,
            entries: entries(&der, fields.entries)?,
            is_checkable: Signed::read(&der).is_some_and(|signed| signed.is_checkable(algorithms)),
            signers: Mutex::default(),
            der: der.clone(),
        };
        self.by_issuer
            .entry(fields.issuer.to_vec())
            .or_default()
            .push(self.all.len());
        self.all.push(list);
        Ok(())
    }

    /// Returns true if one of them should have been replaced.
    pub(super) fn is_overdue(&self, now: Seconds) -> bool {
        self.all.iter().any(|list| list.until.is_some_and(|until| now > until))
    }

    /// Issuers of the lists with signatures that cannot be checked.
    pub(super) fn unchecked(&self) -> impl Iterator<Item = String> + '_ {
        let lists = self.all.iter().filter(|list| !list.is_checkable);
        lists.filter_map(|list| Some(names::text(Fields::read(&list.der)?.issuer)))
    }

    /// Checks the signatures of lists that `issuer` may have made, so that no handshake has to.
    pub(super) fn prepare(&self, issuer: &X509<'_>, algorithms: Algorithms) {
        for list in self.of(issuer.subject) {
            list.is_by(issuer, algorithms);
        }
    }

    /// Checks that there is a valid list for each certificate, and that none of the certificates is on its list.
    pub(super) fn check(
        &self,
        chain: &Chain<'_>,
        now: Seconds,
        algorithms: Algorithms,
    ) -> Result<(), CertificateError> {
        for (index, link) in chain.links.iter().enumerate() {
            match chain.links.get(index + 1) {
                Some(issuer) => self.check_one(link, issuer, now, algorithms)?,
                None if link.is_self_signed() => self.check_one(link, link, now, algorithms)?,
                // The issuer of this list is unknown, but the list was configured to be believed.
                None if self.of(link.issuer).any(|list| list.has(link.serial)) => {
                    return Err(CertificateError::Revoked)
                }
                None => {}
            }
        }
        Ok(())
    }

    fn of(&self, issuer: &[u8]) -> impl Iterator<Item = &List> {
        let numbers = self.by_issuer.get(issuer).into_iter().flatten();
        numbers.map(|number| &self.all[*number])
    }

    /// The newest of the currently valid lists counts. If several are equally new, the certificate is revoked if
    /// any of them has it.
    fn check_one(
        &self,
        certificate: &X509<'_>,
        issuer: &X509<'_>,
        now: Seconds,
        algorithms: Algorithms,
    ) -> Result<(), CertificateError> {
        let fitting = self
            .of(certificate.issuer)
            .filter(|list| list.is_for(certificate, issuer));
        let fitting: Vec<&List> = fitting.collect();
        // Such a list proves no certificate valid, but it was configured to be believed.
        if fitting
            .iter()
            .any(|list| !list.is_checkable && list.has(certificate.serial))
        {
            return Err(CertificateError::Revoked);
        }
        let rank = |list: &List| (list.is_valid(now), list.since);
        let own = fitting.iter().filter(|list| list.is_by(issuer, algorithms));
        let newest = own.clone().map(|list| rank(list)).max();
        let mut equals = own.filter(|list| Some(rank(list)) == newest);
        match newest.ok_or(CertificateError::UnknownRevocationStatus)? {
            (_, since) if now < since => Err(CertificateError::UnknownRevocationStatus),
            (false, _) => Err(CertificateError::ExpiredRevocationList),
            (true, _) if equals.any(|list| list.has(certificate.serial)) => Err(CertificateError::Revoked),
            (true, _) => Ok(()),
        }
    }
}

impl List {
    fn is_valid(&self, now: Seconds) -> bool {
        self.since <= now && self.until.is_none_or(|until| now <= until)
    }

    fn has(&self, serial: &[u8]) -> bool {
        let serial = value(serial);
        let found = self
            .entries
            .binary_search_by_key(&order(serial), |place| order(at(&self.der, *place)));
        found.is_ok()
    }

    /// Returns true if the list covers such certificates of this issuer.
    fn is_for(&self, certificate: &X509<'_>, issuer: &X509<'_>) -> bool {
        let Some(fields) = Fields::read(&self.der) else {
            return false;
        };
        let may_sign = issuer.extensions.has_usage(6) != Some(false);
        let point = fields.extensions.get(ISSUING_DISTRIBUTION_POINT);
        may_sign
            && fields.extensions.authority_key().fits_key(issuer)
            && point.is_none_or(|point| is_in_scope(point, fields.issuer, certificate))
    }

    fn is_by(&self, issuer: &X509<'_>, algorithms: Algorithms) -> bool {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, issuer.key.whole).as_ref());
        let mut signers = self.signers.lock();
        if let Some(known) = signers.get(&key) {
            return *known;
        }
        let is_by = Signed::read(&self.der).is_some_and(|signed| signed.is_by(&issuer.key, algorithms));
        if signers.len() >= MOST_KEYS {
            signers.clear();
        }
        signers.insert(key, is_by);
        is_by
    }
}

impl<'a> Fields<'a> {
    fn read(der: &'a [u8]) -> Option<Fields<'a>> {
        let signed = Signed::read(der)?;
        let mut parts = Elements::of(signed.message.content);
        // Version 1 needs no number.
        if parts
            .next_of(INTEGER)
            .is_some_and(|version| !matches!(version.content, [0 | 1]))
        {
            return None;
        }
        parts.next_of(SEQUENCE)?;
        let issuer = parts.next_of(SEQUENCE)?.whole;
        let since = seconds(parts.next()?)?;
        let until = match parts.next_of(0x17).or_else(|| parts.next_of(0x18)) {
            Some(until) => Some(seconds(until)?),
            None => None,
        };
        let entries = parts.next_of(SEQUENCE).map_or(&[][..], |entries| entries.content);
        let extensions = match parts.next_of(context_constructed(0)) {
            Some(extensions) => Extensions::read(extensions)?,
            None => Extensions::default(),
        };
        parts.is_over().then_some(Fields {
            issuer,
            since,
            until,
            entries: Elements::of(entries),
            extensions,
        })
    }
}

/// Refuses a list with an extension that would limit its meaning: a list that covers only changes, only some reasons,
/// or certificates of other authorities.
fn check_extensions(fields: &Fields<'_>) -> Result<(), &'static str> {
    let known = [LIST_NUMBER, AUTHORITY_KEY_IDENTIFIER, ISSUING_DISTRIBUTION_POINT];
    let of_list = &fields.extensions.0;
    if of_list
        .iter()
        .any(|(number, is_critical, _)| *is_critical && !known.contains(number))
    {
        return Err("it has a critical extension that is not supported, as lists of changes (delta CRLs) have");
    }
    let Some(point) = fields.extensions.get(ISSUING_DISTRIBUTION_POINT) else {
        return Ok(());
    };
    let mut parts = Elements::of_sequence(point).ok_or("its distribution point cannot be read")?;
    if parts.any(|part| (context(3)..=context(5)).contains(&part.tag)) {
        return Err(
            "it covers only some reasons, attributes or certificates of other authorities; a complete list is needed",
        );
    }
    match points::own_name(point) {
        Some(name) if points::names(name, fields.issuer).is_empty() => {
            Err("its distribution point has no name that can be read")
        }
        _ => Ok(()),
    }
}

/// Positions of the serial numbers of a list in `der`.
fn entries(der: &[u8], all: Elements<'_>) -> Result<Vec<(u32, u16)>, &'static str> {
    const MALFORMED: &str = "an entry cannot be read";
    let mut places = Vec::new();
    let mut rest = all;
    for entry in rest.by_ref() {
        let mut parts = Elements::of(entry.content);
        let serial = value(parts.next_of(INTEGER).ok_or(MALFORMED)?.content);
        parts.next().and_then(seconds).ok_or(MALFORMED)?;
        let extensions = parts.next_of(SEQUENCE);
        if !extensions.map_or(Ok(true), is_revoked)? {
            continue;
        }
        // `serial` is a part of `der`.
        let offset = serial.as_ptr() as usize - der.as_ptr() as usize;
        let place = (u32::try_from(offset), u16::try_from(serial.len()));
        let (Ok(offset), Ok(length)) = place else {
            return Err(MALFORMED);
        };
        places.push((offset, length));
    }
    if !rest.is_over() {
        return Err(MALFORMED);
    }
    places.sort_unstable_by_key(|place| order(at(der, *place)));
    places.shrink_to_fit();
    Ok(places)
}

/// Returns true if an entry with these extensions revokes a certificate, and false if it withdraws a revocation.
fn is_revoked(extensions: Element<'_>) -> Result<bool, &'static str> {
    const REMOVED: &[u8] = &[0x0a, 1, 8];
    let mut is_revoked = true;
    for extension in Elements::of(extensions.content) {
        let mut parts = Elements::of(extension.content);
        let number = parts.next_of(OBJECT_IDENTIFIER).map(|number| number.content);
        let is_critical = parts.next_of(BOOLEAN).is_some_and(|critical| critical.content != [0]);
        match number {
            Some(REASON) => is_revoked = parts.next().is_none_or(|value| value.content != REMOVED),
            Some(INVALIDITY_DATE) => {}
            _ if is_critical => return Err("an entry has a critical extension that is not supported"),
            _ => {}
        }
    }
    Ok(is_revoked)
}

/// The bytes of an integer, without leading bytes that change nothing. A leading zero changes something if the rest
/// would be negative.
fn value(integer: &[u8]) -> &[u8] {
    let is_idle = |pair: &&[u8]| matches!(pair, [0, 0..=0x7f] | [0xff, 0x80..=0xff]);
    &integer[integer.windows(2).take_while(is_idle).count()..]
}

/// Numbers with fewer digits come first.
fn order(serial: &[u8]) -> (usize, &[u8]) {
    (serial.len(), serial)
}

fn at(der: &[u8], (offset, length): (u32, u16)) -> &[u8] {
    &der[offset as usize..][..usize::from(length)]
}

/// Returns true if a list of `issuer` with this distribution point covers the certificate (RFC 5280 §5.2.5).
fn is_in_scope(point: &[u8], issuer: &[u8], certificate: &X509<'_>) -> bool {
    let Some(parts) = Elements::of_sequence(point) else {
        return false;
    };
    let is_true = |tag| {
        let mut parts = parts;
        parts
            .find(|part| part.tag == tag)
            .is_some_and(|part| part.content != [0])
    };
    let (only_users, only_authorities) = (is_true(context(1)), is_true(context(2)));
    // The key usage is not considered: most clients have one, and need no basic constraints.
    let is_authority = certificate.is_called_authority() == Some(true);
    if (only_users && is_authority) || (only_authorities && !is_authority) {
        return false;
    }
    points::own_name(point).is_none_or(|name| points::are_named(certificate, &points::names(name, issuer)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};

    #[test]
    fn a_number_is_what_is_left_without_idle_bytes() {
        for (integer, expected) in [
            (&[0][..], &[0][..]),
            (&[0, 0x7f], &[0x7f]),
            (&[0, 0, 0x80], &[0, 0x80]),
            (&[0x80], &[0x80]),
            (&[0xff, 0xff, 0x80], &[0x80]),
            (&[0xff, 0x7f], &[0xff, 0x7f]),
            (&[], &[]),
        ] {
            assert_eq!(value(integer), expected);
        }
    }

    #[test]
    fn only_basic_constraints_put_a_certificate_on_a_list_of_authorities() {
        const USERS: &[u8] = &[0x30, 3, 0x81, 1, 0xff];
        const AUTHORITIES: &[u8] = &[0x30, 3, 0x82, 1, 0xff];
        let is_listed = |is_ca: IsCa, usages: &[KeyUsagePurpose]| {
            let mut params = CertificateParams::new([]).unwrap();
            params.is_ca = is_ca;
            params.key_usages = usages.to_vec();
            // rcgen writes no key usage alone.
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let certificate = X509::read(certificate.der()).unwrap();
            (
                is_in_scope(USERS, certificate.issuer, &certificate),
                is_in_scope(AUTHORITIES, certificate.issuer, &certificate),
                certificate.is_authority(),
            )
        };
        let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
        let (signs, issues) = (KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign);
        assert_eq!(is_listed(IsCa::NoCa, &[]), (true, false, false));
        assert_eq!(is_listed(IsCa::NoCa, &[signs]), (true, false, false));
        assert_eq!(is_listed(IsCa::NoCa, &[signs, issues]), (true, false, true));
        assert_eq!(is_listed(IsCa::ExplicitNoCa, &[signs]), (true, false, false));
        assert_eq!(is_listed(authority(), &[]), (false, true, true));
        assert_eq!(is_listed(authority(), &[issues]), (false, true, true));
        assert_eq!(is_listed(authority(), &[signs]), (false, true, false));
    }
}
