//! Names that an authority may issue certificates for (name constraints, RFC 5280 §4.2.1.10), applied to the subjects
//! of certificates.
//!
//! rustls applies them only to alternative names, but applications use the subject: an e-mail address in it, or a
//! common name that is a host.

use super::der::{context, context_constructed, Element, Elements, SEQUENCE};
use super::names::{self, COMMON_NAME, EMAIL_ADDRESS};
use super::x509::{NAME_CONSTRAINTS, SUBJECT_ALTERNATIVE_NAME, X509};
use rustls::{CertificateError, OtherError};
use std::fmt;
use std::sync::Arc;

/// The kinds of names: e-mail addresses, and hosts.
const EMAIL: u8 = context(1);
const HOST: u8 = context(2);

const IA5: u8 = 22;

/// Most comparisons of the names of one certificate with the constraints of another one.
const MOST_COMPARISONS: usize = 1 << 16;

/// The permitted and excluded names of an authority, by kind.
#[derive(Debug, Default)]
struct Constraints<'a> {
    permitted: Vec<(u8, &'a [u8])>,
    excluded: Vec<(u8, &'a [u8])>,
}

/// The reason why a certificate is refused.
#[derive(Debug, PartialEq, Eq)]
enum Violation {
    Forbidden,
    Undecidable,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Violation::Forbidden => "the name constraints of an authority forbid a name in a subject",
            Violation::Undecidable => {
                "a name in a subject cannot be compared with the name constraints of an authority"
            }
        })
    }
}

impl std::error::Error for Violation {}

/// Checks the subjects of a chain, the client's first.
pub(super) fn check(links: &[X509<'_>]) -> Result<(), CertificateError> {
    for (index, above) in links.iter().enumerate().skip(1) {
        let Some(constraints) = above.extensions.get(NAME_CONSTRAINTS) else {
            continue;
        };
        let all = Constraints::read(constraints).ok_or(Violation::Undecidable);
        let checked = all.and_then(|constraints| constraints.check_below(&links[..index]));
        checked.map_err(|violation| CertificateError::Other(OtherError(Arc::new(violation))))?;
    }
    Ok(())
}

impl<'a> Constraints<'a> {
    fn read(der: &'a [u8]) -> Option<Constraints<'a>> {
        let mut parts = Elements::of_sequence(der)?;
        let [permitted, excluded] = [0, 1].map(|number| match parts.next_of(context_constructed(number)) {
            Some(subtrees) => read_subtrees(subtrees),
            None => Some(Vec::new()),
        });
        let constraints = Constraints {
            permitted: permitted?,
            excluded: excluded?,
        };
        parts.is_over().then_some(constraints)
    }

    /// Certificates that an authority has issued to itself are exempt, because the constraints are meant for others.
    fn check_below(&self, links: &[X509<'_>]) -> Result<(), Violation> {
        for (index, link) in links.iter().enumerate() {
            if index == 0 || !link.is_self_issued() {
                self.check_subject(link, index == 0)?;
            }
        }
        Ok(())
    }

    fn check_subject(&self, link: &X509<'_>, is_client: bool) -> Result<(), Violation> {
        let mut given = addresses(link)?;
        if is_client && !has_alternative_host(link)? {
            given.extend(hosts(link)?);
        }
        if given.len() * (self.permitted.len() + self.excluded.len()) > MOST_COMPARISONS {
            return Err(Violation::Undecidable);
        }
        given.iter().try_for_each(|(kind, name)| self.check_name(*kind, name))
    }

    /// A name must fit one of the permitted names of its kind, if there are any, and no excluded name.
    fn check_name(&self, kind: u8, name: &[u8]) -> Result<(), Violation> {
        let of_kind = |subtrees: &[(u8, &'a [u8])]| {
            let of_kind = subtrees.iter().filter(|(own, _)| *own == kind);
            let fits = of_kind.map(|(_, base)| match kind {
                HOST => fits_host(name, base),
                _ => fits_address(name, base),
            });
            fits.collect::<Option<Vec<bool>>>().ok_or(Violation::Undecidable)
        };
        let (permitted, excluded) = (of_kind(&self.permitted)?, of_kind(&self.excluded)?);
        let is_permitted = permitted.is_empty() || permitted.contains(&true);
        match is_permitted && !excluded.contains(&true) {
            true => Ok(()),
            false => Err(Violation::Forbidden),
        }
    }
}

/// The kind and the text of each subtree. A subtree with a minimum or a maximum cannot be decided.
fn read_subtrees<'a>(subtrees: Element<'a>) -> Option<Vec<(u8, &'a [u8])>> {
    let mut all = Elements::of(subtrees.content);
    let one = |subtree: Element<'a>| {
        let mut parts = Elements::of(subtree.content);
        let base = parts.next().filter(|_| subtree.tag == SEQUENCE && parts.is_over())?;
        Some((base.tag, base.content))
    };
    let read = all.by_ref().map(one).collect::<Option<Vec<_>>>()?;
    all.is_over().then_some(read)
}

/// The e-mail addresses in a subject.
fn addresses(link: &X509<'_>) -> Result<Vec<(u8, Vec<u8>)>, Violation> {
    let address = |value: Element<'_>| {
        let text = (value.tag == IA5).then(|| value.content.to_vec());
        Ok((EMAIL, text.ok_or(Violation::Undecidable)?))
    };
    let values = names::elements(link.subject, EMAIL_ADDRESS).ok_or(Violation::Undecidable)?;
    values.into_iter().map(address).collect()
}

/// The common names in a subject that are hosts: names of two labels or more.
fn hosts(link: &X509<'_>) -> Result<Vec<(u8, Vec<u8>)>, Violation> {
    let mut hosts = Vec::new();
    for value in names::elements(link.subject, COMMON_NAME).ok_or(Violation::Undecidable)? {
        let text = names::utf8(value).and_then(|text| String::from_utf8(text).ok());
        let text = text.ok_or(Violation::Undecidable)?;
        // Some have trailing NULs, which change nothing.
        let text = text.trim_end_matches('\0');
        if text.contains('\0') {
            return Err(Violation::Undecidable);
        }
        if is_host(text) {
            hosts.push((HOST, text.as_bytes().to_vec()));
        }
    }
    Ok(hosts)
}

fn is_host(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(is_letter) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.contains('.') && text.split('.').all(is_label)
}

/// Returns true if hosts are among the alternative names: then a common name is not taken for a host.
fn has_alternative_host(link: &X509<'_>) -> Result<bool, Violation> {
    let Some(alternative) = link.extensions.get(SUBJECT_ALTERNATIVE_NAME) else {
        return Ok(false);
    };
    let mut all = Elements::of_sequence(alternative).ok_or(Violation::Undecidable)?;
    let has_host = all.by_ref().filter(|name| name.tag == HOST).count() > 0;
    match all.is_over() {
        true => Ok(has_host),
        false => Err(Violation::Undecidable),
    }
}

/// Returns true if the host is `base` or below it; `None`: undecidable.
fn fits_host(host: &[u8], base: &[u8]) -> Option<bool> {
    (is_plain(host) && is_plain(base)).then_some(())?;
    Some(match host.len().checked_sub(base.len()) {
        None => false,
        Some(length) => {
            let (before, end) = host.split_at(length);
            let is_at_label = base.is_empty() || base[0] == b'.' || matches!(before, [] | [.., b'.']);
            is_at_label && end.eq_ignore_ascii_case(base)
        }
    })
}

/// Returns true if the address is `base`, is at the host `base`, or, if `base` begins with a dot, is at a host below
/// it; `None`: undecidable.
fn fits_address(address: &[u8], base: &[u8]) -> Option<bool> {
    (is_plain(address) && is_plain(base)).then_some(())?;
    let (person, host) = split_address(address)?;
    Some(match split_address(base) {
        Some(([], named)) => host.eq_ignore_ascii_case(named),
        Some((named, at)) => person == named && host.eq_ignore_ascii_case(at),
        None if base.first() == Some(&b'.') => {
            let below = host.len().checked_sub(base.len()).map(|length| &host[length..]);
            below.is_some_and(|end| end.eq_ignore_ascii_case(base))
        }
        None => host.eq_ignore_ascii_case(base),
    })
}

/// The parts before and after the last `@`.
fn split_address(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|byte| *byte == b'@')?;
    Some((&text[..at], &text[at + 1..]))
}

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_fits_a_domain_that_it_is_in() {
        for (host, base, expected) in [
            ("example.com", "example.com", Some(true)),
            ("A.Example.com", "example.COM", Some(true)),
            ("badexample.com", "example.com", Some(false)),
            ("a.example.com", ".example.com", Some(true)),
            ("example.com", ".example.com", Some(false)),
            ("com", "example.com", Some(false)),
            ("a.b", "", Some(true)),
            ("a.b", "b\0", None),
            ("a.b", "\u{e4}.b", None),
        ] {
            assert_eq!(
                fits_host(host.as_bytes(), base.as_bytes()),
                expected,
                "{host} in {base}"
            );
        }
    }

    #[test]
    fn an_address_fits_itself_its_host_and_a_domain() {
        for (address, base, expected) in [
            ("ann@good.com", "good.com", Some(true)),
            ("ann@GOOD.com", "good.com", Some(true)),
            ("ann@sub.good.com", "good.com", Some(false)),
            ("ann@sub.good.com", ".good.com", Some(true)),
            ("ann@good.com", ".good.com", Some(false)),
            ("ann@good.com", "ann@good.com", Some(true)),
            ("Ann@good.com", "ann@good.com", Some(false)),
            ("ann@good.com", "@good.com", Some(true)),
            ("ann@good.com@evil.com", "good.com", Some(false)),
            ("ann", "good.com", None),
            ("ann\0@good.com", "good.com", None),
        ] {
            assert_eq!(
                fits_address(address.as_bytes(), base.as_bytes()),
                expected,
                "{address} in {base}"
            );
        }
    }

    #[test]
    fn constraints_with_more_than_names_cannot_be_read() {
        let host = [0x30, 0x07, 0xa0, 0x05, 0x30, 0x03, 0x82, 0x01, b'a'];
        assert_eq!(
            Constraints::read(&host).map(|read| read.permitted),
            Some(vec![(HOST, &b"a"[..])])
        );
        let with_minimum = [0x30, 0x0a, 0xa0, 0x08, 0x30, 0x06, 0x82, 0x01, b'a', 0x80, 0x01, 1];
        assert!(Constraints::read(&with_minimum).is_none());
        let cut = [0x30, 0x07, 0xa0, 0x05, 0x30, 0x03, 0x82, 0x02, b'a'];
        assert!(Constraints::read(&cut).is_none());
        assert!(Constraints::read(&[0x30, 0x02, 0xa2, 0x00]).is_none());
        assert!(Constraints::read(&[0x30, 0x00, 0x00]).is_none());
    }

    #[test]
    fn names_of_two_labels_are_hosts() {
        for host in ["a.b", "A-1.b_c", "_a.b", "1.2.3.4"] {
            assert!(is_host(host), "{host}");
        }
        for other in [
            "", "a", "a.", ".a", "a..b", "-a.b", "a-.b", "a.-b", "a.b-", "*.a.b", "a b.c", "\u{e4}.b",
        ] {
            assert!(!is_host(other), "{other}");
        }
    }

    #[test]
    fn a_name_fits_a_permitted_one_and_no_excluded_one() {
        let constraints = Constraints {
            permitted: vec![(HOST, b"a.b"), (HOST, b"c.d")],
            excluded: vec![(HOST, b"x.c.d"), (EMAIL, b"e.f")],
        };
        assert_eq!(constraints.check_name(HOST, b"y.c.d"), Ok(()));
        assert_eq!(constraints.check_name(HOST, b"x.c.d"), Err(Violation::Forbidden));
        assert_eq!(constraints.check_name(HOST, b"e.f"), Err(Violation::Forbidden));
        assert_eq!(constraints.check_name(EMAIL, b"a@b"), Ok(()));
        assert_eq!(constraints.check_name(EMAIL, b"a@e.f"), Err(Violation::Forbidden));
        assert_eq!(constraints.check_name(EMAIL, b"e.f"), Err(Violation::Undecidable));
    }
}
