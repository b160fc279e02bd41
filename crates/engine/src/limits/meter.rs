//! Whether something moves fast enough, by a rule that no haste of before can buy off.
//!
//! Each byte pays for a part of time: for a second, where the rate is as many as the bytes. Time is paid in order, and never
//! ahead of the present, so that what came fast yesterday pays for nothing today. Whoever has not paid for the last
//! `grace` is late. Hence over any stretch of time, wherever it begins, there is the rate, but for one grace; and who stands
//! still for a grace is late at whatever rate.

use crate::clock::{Millis, Nanos};
use std::time::Duration;

/// What something that moves has to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How far it may fall behind.
    pub(crate) grace: Duration,
    /// That many a second; 0: one in each grace is enough.
    pub(crate) bytes: u64,
}

/// How far something has paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Up to when time is paid; in nanoseconds, since fast peers send few bytes in a millisecond.
    paid: Nanos,
}

impl Meter {
    /// It begins now; nothing is owed.
    pub(crate) fn begin(now: Millis) -> Meter {
        Meter { paid: now.into() }
    }

    /// So many bytes have moved by now.
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

    /// Time during which it was not this one's fault is not owed.
    pub(crate) fn forgive(&mut self, time: Duration) {
        self.paid = self.paid + time;
    }

    /// When it is late, if nothing moves until then.
    pub(crate) fn deadline(&self, rate: Rate) -> Millis {
        (self.paid + rate.grace).rounded_up()
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, Rate};
    use crate::clock::Millis;
    use std::time::Duration;

    /// Half a megabyte a second, and ten seconds.
    const RATE: Rate = Rate {
        grace: Duration::from_secs(10),
        bytes: 500_000,
    };

    /// So many milliseconds after the start of a test.
    fn at(milliseconds: u64) -> Millis {
        Millis::START + Duration::from_millis(milliseconds)
    }

    /// Milliseconds from the start of the test until it is late.
    fn deadline(meter: Meter, rate: Rate) -> u64 {
        (meter.deadline(rate) - at(0)).as_millis() as u64
    }

    /// Milliseconds until it is late, when `bytes` move every `period` milliseconds; nothing after an hour.
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
    fn what_stands_still_is_late_after_the_grace() {
        assert_eq!(deadline(Meter::begin(at(7)), RATE), 10_007);
        let mut meter = Meter::begin(at(0));
        meter.moved(0, at(5_000), RATE);
        assert_eq!(deadline(meter, RATE), 10_000);
    }

    #[test]
    fn what_was_fast_before_buys_no_time() {
        for sent in [1 << 20, 1 << 30, u64::MAX] {
            let mut meter = Meter::begin(at(0));
            meter.moved(sent, at(1_000), RATE);
            assert_eq!(deadline(meter, RATE), 11_000, "{sent}");
            let until = late(meter, RATE, 1_000, 1, 1_000).expect("a byte a second is not enough");
            assert!((10_000..10_100).contains(&until), "{until}");
        }
    }

    #[test]
    fn who_keeps_the_rate_is_never_late_and_who_does_not_soon_is() {
        let begin = || Meter::begin(at(0));
        for period in [1, 10, 100, 1_000, 9_000] {
            let bytes = RATE.bytes * period / 1_000;
            assert_eq!(late(begin(), RATE, 0, bytes, period), None, "every {period} ms");
            assert_eq!(late(begin(), RATE, 0, bytes * 2, period), None, "every {period} ms");
            let half = late(begin(), RATE, 0, bytes / 2, period).expect("it is half as fast");
            assert!((10_000..=20_100).contains(&half), "{half} at {period} ms");
        }
    }

    #[test]
    fn bytes_that_are_worth_less_than_a_millisecond_add_up() {
        let rate = Rate { bytes: 1 << 30, ..RATE };
        let mut meter = Meter::begin(at(0));
        (0..10_000).for_each(|_| meter.moved(1 << 20, at(20_000), rate));
        assert_eq!(deadline(meter, rate), 10_000 + 9_766);
    }

    #[test]
    fn without_a_rate_a_byte_is_enough() {
        let rate = Rate { bytes: 0, ..RATE };
        assert_eq!(late(Meter::begin(at(0)), rate, 0, 1, 9_000), None);
        assert_eq!(late(Meter::begin(at(0)), rate, 0, 0, 1_000), Some(10_000));
    }

    #[test]
    fn time_that_is_forgiven_is_not_owed() {
        let mut meter = Meter::begin(at(0));
        meter.forgive(Duration::from_secs(60));
        assert_eq!(deadline(meter, RATE), 70_000);
        // Ahead of the present nothing can be paid, nor is it taken back.
        meter.moved(1 << 40, at(50_000), RATE);
        assert_eq!(deadline(meter, RATE), 70_000);
    }
}
