//! What TLS handshakes came to: how many, how long they took, what was agreed on.
//!
//! A handshake lasts from when its connection is open to when its last message is there to be sent, which goes out with
//! the first request.

use crate::clock::Nanos;
use crate::latencies::{add, histogram};
use crate::socket::Shaken;
use crate::tls::Agreement;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The handshakes of one thread, or of all.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// How long those took that began from nothing…
    pub(crate) full: Histogram<u64>,
    /// …and those that resumed a session.
    pub(crate) resumed: Histogram<u64>,
    /// What was agreed on how often, in the warm-up too.
    pub(crate) agreements: BTreeMap<Agreement, u64>,
    /// Why TLS failed how often, in the warm-up too.
    pub(crate) reasons: BTreeMap<String, u64>,
}

impl Handshakes {
    pub(crate) fn new() -> Handshakes {
        Handshakes {
            full: histogram(),
            resumed: histogram(),
            agreements: BTreeMap::new(),
            reasons: BTreeMap::new(),
        }
    }

    /// One has succeeded; `taken` is how long it took, if it counts.
    pub(crate) fn succeeded(&mut self, shaken: Shaken, taken: Option<Nanos>) {
        *self.agreements.entry(shaken.agreement).or_default() += 1;
        if let Some(taken) = taken {
            let of_kind = if shaken.resumed {
                &mut self.resumed
            } else {
                &mut self.full
            };
            of_kind.saturating_record(taken);
        }
    }

    /// A handshake, or what is to be read after it, has failed.
    pub(crate) fn failed(&mut self, reason: String) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// How many have succeeded, without the warm-up.
    pub(crate) fn count(&self) -> u64 {
        self.full.len() + self.resumed.len()
    }

    /// Adds what another thread measured.
    pub(crate) fn merge(&mut self, other: &Handshakes) {
        add(&mut self.full, &other.full);
        add(&mut self.resumed, &other.resumed);
        for (agreement, count) in &other.agreements {
            *self.agreements.entry(*agreement).or_default() += count;
        }
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
    }
}
