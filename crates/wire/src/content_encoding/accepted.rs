//! [`Accepted`]: the value of Accept-Encoding (RFC 9110 §12.5.3).

use super::Coding;
use crate::fields::{members, trim};
use crate::parameters::values;
use crate::Head;
use std::cmp::Reverse;

/// A weight in thousandths (RFC 9110 §12.4.2).
type Weight = u16;

const FULL: Weight = 1_000;

/// The codings that a request accepts, with their weights. Without Accept-Encoding, or if it is empty, no coding is
/// accepted: such a client may not understand any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// In the order of [`Coding::ALL`]; 0 if declined or not mentioned.
    weights: [Weight; Coding::ALL.len()],
    /// The weight of content without a coding. It is acceptable even if it is not mentioned, but then comes last.
    identity: Weight,
}

impl Accepted {
    /// The codings that the request head, parsed from `bytes`, accepts. Repeated fields are one list (RFC 9110 §5.3);
    /// malformed members are ignored.
    pub fn of(head: &Head, bytes: &[u8]) -> Accepted {
        let mut named = Named::default();
        for member in values(head, bytes, b"accept-encoding").flat_map(members) {
            named.note(member);
        }
        named.accepted()
    }

    /// Accepts no coding.
    pub fn none() -> Accepted {
        Named::default().accepted()
    }

    /// The accepted codings, the preferred one first. Codings of equal weight come in the order of [`Coding::ALL`].
    /// Codings that the client ranks below no coding at all are left out.
    pub fn best_first(&self) -> impl Iterator<Item = Coding> {
        self.ranked(Coding::ALL)
    }

    /// Does the same as [`Accepted::best_first`], with codings of equal weight in the order of `ties`.
    pub fn ranked(&self, ties: [Coding; 3]) -> impl Iterator<Item = Coding> {
        let weights = self.weights;
        let least = self.identity.max(1);
        let mut ranked = ties;
        ranked.sort_by_key(|&coding| Reverse(weights[coding as usize]));
        ranked
            .into_iter()
            .filter(move |&coding| weights[coding as usize] >= least)
    }
}

/// The weights that were found so far. If a coding occurs twice, the lower weight counts, so that a declined coding
/// stays declined.
#[derive(Default)]
struct Named {
    codings: [Option<Weight>; Coding::ALL.len()],
    identity: Option<Weight>,
    others: Option<Weight>,
}

impl Named {
    fn note(&mut self, member: &[u8]) {
        let Some((token, weight)) = weighted(member) else {
            return;
        };
        let place = match Coding::named(token) {
            Some(coding) => &mut self.codings[coding as usize],
            None if token == b"*" => &mut self.others,
            None if token.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            None => return,
        };
        *place = Some(place.unwrap_or(FULL).min(weight));
    }

    /// `*` stands for everything that is not named, including `identity`.
    fn accepted(&self) -> Accepted {
        let unnamed = self.others.unwrap_or(0);
        Accepted {
            weights: self.codings.map(|weight| weight.unwrap_or(unnamed)),
            identity: self.identity.unwrap_or(unnamed),
        }
    }
}

/// The parts of a member: `gzip`, `gzip;q=0.5`, `gzip ; Q=1.000`.
fn weighted(member: &[u8]) -> Option<(&[u8], Weight)> {
    let Some(semicolon) = memchr::memchr(b';', member) else {
        return Some((member, FULL));
    };
    match trim(&member[semicolon + 1..]) {
        [b'q' | b'Q', b'=', digits @ ..] => Some((trim(&member[..semicolon]), weight(digits)?)),
        _ => None,
    }
}

/// 0 to 1 with at most three decimals (RFC 9110 §12.4.2).
fn weight(text: &[u8]) -> Option<Weight> {
    let (whole, decimals) = match text {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut weight = Weight::from(whole - b'0');
    for place in 0..3 {
        weight = 10 * weight
            + match decimals.get(place) {
                Some(digit @ b'0'..=b'9') => Weight::from(digit - b'0'),
                Some(_) => return None,
                None => 0,
            };
    }
    (weight <= FULL).then_some(weight)
}
