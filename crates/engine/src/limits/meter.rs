//! Whether something moves fast enough, by a rule that no haste of before can buy off.
//!
//! Each byte pays for a part of time: for a second, where the rate is as many as the bytes. Time is paid in order, and never
//! ahead of the present, so that what came fast yesterday pays for nothing today. Whoever has not paid for the last
//! `grace` is late. Hence over any stretch of time, wherever it begins, there is the rate, but for one grace; and who stands
//! still for a grace is late at whatever rate.

use std::time::Duration;

/// What something that moves has to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How far it may fall behind.
    pub(crate) grace: Duration,
    /// That many a second; 0: one in each grace is enough.
    pub(crate) bytes: u64,
}

/// How far something has paid. Times are milliseconds, as for all deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Nanoseconds up to which time is paid: fast peers send few bytes in a millisecond.
    paid: u64,
}

impl Meter {
    /// It begins now; nothing is owed.
    pub(crate) fn begin(now: u64) -> Meter {
        Meter {
            paid: now.saturating_mul(1_000_000),
        }
    }

    /// So many bytes have moved by now.
    pub(crate) fn moved(&mut self, bytes: u64, now: u64, rate: Rate) {
        let worth = match bytes {
            0 => 0,
            _ => bytes
                .saturating_mul(1_000_000_000)
                .checked_div(rate.bytes)
                .unwrap_or(u64::MAX),
        };
        self.paid = self
            .paid
            .saturating_add(worth)
            .min(Meter::begin(now).paid)
            .max(self.paid);
    }

    /// Time during which it was not this one's fault is not owed.
    pub(crate) fn forgive(&mut self, milliseconds: u64) {
        self.paid = self.paid.saturating_add(milliseconds.saturating_mul(1_000_000));
    }

    /// When it is late, if nothing moves until then.
    pub(crate) fn deadline(&self, rate: Rate) -> u64 {
        let grace = u64::try_from(rate.grace.as_nanos()).unwrap_or(u64::MAX);
        self.paid.saturating_add(grace).div_ceil(1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, Rate};
    use std::time::Duration;

    /// Half a megabyte a second, and ten seconds.
    const RATE: Rate = Rate {
        grace: Duration::from_secs(10),
        bytes: 500_000,
    };

    /// Milliseconds until it is late, when `bytes` move every `period` milliseconds; nothing after an hour.
    fn late(mut meter: Meter, rate: Rate, start: u64, bytes: u64, period: u64) -> Option<u64> {
        let mut now = start;
        while now - start < 3_600_000 {
            if meter.deadline(rate) <= now + period {
                return Some(meter.deadline(rate) - start);
            }
            now += period;
            meter.moved(bytes, now, rate);
        }
        None
    }

    #[test]
    fn what_stands_still_is_late_after_the_grace() {
        assert_eq!(Meter::begin(7).deadline(RATE), 10_007);
        let mut meter = Meter::begin(0);
        meter.moved(0, 5_000, RATE);
        assert_eq!(meter.deadline(RATE), 10_000);
    }

    #[test]
    fn what_was_fast_before_buys_no_time() {
        for sent in [1 << 20, 1 << 30, u64::MAX] {
            let mut meter = Meter::begin(0);
            meter.moved(sent, 1_000, RATE);
            assert_eq!(meter.deadline(RATE), 11_000, "{sent}");
            let until = late(meter, RATE, 1_000, 1, 1_000).expect("a byte a second is not enough");
            assert!((10_000..10_100).contains(&until), "{until}");
        }
    }

    #[test]
    fn who_keeps_the_rate_is_never_late_and_who_does_not_soon_is() {
        for period in [1, 10, 100, 1_000, 9_000] {
            let bytes = RATE.bytes * period / 1_000;
            assert_eq!(late(Meter::begin(0), RATE, 0, bytes, period), None, "every {period} ms");
            assert_eq!(
                late(Meter::begin(0), RATE, 0, bytes * 2, period),
                None,
                "every {period} ms"
            );
            let half = late(Meter::begin(0), RATE, 0, bytes / 2, period).expect("it is half as fast");
            assert!((10_000..=20_100).contains(&half), "{half} at {period} ms");
        }
    }

    #[test]
    fn bytes_that_are_worth_less_than_a_millisecond_add_up() {
        let rate = Rate { bytes: 1 << 30, ..RATE };
        let mut meter = Meter::begin(0);
        (0..10_000).for_each(|_| meter.moved(1 << 20, 20_000, rate));
        assert_eq!(meter.deadline(rate), 10_000 + 9_766);
    }

    #[test]
    fn without_a_rate_a_byte_is_enough() {
        let rate = Rate { bytes: 0, ..RATE };
        assert_eq!(late(Meter::begin(0), rate, 0, 1, 9_000), None);
        assert_eq!(late(Meter::begin(0), rate, 0, 0, 1_000), Some(10_000));
    }

    #[test]
    fn time_that_is_forgiven_is_not_owed() {
        let mut meter = Meter::begin(0);
        meter.forgive(60_000);
        assert_eq!(meter.deadline(RATE), 70_000);
        // Ahead of the present nothing can be paid, nor is it taken back.
        meter.moved(1 << 40, 50_000, RATE);
        assert_eq!(meter.deadline(RATE), 70_000);
    }
}
