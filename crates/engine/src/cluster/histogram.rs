//! Histogram of times, in memory that processes share: the number of times up to each bound, and the sum of all times.
//! Its size is fixed, and counting takes no lock: two additions. Its bounds are not in the memory: waits and responses
//! have different ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Most bounds.
const STEPS: usize = 16;

/// Upper bounds of waits, in nanoseconds: 1, 2 and 5 in each power of ten, from 100 µs to 10 s.
const BOUNDS: [u64; STEPS] = bounds();

/// Upper bounds of the times of responses, in nanoseconds: the bounds of OpenTelemetry's `http.server.request.duration`.
pub(crate) const RESPONSE_BOUNDS: [u64; 14] = {
    const MS: u64 = 1_000_000;
    [
        5 * MS,
        10 * MS,
        25 * MS,
        50 * MS,
        75 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        750 * MS,
        1_000 * MS,
        2_500 * MS,
        5_000 * MS,
        7_500 * MS,
        10_000 * MS,
    ]
};

const fn bounds() -> [u64; STEPS] {
    let (mut bounds, mut step) = ([0; STEPS], 0);
    while step < STEPS {
        bounds[step] = [1, 2, 5][step % 3] * 100_000 * 10u64.pow(step as u32 / 3);
        step += 1;
    }
    bounds
}

/// Histogram that others read while it counts. All zeros: an empty histogram.
#[repr(C)]
#[derive(Debug, Default)]
pub struct AtomicHistogram {
    /// Number of times above the previous bound and up to the bound with the same index. The last number has no bound.
    counts: [AtomicU64; STEPS + 1],
    nanoseconds: AtomicU64,
}

/// Counts of a histogram at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: [u64; STEPS + 1],
    nanoseconds: u64,
}

impl Default for Histogram {
    /// An empty histogram of waits.
    fn default() -> Histogram {
        AtomicHistogram::default().load(Ordering::Relaxed)
    }
}

impl AtomicHistogram {
    /// An empty histogram.
    pub(crate) const fn new() -> AtomicHistogram {
        AtomicHistogram {
            counts: [const { AtomicU64::new(0) }; STEPS + 1],
            nanoseconds: AtomicU64::new(0),
        }
    }

    /// Counts a wait.
    pub(crate) fn count(&self, time: Duration) {
        self.count_within(&BOUNDS, time);
    }

    /// Counts a time in a histogram with these bounds.
    pub(crate) fn count_within(&self, bounds: &'static [u64], time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let step = bounds.partition_point(|bound| *bound < nanoseconds);
        self.counts[step].fetch_add(1, Ordering::Relaxed);
        if nanoseconds > 0 {
            self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Returns the current counts of waits. Times that are counted meanwhile may be missing in some of the numbers.
    pub(crate) fn load(&self, order: Ordering) -> Histogram {
        self.load_within(&BOUNDS, order)
    }

    /// Returns the current counts of a histogram with these bounds.
    pub(crate) fn load_within(&self, bounds: &'static [u64], order: Ordering) -> Histogram {
        Histogram {
            bounds,
            counts: std::array::from_fn(|step| self.counts[step].load(order)),
            nanoseconds: self.nanoseconds.load(order),
        }
    }

    /// Adds the counts of another histogram.
    pub(crate) fn add(&self, other: &Histogram) {
        for (own, count) in self.counts.iter().zip(other.counts) {
            own.fetch_add(count, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(other.nanoseconds, Ordering::Relaxed);
    }

    /// Clears the histogram.
    pub(crate) fn clear(&self) {
        let numbers = self.counts.iter().chain([&self.nanoseconds]);
        numbers.for_each(|number| number.store(0, Ordering::Relaxed));
    }
}

impl Histogram {
    /// Number of times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all times, in seconds.
    pub fn seconds(&self) -> f64 {
        Duration::from_nanos(self.nanoseconds).as_secs_f64()
    }

    /// Bounds in seconds, in ascending order, each with the number of times up to it.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut sum = 0;
        self.bounds.iter().zip(&self.counts).map(move |(bound, count)| {
            sum += count;
            (Duration::from_nanos(*bound).as_secs_f64(), sum)
        })
    }

    /// Returns an empty histogram with the same bounds.
    pub(crate) fn none(self) -> Histogram {
        Histogram {
            counts: [0; STEPS + 1],
            nanoseconds: 0,
            ..self
        }
    }

    /// Returns the sum of this histogram and `other`, which has the same bounds.
    pub(crate) fn plus(mut self, other: Histogram) -> Histogram {
        for (own, count) in self.counts.iter_mut().zip(other.counts) {
            *own += count;
        }
        self.nanoseconds = self.nanoseconds.wrapping_add(other.nanoseconds);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn of(times: &[Duration]) -> Histogram {
        let histogram = AtomicHistogram::default();
        times.iter().for_each(|time| histogram.count(*time));
        histogram.load(Relaxed)
    }

    #[test]
    fn the_bounds_are_one_two_and_five_from_100_microseconds_to_10_seconds() {
        let bounds: Vec<String> = of(&[]).buckets().map(|(bound, _)| format!("{bound}")).collect();
        let expected = [
            "0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1",
            "2", "5", "10",
        ];
        assert_eq!(bounds, expected);
    }

    #[test]
    fn a_time_is_in_the_bucket_of_its_own_bound_and_in_all_above() {
        for (step, bound) in BOUNDS.into_iter().enumerate() {
            let bound = Duration::from_nanos(bound);
            let counted = of(&[bound, bound + Duration::from_nanos(1)]);
            let sums: Vec<u64> = counted.buckets().map(|(_, sum)| sum).collect();
            let mut expected = vec![0; step];
            expected.push(1);
            expected.resize(STEPS, 2);
            assert_eq!(sums, expected, "{bound:?}");
            assert_eq!(counted.count(), 2);
        }
    }

    #[test]
    fn times_of_no_length_and_of_any_length_are_counted() {
        let counted = of(&[Duration::ZERO, Duration::from_secs(11), Duration::MAX]);
        assert_eq!(counted.count(), 3);
        assert_eq!(counted.buckets().last(), Some((10.0, 1)));
        assert_eq!(of(&[Duration::ZERO, Duration::from_millis(1500)]).seconds(), 1.5);
    }

    #[test]
    fn what_several_have_counted_adds_up() {
        let [one, two] = [Duration::from_millis(1), Duration::from_secs(3)].map(|time| of(&[time]));
        let both = of(&[Duration::from_millis(1), Duration::from_secs(3)]);
        assert_eq!(one.plus(two), both);
        let all = AtomicHistogram::default();
        all.add(&one);
        all.add(&two);
        assert_eq!(all.load(Relaxed), both);
        all.clear();
        assert_eq!(all.load(Relaxed), Histogram::default());
    }
}
