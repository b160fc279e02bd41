//! Results of the TLS handshakes: their number, their duration, and the agreed versions and ciphers.
//!
//! A handshake lasts from the moment its connection is open until its last message is ready to send. That message is
//! sent together with the first request.

use crate::clock::Nanos;
use crate::latencies::{add, histogram};
use crate::socket::Shaken;
use crate::tls::Agreement;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The handshakes of one thread, or of all.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// Durations of full handshakes…
    pub(crate) full: Histogram<u64>,
    /// …and of resumed ones.
    pub(crate) resumed: Histogram<u64>,
    /// Number of handshakes for each agreement, including the warm-up.
    pub(crate) agreements: BTreeMap<Agreement, u64>,
    /// Number of failures for each reason, including the warm-up.
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

    /// A handshake has succeeded; `taken` is its duration, if it counts.
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

    /// A handshake, or a read after it, has failed.
    pub(crate) fn failed(&mut self, reason: String) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Number of successful handshakes, without the warm-up.
    pub(crate) fn count(&self) -> u64 {
        self.full.len() + self.resumed.len()
    }

    /// Adds the measurements of another thread.
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
