//! The certificates that the server offers: a spawner reads their files, and all other processes get the bytes from
//! this module.
//!
//! "Reloaded" is logged when every serving worker has responded. A worker without a response after [`PATIENCE`] is
//! replaced, if its spawner has the new certificates: a copy of that process has them, too.

use crate::hot_restart_state::{Luggage, Package};
use crate::machine::{Moment, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Longest time for a worker to use new certificates.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time after which an offer is sent again to a process that could not use it.
const AGAIN: Duration = Duration::from_secs(2);

/// The certificates of one `ssl://` address.
#[derive(Debug)]
struct Offer {
    /// The address without its query, for log lines.
    location: Vec<u8>,
    fingerprint: Vec<u8>,
    /// The certificates, keys and lists: a file in memory that Ruby has written.
    bytes: OwnedFd,
    since: Moment,
    /// True if no more log lines are due.
    announced: bool,
    /// The reason why a process could not use the offer; nothing if it could.
    answers: BTreeMap<ProcessId, Option<String>>,
    /// The time to send the offer again to processes that could not use it.
    again_at: Moment,
}

/// A serving worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Its name.
    pub worker: ProcessId,
    /// The name of its spawner, if the spawner still runs.
    pub spawner: Option<ProcessId>,
    /// Its start.
    pub since: Moment,
}

/// The conclusion from the responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All workers offer the new certificates of this address.
    Reloaded(String),
    /// This worker does not, and has to be replaced.
    Behind(ProcessId, String),
    /// This process could not use them, for this reason; it tries again.
    Failed(ProcessId, String, String),
}

/// The offers of all addresses, by their keys.
#[derive(Debug, Default)]
pub struct Certificates {
    offers: BTreeMap<Vec<u8>, Offer>,
}

impl Certificates {
    /// Seconds after which a worker is behind, for the log.
    pub const PATIENCE: Duration = PATIENCE;

    /// Stores certificates that a spawner has read. `news`: false if the workers have had them since their start.
    pub fn keep(&mut self, now: Moment, [key, location, fingerprint]: [&[u8]; 3], bytes: OwnedFd, news: bool) {
        let offer = Offer {
            location: location.to_vec(),
            fingerprint: fingerprint.to_vec(),
            bytes,
            since: now,
            announced: !news,
            answers: BTreeMap::new(),
            again_at: now + AGAIN,
        };
        self.offers.insert(key.to_vec(), offer);
    }

    /// Drops all offers: their configuration is no longer in force.
    pub fn clear(&mut self) {
        self.offers.clear();
    }

    /// Calls `send` with the key, the location, the fingerprint and the bytes of each offer.
    pub fn each(&self, mut send: impl FnMut([&[u8]; 3], std::os::fd::BorrowedFd<'_>)) {
        for (key, offer) in &self.offers {
            send([key, &offer.location, &offer.fingerprint], offer.bytes.as_fd());
        }
    }

    /// Calls `send` like [`Certificates::each`] for each process that could not use an offer, from time to time.
    pub fn again(&mut self, now: Moment, mut send: impl FnMut(ProcessId, [&[u8]; 3], std::os::fd::BorrowedFd<'_>)) {
        for (key, offer) in self.offers.iter_mut().filter(|(_, offer)| now >= offer.again_at) {
            offer.again_at = now + AGAIN;
            let failed = offer.answers.iter().filter(|(_, answer)| answer.is_some());
            for (process, _) in failed {
                send(
                    *process,
                    [key, &offer.location, &offer.fingerprint],
                    offer.bytes.as_fd(),
                );
            }
        }
    }

    /// Calls `send` like [`Certificates::each`], for one offer.
    pub fn one(&self, key: &[u8], send: impl FnOnce([&[u8]; 3], std::os::fd::BorrowedFd<'_>)) {
        if let Some((key, offer)) = self.offers.get_key_value(key) {
            send([key, &offer.location, &offer.fingerprint], offer.bytes.as_fd());
        }
    }

    /// Takes the response of a process.
    pub fn answered(&mut self, process: ProcessId, key: &[u8], reason: Option<String>) -> Option<Outcome> {
        let offer = self.offers.get_mut(key)?;
        let before = offer.answers.insert(process, reason.clone());
        let reason = reason.filter(|reason| before.flatten().as_ref() != Some(reason))?;
        let location = String::from_utf8_lossy(&offer.location).into_owned();
        Some(Outcome::Failed(process, location, reason))
    }

    /// Draws conclusions from the responses. `exists`: true for a process that still runs. `replacing`: true if a
    /// worker is being replaced already; then no other worker is given up, so that one remains to take over its work.
    pub fn tend(
        &mut self,
        now: Moment,
        serving: &[Serving],
        exists: impl Fn(ProcessId) -> bool,
        replacing: bool,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for offer in self.offers.values_mut() {
            offer.answers.retain(|process, _| exists(*process));
            let location = || String::from_utf8_lossy(&offer.location).into_owned();
            let has = |process| matches!(offer.answers.get(&process), Some(None));
            if !offer.announced && serving.iter().all(|one| has(one.worker)) {
                outcomes.push(Outcome::Reloaded(location()));
                offer.announced = true;
            }
            if replacing || offer.announced || now.saturating_sub(offer.since) <= PATIENCE {
                continue;
            }
            let late = serving.iter().find(|one| {
                !has(one.worker) && now.saturating_sub(one.since) > PATIENCE && one.spawner.is_some_and(has)
            });
            outcomes.extend(late.map(|one| Outcome::Behind(one.worker, location())));
        }
        outcomes
    }
}

/// An offer, for another supervisor program. Its format is frozen, like [`HotRestartState`](crate::hot_restart_state::HotRestartState), which
/// contains it.
#[derive(Debug, Deserialize, Serialize)]
pub struct SavedOffer {
    key: Vec<u8>,
    location: Vec<u8>,
    fingerprint: Vec<u8>,
    bytes: usize,
}

impl Certificates {
    /// Describes all offers. Adds their descriptors to `luggage`.
    ///
    /// # Errors
    /// If descriptors are short.
    pub fn save(&self, luggage: &mut Luggage) -> io::Result<Vec<SavedOffer>> {
        let saved = self.offers.iter().map(|(key, offer)| {
            Ok(SavedOffer {
                key: key.clone(),
                location: offer.location.clone(),
                fingerprint: offer.fingerprint.clone(),
                bytes: luggage.add(offer.bytes.as_fd())?,
            })
        });
        saved.collect()
    }

    /// Restores the offers. No worker is asked if it has them.
    ///
    /// # Errors
    /// If descriptors are short: a sentence.
    pub fn restore(saved: &[SavedOffer], package: &Package, now: Moment) -> Result<Certificates, String> {
        let mut certificates = Certificates::default();
        for offer in saved {
            let words = [offer.key.as_slice(), &offer.location, &offer.fingerprint];
            certificates.keep(now, words, package.descriptor(offer.bytes)?, false);
        }
        Ok(certificates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Moment = Duration::from_secs(0);
    const LATER: Moment = Duration::from_secs(61);

    fn bytes() -> OwnedFd {
        fairlead_system::wake_up::open().expect("a descriptor")
    }

    fn offered(news: bool) -> Certificates {
        let mut certificates = Certificates::default();
        certificates.keep(OLD, [b"k", b"ssl://h:1", b"f"], bytes(), news);
        certificates
    }

    fn serving(worker: ProcessId) -> Serving {
        Serving {
            worker,
            spawner: Some(9),
            since: OLD,
        }
    }

    #[test]
    fn reloaded_once_when_every_worker_has_answered() {
        let mut certificates = offered(true);
        let workers = [serving(1), serving(2)];
        assert_eq!(certificates.answered(1, b"k", None), None);
        assert_eq!(certificates.tend(OLD, &workers, |_| true, false), []);
        assert_eq!(certificates.answered(2, b"k", None), None);
        assert_eq!(
            certificates.tend(OLD, &workers, |_| true, false),
            [Outcome::Reloaded("ssl://h:1".into())]
        );
        assert_eq!(certificates.tend(LATER, &workers, |_| true, false), []);
    }

    #[test]
    fn a_failure_is_told_once_for_each_reason() {
        let mut certificates = offered(true);
        let failed = |reason: &str| Some(Outcome::Failed(1, "ssl://h:1".into(), reason.into()));
        assert_eq!(
            certificates.answered(1, b"k", Some("no memory".into())),
            failed("no memory")
        );
        assert_eq!(certificates.answered(1, b"k", Some("no memory".into())), None);
        assert_eq!(
            certificates.answered(1, b"k", Some("no thread".into())),
            failed("no thread")
        );
        assert_eq!(certificates.answered(1, b"other", Some("no thread".into())), None);
    }

    #[test]
    fn a_process_that_could_not_use_an_offer_gets_it_again() {
        let mut certificates = offered(true);
        certificates.answered(1, b"k", Some("no descriptor".into()));
        certificates.answered(2, b"k", None);
        let sent = |certificates: &mut Certificates, now| {
            let mut processes = Vec::new();
            certificates.again(now, |process, _, _| processes.push(process));
            processes
        };
        assert_eq!(sent(&mut certificates, OLD), [0; 0]);
        assert_eq!(sent(&mut certificates, LATER), [1]);
        assert_eq!(sent(&mut certificates, LATER), [0; 0]);
    }

    #[test]
    fn a_worker_is_behind_only_if_its_spawner_is_not() {
        let mut certificates = offered(true);
        let workers = [serving(1)];
        assert_eq!(certificates.tend(LATER, &workers, |_| true, false), []);
        certificates.answered(9, b"k", None);
        assert_eq!(certificates.tend(LATER, &workers, |_| true, true), []);
        let behind = [Outcome::Behind(1, "ssl://h:1".into())];
        assert_eq!(certificates.tend(LATER, &workers, |_| true, false), behind);
        assert_eq!(certificates.tend(LATER, &workers, |process| process != 9, false), []);
    }

    #[test]
    fn offers_of_the_start_are_no_news() {
        let mut certificates = offered(false);
        assert_eq!(certificates.tend(LATER, &[serving(1)], |_| true, false), []);
    }
}
