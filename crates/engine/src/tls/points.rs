//! The names of distribution points (RFC 5280 §4.2.1.13), which divide the revocation lists of an authority.
//!
//! If a name were not recognized, a certificate would be checked against another list than its own, which may not
//! contain it.

use super::der::{context_constructed, Element, Elements, SET};
use super::names::{canonical, canonical_part, Canonical};
use super::x509::{DISTRIBUTION_POINTS, X509};

/// The name of a directory among the general names.
const DIRECTORY: u8 = context_constructed(4);

/// One of the names of a point.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Directory(Vec<Canonical>),
    /// A URI, in most cases.
    Other(&'a [u8]),
}

/// The name of the point of a list, if it has one (§5.2.5).
pub(super) fn own_name(point: &[u8]) -> Option<Element<'_>> {
    Elements::of_sequence(point)?.next_of(context_constructed(0))
}

/// The names of a point: full names, or a name relative to the name of `issuer`.
pub(super) fn names<'a>(name: Element<'a>, issuer: &[u8]) -> Vec<Name<'a>> {
    let mut parts = Elements::of(name.content);
    if let Some(relative) = parts.next_of(context_constructed(1)) {
        let mut all = canonical(issuer);
        // The tag replaces the tag of a set.
        all.push(canonical_part(Element { tag: SET, ..relative }));
        return vec![Name::Directory(all)];
    }
    let full = parts.next_of(context_constructed(0));
    Elements::of(full.map_or(&[], |full| full.content))
        .map(|one| match one.tag {
            DIRECTORY => Name::Directory(canonical(one.content)),
            _ => Name::Other(one.whole),
        })
        .collect()
}

/// Returns true if the certificate names a point that has one of these names or no name, for the lists of its own
/// issuer.
pub(super) fn are_named(certificate: &X509<'_>, wanted: &[Name<'_>]) -> bool {
    let points = certificate.extensions.get(DISTRIBUTION_POINTS);
    let mut points = points.and_then(Elements::of_sequence).unwrap_or(Elements::of(&[]));
    points.any(|point| is_named(point, certificate.issuer, wanted))
}

fn is_named(point: Element<'_>, own_issuer: &[u8], wanted: &[Name<'_>]) -> bool {
    let find = |number| Elements::of(point.content).find(|part| part.tag == context_constructed(number));
    let mut base = own_issuer;
    if let Some(issuers) = find(2) {
        let directories = Elements::of(issuers.content).filter(|one| one.tag == DIRECTORY);
        let all: Vec<&[u8]> = directories.map(|one| one.content).collect();
        if !all.iter().any(|one| canonical(one) == canonical(own_issuer)) {
            return false;
        }
        base = all[0];
    }
    find(0).is_none_or(|name| names(name, base).iter().any(|one| wanted.contains(one)))
}
