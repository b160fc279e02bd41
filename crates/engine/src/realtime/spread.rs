//! Numbers for clients that should not all do something at the same time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Numbers from 0 to 1 that fill this interval evenly, however many they are: the fractional parts of multiples of the
/// golden ratio.
#[derive(Debug, Default)]
pub(super) struct Spread(AtomicU32);

impl Spread {
    /// The next number.
    pub(super) fn next(&self) -> f64 {
        let count = self.0.fetch_add(1, Relaxed).wrapping_add(1);
        f64::from(count.wrapping_mul(2_654_435_769)) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenth_of_the_interval_gets_its_part() {
        let spread = Spread::default();
        let mut tenths = [0; 10];
        for _ in 0..1000 {
            tenths[((spread.next() * 10.0) as usize).min(9)] += 1;
        }
        assert!(tenths.iter().all(|count| (95..=105).contains(count)), "{tenths:?}");
    }
}
