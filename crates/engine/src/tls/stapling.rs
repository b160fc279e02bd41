//! The statement of an authority about a certificate (OCSP, RFC 6960), which clients get with it until it is out of
//! date.

use super::der::{context_constructed, Element, Elements, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE};
use super::x509::{seconds, Seconds, X509};
use super::Source;
use rustls::sign::CertifiedKey;
use std::sync::Arc;

const ENUMERATED: u8 = 10;
const GENERALIZED_TIME: u8 = 24;

/// A certificate with its key, and the same with a response.
#[derive(Debug)]
pub(super) struct Stapled {
    bare: Arc<CertifiedKey>,
    with_response: Option<(Arc<CertifiedKey>, Times)>,
}

/// The period in which a response is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    since: Seconds,
    /// `None`: newer responses are always available, so this one is never known to be out of date.
    until: Option<Seconds>,
}

impl Stapled {
    /// Adds a warning about a response that is out of date, or about another certificate: one of the two files may have
    /// been replaced before the other.
    ///
    /// # Errors
    /// If it is no response.
    pub(super) fn new(
        key: CertifiedKey,
        response: Option<&Source>,
        now: Seconds,
        warnings: &mut Vec<String>,
    ) -> Result<Stapled, String> {
        let Some(source) = response else {
            return Ok(Stapled {
                bare: Arc::new(key),
                with_response: None,
            });
        };
        let name = &source.name;
        let all =
            responses(&source.bytes).ok_or_else(|| format!("{name}: this is no successful OCSP response in DER"))?;
        let own = X509::read(&key.cert[0]);
        let times = own.and_then(|own| times(all, own.serial));
        let problem = match times {
            None => Some("is about another certificate"),
            Some(times) if !times.include(now) => Some("is out of date"),
            Some(_) => None,
        };
        warnings.extend(
            problem.map(|problem| {
                format!("{name}: the OCSP response {problem}; clients do not get it until it is replaced")
            }),
        );
        let stapled = CertifiedKey {
            ocsp: Some(source.bytes.clone()),
            ..key.clone()
        };
        Ok(Stapled {
            bare: Arc::new(key),
            with_response: times.map(|times| (Arc::new(stapled), times)),
        })
    }

    /// Returns the certificate, without the response if that is out of date.
    pub(super) fn at(&self, now: Seconds) -> &Arc<CertifiedKey> {
        match &self.with_response {
            Some((key, times)) if times.include(now) => key,
            _ => &self.bare,
        }
    }
}

impl Times {
    fn include(self, now: Seconds) -> bool {
        self.since <= now && self.until.is_none_or(|until| now <= until)
    }
}

/// The period of a response for the certificate with this serial number, if there is one.
fn times(mut all: Elements<'_>, serial: &[u8]) -> Option<Times> {
    all.find_map(|one| about(one).filter(|(number, _)| *number == serial))
        .map(|(_, times)| times)
}

/// The single responses of a successful response (RFC 6960 §4.2.1).
fn responses(bytes: &[u8]) -> Option<Elements<'_>> {
    let mut outer = Elements::of_sequence(bytes)?;
    let status = outer.next_of(ENUMERATED)?;
    let mut inner = Elements::of_sequence(outer.next_of(context_constructed(0))?.content)?;
    inner.next_of(OBJECT_IDENTIFIER)?;
    let mut basic = Elements::of_sequence(inner.next_of(OCTET_STRING)?.content)?;
    let mut data = Elements::of(basic.next_of(SEQUENCE)?.content);
    data.next_of(context_constructed(0));
    // Its author, by name or by key, and its time.
    data.next()?;
    data.next_of(GENERALIZED_TIME)?;
    let all = data.next_of(SEQUENCE)?;
    (status.content == [0]).then(|| Elements::of(all.content))
}

/// The serial number of a certificate, and the period of the statement about it.
fn about(response: Element<'_>) -> Option<(&[u8], Times)> {
    let mut parts = Elements::of(response.content);
    let serial = Elements::of(parts.next_of(SEQUENCE)?.content).nth(3)?.content;
    // Its status.
    parts.next()?;
    let since = seconds(parts.next_of(GENERALIZED_TIME)?)?;
    let until = match parts.next_of(context_constructed(0)) {
        Some(until) => Some(seconds(Elements::of(until.content).next()?)?),
        None => None,
    };
    Some((serial, Times { since, until }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        assert!(content.len() < 0x80);
        [&[tag, content.len() as u8], &content[..]].concat()
    }

    /// A response about the certificate 7, from 2020 until 2030 or for ever.
    fn response(status: u8, until: bool) -> Vec<u8> {
        let (since, end) = (wrap(24, &[b"20200101000000Z"]), wrap(24, &[b"20300101000000Z"]));
        let end = wrap(0xa0, &[&end]);
        let id = wrap(SEQUENCE, &[&[SEQUENCE, 0, 4, 0, 4, 0, 2, 1, 7]]);
        let one = wrap(SEQUENCE, &[&id, &[0x80, 0], &since, if until { &end } else { &[] }]);
        let data = wrap(SEQUENCE, &[&[0xa2, 0], &since, &wrap(SEQUENCE, &[&one])]);
        let basic = wrap(OCTET_STRING, &[&wrap(SEQUENCE, &[&data])]);
        let inner = wrap(SEQUENCE, &[&[6, 1, 1], &basic]);
        let head = [ENUMERATED, 1, status];
        let rest = [&[0xa0, inner.len() as u8], &inner[..]].concat();
        [&[SEQUENCE, (head.len() + rest.len()) as u8], &head[..], &rest].concat()
    }

    #[test]
    fn a_response_has_to_be_whole_and_successful() {
        let good = response(0, true);
        assert!(responses(&good).is_some());
        for bad in [
            &response(6, true)[..],
            &good[..good.len() - 1],
            b"-----BEGIN",
            b"",
            &[0x30, 3, 10, 1, 6],
        ] {
            assert!(responses(bad).is_none());
        }
    }

    #[test]
    fn a_response_ends_when_it_says_so() {
        let times = |until, serial| times(responses(&response(0, until)).expect("a response"), &[serial]);
        let (year_2020, year_2030) = (1_577_836_800, 1_893_456_000);
        let found = times(true, 7).expect("its own");
        for (now, expected) in [
            (year_2020 - 1, false),
            (year_2020, true),
            (year_2030, true),
            (year_2030 + 1, false),
        ] {
            assert_eq!(found.include(now), expected);
        }
        assert!(times(false, 7).is_some_and(|times| times.include(year_2030 + 1)));
        assert_eq!(times(true, 8), None);
    }
}
