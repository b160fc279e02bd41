//! Measures if a peer keeps its minimum rate, by a rule that earlier speed cannot bypass.
//!
//! Each byte pays for some time: one second costs as many bytes as the rate. Time is paid in order, and never ahead of
//! the present, so earlier speed does not pay for the present. A peer that has not paid for the last `grace` is late.
//! Hence the rate holds over any period, except for one grace; and a peer that makes no progress for a grace is late at
//! any rate.

use crate::clock::{Millis, Nanos};
use std::time::Duration;

/// Minimum rate of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Longest time by which it may fall behind.
    pub(crate) grace: Duration,
    /// Bytes per second; 0: one byte in each grace is enough.
    pub(crate) bytes: u64,
}

/// Progress of a peer's payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Time that is paid up to; in nanoseconds, because a few bytes may pay for less than a millisecond.
    paid: Nanos,
}

impl Meter {
    /// Begins now, with nothing overdue.
    pub(crate) fn begin(now: Millis) -> Meter {
        Meter { paid: now.into() }
    }

    /// Time that is paid up to, for another process.
    pub(crate) fn paid(&self) -> Nanos {
        self.paid
    }

    /// Continues where another process was.
    pub(crate) fn from_paid(paid: Nanos) -> Meter {
        Meter { paid }
    }

    /// Counts `bytes` that have moved by now.
    pub(crate) fn moved(&mut self, bytes: u64, now: Millis, rate: Rate) {
        let worth = match bytes {
            0 => 0,
            _ => bytes
                .saturating_mul(1_000_000_000)
                .checked_div(rate.bytes)
                .unwrap_or(u64::MAX),
        };
        let paid = self.paid + Duration::from_nanos(worth);
        self.paid = paid.min(now.into()).max(self.paid);
    }

    /// Excuses `time` that the peer did not cause.
    pub(crate) fn forgive(&mut self, time: Duration) {
        self.paid = self.paid + time;
    }

    /// Excuses the time until `then`.
    pub(crate) fn excuse_until(&mut self, then: Millis) {
        self.paid = self.paid.max(then.into());
    }

    /// Time at which the peer is late, if no bytes move until then.
    pub(crate) fn deadline(&self, rate: Rate) -> Millis {
        (self.paid + rate.grace).rounded_up()
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, Rate};
    use crate::clock::Millis;
    use std::time::Duration;

    /// Half a megabyte a second, and ten seconds of grace.
    const RATE: Rate = Rate {
        grace: Duration::from_secs(10),
        bytes: 500_000,
    };

    /// Time so many milliseconds after the start of a test.
    fn at(milliseconds: u64) -> Millis {
        Millis::START + Duration::from_millis(milliseconds)
    }

    /// Milliseconds from the start of the test until the peer is late.
    fn deadline(meter: Meter, rate: Rate) -> u64 {
        (meter.deadline(rate) - at(0)).as_millis() as u64
    }

    /// Milliseconds until the peer is late if `bytes` move every `period` milliseconds; `None` if it is not late within
    /// an hour.
    fn late(mut meter: Meter, rate: Rate, start: u64, bytes: u64, period: u64) -> Option<u64> {
        let mut now = start;
        while now - start < 3_600_000 {
            if deadline(meter, rate) <= now + period {
                return Some(deadline(meter, rate) - start);
            }
            now += period;
            meter.moved(bytes, at(now), rate);
        }
        None
    }

    #[test]
    fn a_peer_without_progress_is_late_after_the_grace() {
        assert_eq!(deadline(Meter::begin(at(7)), RATE), 10_007);
        let mut meter = Meter::begin(at(0));
        meter.moved(0, at(5_000), RATE);
        assert_eq!(deadline(meter, RATE), 10_000);
    }

    #[test]
    fn earlier_speed_buys_no_time() {
        for sent in [1 << 20, 1 << 30, u64::MAX] {
            let mut meter = Meter::begin(at(0));
            meter.moved(sent, at(1_000), RATE);
            assert_eq!(deadline(meter, RATE), 11_000, "{sent}");
            let until = late(meter, RATE, 1_000, 1, 1_000).expect("a byte a second is not enough");
            assert!((10_000..10_100).contains(&until), "{until}");
        }
    }

    #[test]
    fn a_peer_that_keeps_the_rate_is_never_late_and_a_slower_one_soon_is() {
        let begin = || Meter::begin(at(0));
        for period in [1, 10, 100, 1_000, 9_000] {
            let bytes = RATE.bytes * period / 1_000;
            assert_eq!(late(begin(), RATE, 0, bytes, period), None, "every {period} ms");
            assert_eq!(late(begin(), RATE, 0, bytes * 2, period), None, "every {period} ms");
            let half = late(begin(), RATE, 0, bytes / 2, period).expect("a late peer at half the rate");
            assert!((10_000..=20_100).contains(&half), "{half} at {period} ms");
        }
    }

    #[test]
    fn bytes_that_pay_for_less_than_a_millisecond_add_up() {
        let rate = Rate { bytes: 1 << 30, ..RATE };
        let mut meter = Meter::begin(at(0));
        (0..10_000).for_each(|_| meter.moved(1 << 20, at(20_000), rate));
        assert_eq!(deadline(meter, rate), 10_000 + 9_766);
    }

    #[test]
    fn without_a_rate_one_byte_per_grace_is_enough() {
        let rate = Rate { bytes: 0, ..RATE };
        assert_eq!(late(Meter::begin(at(0)), rate, 0, 1, 9_000), None);
        assert_eq!(late(Meter::begin(at(0)), rate, 0, 0, 1_000), Some(10_000));
    }

    #[test]
    fn forgiven_time_does_not_count() {
        let mut meter = Meter::begin(at(0));
        meter.forgive(Duration::from_secs(60));
        assert_eq!(deadline(meter, RATE), 70_000);
        // Nothing can be paid ahead of the present, and forgiven time is not taken back.
        meter.moved(1 << 40, at(50_000), RATE);
        assert_eq!(deadline(meter, RATE), 70_000);
    }
}
