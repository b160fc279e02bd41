//! Chooses the slow reader that is aborted when the totals are reached: none, as long as only the writers of responses
//! wait; the slowest one as soon as requests wait because the threads wait for memory.

use super::Spool;
use crate::clock::Millis;
use std::time::Duration;

/// A client that has been behind for less than this is not aborted.
pub(crate) const GRACE: Duration = Duration::from_millis(100);

/// No client is aborted before requests have waited this long for threads that wait for memory.
const STARVED: Duration = Duration::from_millis(250);

/// Waiting threads check at least this often. An observation from before a longer pause no longer counts.
const LOOKED: Duration = Duration::from_millis(100);

/// The start of the time in which requests have waited, as seen by the threads that wait for memory; and the time of
/// their last check.
#[derive(Debug, Default)]
pub(super) struct Starved {
    since: Option<Millis>,
    looked: Option<Millis>,
    /// The time when clients were last offered more bytes.
    offered: Option<Millis>,
}

impl Starved {
    /// Notes `is_starving`: requests wait now. Returns true if they have waited for long.
    fn see(&mut self, is_starving: bool, now: Millis) -> bool {
        let looked = self.looked.replace(now);
        let is_old = looked.is_none_or(|looked| now - looked > LOOKED);
        if !is_starving || is_old {
            self.since = None;
        }
        is_starving && now - *self.since.get_or_insert(now) >= STARVED
    }

    /// Returns true if it is time to offer clients more bytes.
    fn is_offer_due(&mut self, now: Millis) -> bool {
        let is_due = self.offered.is_none_or(|offered| now - offered >= LOOKED);
        if is_due {
            self.offered = Some(now);
        }
        is_due
    }
}

/// The decision about a client that may have to give way to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivesWay {
    /// The client gives way, or has done so.
    Yes,
    /// The client seems slow, but has not been observed for long enough.
    Perhaps(Slowness),
    /// The client will take its bytes soon, or has no memory that others could use.
    No,
}

/// The time that a client would need for the rest of its response at the rate so far, and the time for which it has
/// been behind. The larger, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slowness {
    needs: Duration,
    behind: Duration,
}

impl Slowness {
    /// Slowness of a client that filled its socket `behind` ago, has taken `taken` bytes in the last `time`, and has
    /// `pending` bytes to go.
    pub(crate) fn new(behind: Duration, taken: u64, time: Duration, pending: u64) -> Slowness {
        let needs = time.as_millis() * u128::from(pending) / u128::from(taken.max(1));
        Slowness {
            needs: Duration::from_millis(u64::try_from(needs).unwrap_or(u64::MAX)),
            behind,
        }
    }

    /// Decides if the client may be aborted so that others get its memory; `limit` as for [`Slowness::is_too_much`].
    pub(crate) fn gives_way(self, limit: Duration) -> GivesWay {
        match self.is_too_much(limit) {
            true => GivesWay::Yes,
            false if self.behind < 2 * LATELY => GivesWay::Perhaps(self),
            false => GivesWay::No,
        }
    }

    /// Returns true if the client may be aborted: it would not be done within `limit`.
    pub(crate) fn is_too_much(self, limit: Duration) -> bool {
        self.behind >= GRACE && self.needs > limit
    }
}

/// Bytes that a client has taken longer ago than this say little about its speed.
const LATELY: Duration = Duration::from_millis(500);

/// Speed of a client with a full socket. The kernel's buffer grows at first, independently of the client, so only bytes
/// that were taken lately say something about the client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadRate(Option<Full>);

#[derive(Clone, Copy, Debug)]
struct Full {
    since: Millis,
    /// Two earlier times at which the socket was full, at least [`LATELY`] apart, with the bytes taken until then.
    before: (Millis, u64),
    last: (Millis, u64),
    /// The latest time at which it was full.
    latest: (Millis, u64),
}

impl ReadRate {
    /// Notes that the client is behind since `since`, if that was not noted before.
    pub(crate) fn begin(&mut self, since: Millis, progress: u64) {
        self.full(since, progress);
    }

    fn full(&mut self, since: Millis, progress: u64) -> &mut Full {
        let last = (since, progress);
        self.0.get_or_insert(Full {
            since,
            before: last,
            last,
            latest: last,
        })
    }

    /// Notes that the socket is full, after it has taken `progress` bytes.
    pub(crate) fn note_full(&mut self, now: Millis, progress: u64) {
        let last = (now, progress);
        let full = self.full(now, progress);
        if now - full.last.0 >= LATELY {
            let stood_still = now - full.latest.0 >= LATELY;
            full.before = if stood_still { full.latest } else { full.last };
            full.last = last;
        }
        full.latest = last;
    }

    /// Slowness of a client that has taken `progress` bytes; `None` if its socket was never full.
    pub(crate) fn slowness(&self, now: Millis, progress: u64, pending: u64) -> Option<Slowness> {
        let Full {
            since, before, latest, ..
        } = self.0?;
        let stands_still = progress == latest.1 && now - latest.0 >= LATELY;
        let from = if stands_still { latest } else { before };
        let (taken, time) = (progress - from.1, now - from.0);
        Some(Slowness::new(now - since, taken, time, pending))
    }
}

/// The decision for a thread that finds no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Wait in the queue.
    Wait,
    /// A client was aborted: there is memory now, or soon.
    Relieved,
    /// Abort its own client.
    Own,
}

impl Spool {
    /// Notes `is_starving`: requests wait for a thread while all are busy. Returns true if that has lasted for long.
    pub(crate) fn is_starved(&self, is_starving: bool) -> bool {
        self.starved.lock().see(is_starving, Millis::now())
    }

    /// Returns true if it is time to find out which clients take anything. A socket is reported as writable only when a
    /// third of its buffer is free, so clients are offered more bytes, but only now and then.
    pub(crate) fn is_offer_due(&self, now: Millis) -> bool {
        self.starved.lock().is_offer_due(now)
    }
}

/// Frees memory by aborting slow readers.
pub(crate) trait Relief: Send + Sync {
    /// Aborts the slowest reader if requests have waited for threads that find no memory. Such a thread calls this
    /// repeatedly. `own`: slowness of the client of this thread.
    fn relieve(&self, own: Option<Slowness>) -> Decision;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn at(count: u64) -> Millis {
        Millis::START + milliseconds(count)
    }

    /// Slowness of a client that has taken `taken` bytes since its socket was first full.
    fn of(behind: u64, taken: u64, pending: u64) -> Slowness {
        let behind = milliseconds(behind);
        Slowness::new(behind, taken, behind, pending)
    }

    #[test]
    fn the_worst_is_the_client_that_would_need_longest() {
        let crawling = of(10_000, 20, 8_000_000);
        let steady = of(10_000, 5_000_000, 3_000_000);
        let stalled = of(200, 0, 8_000_000);
        assert!(crawling > stalled && stalled > steady);
        assert!(of(300, 0, 8_000_000) > stalled);
    }

    #[test]
    fn waiting_requests_count_once_they_have_waited_for_long() {
        let mut starved = Starved::default();
        let seen: Vec<bool> = (0..6).map(|tick| starved.see(true, at(1_000 + tick * 50))).collect();
        assert_eq!(seen, [false, false, false, false, false, true]);
        assert!(!starved.see(false, at(1_300)) && !starved.see(true, at(1_350)));
        assert!(
            !starved.see(true, at(1_350) + STARVED),
            "no thread has looked meanwhile"
        );
    }

    #[test]
    fn a_client_that_took_much_at_first_and_then_nothing_is_slow() {
        let mut read_rate = ReadRate::default();
        read_rate.note_full(at(0), 5_000);
        read_rate.note_full(at(10), 40_000);
        let is_slow = |read_rate: &ReadRate, now| {
            let slowness = read_rate.slowness(at(now), 40_000, 60_000).expect("it was full");
            slowness.is_too_much(milliseconds(30_000))
        };
        assert!(!is_slow(&read_rate, 500));
        assert!(is_slow(&read_rate, 510));
    }

    #[test]
    fn clients_that_would_be_done_in_time_or_have_just_begun_stay() {
        let limit = milliseconds(30_000);
        assert!(!of(10_000, 5_000_000, 3_000_000).is_too_much(limit));
        assert!(!of(99, 0, 8_000_000).is_too_much(limit));
        assert!(of(100, 0, 8_000_000).is_too_much(limit));
        assert!(of(10_000, 20_000, 8_000_000).is_too_much(limit));
    }
}
