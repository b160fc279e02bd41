//! A distribution of times of a fixed size: the difference of two histograms, and its percentiles.

use fairlead_engine::Histogram;

/// Most bounds.
const STEPS: usize = 16;

/// Numbers of times up to each bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Distribution {
    /// Seconds, in ascending order; the unused ones are 0.
    bounds: [f64; STEPS],
    /// Times above the previous bound and up to the bound with the same index.
    counts: [u64; STEPS],
    /// Times above the last bound.
    longer: u64,
}

impl Distribution {
    /// The sum of histograms with the same bounds.
    pub(super) fn of(histograms: impl IntoIterator<Item = Histogram>) -> Distribution {
        let mut sum = Distribution::default();
        for histogram in histograms {
            sum.add_histogram(&histogram);
        }
        sum
    }

    fn add_histogram(&mut self, histogram: &Histogram) {
        let mut below = 0;
        for (step, (bound, up_to)) in histogram.buckets().take(STEPS).enumerate() {
            self.bounds[step] = bound;
            self.counts[step] += up_to - below;
            below = up_to;
        }
        self.longer += histogram.count().saturating_sub(below);
    }

    /// The times without the ones in `earlier`.
    pub(super) fn since(&self, earlier: &Distribution) -> Distribution {
        let mut difference = *self;
        difference.subtract(earlier);
        difference
    }

    pub(super) fn add(&mut self, other: &Distribution) {
        if self.count() == 0 {
            self.bounds = other.bounds;
        }
        let pairs = self.counts.iter_mut().zip(other.counts);
        pairs.for_each(|(own, count)| *own += count);
        self.longer += other.longer;
    }

    pub(super) fn subtract(&mut self, other: &Distribution) {
        let pairs = self.counts.iter_mut().zip(other.counts);
        pairs.for_each(|(own, count)| *own = own.saturating_sub(count));
        self.longer = self.longer.saturating_sub(other.longer);
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.longer
    }

    /// The time in seconds that this part of all times does not exceed, by interpolation between two bounds; at least the
    /// first bound, and at most the last one. `None` if there are no times.
    pub(super) fn percentile(&self, part: f64) -> Option<f64> {
        let count = self.count();
        let wanted = part * count as f64;
        let mut below = 0.0;
        let mut lower = 0.0;
        for (bound, count) in self.bounds.into_iter().zip(self.counts) {
            let count = count as f64;
            if count > 0.0 && below + count >= wanted {
                // Nothing is known of times below the first bound.
                let is_first = lower == 0.0;
                return Some(if is_first {
                    bound
                } else {
                    lower + (bound - lower) * (wanted - below) / count
                });
            }
            below += count;
            lower = if bound > 0.0 { bound } else { lower };
        }
        (count > 0).then_some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts for the bounds 1, 2 and 5, and above.
    fn of(counts: [u64; 4]) -> Distribution {
        let mut distribution = Distribution::default();
        distribution.bounds[..3].copy_from_slice(&[1.0, 2.0, 5.0]);
        distribution.counts[..3].copy_from_slice(&counts[..3]);
        distribution.longer = counts[3];
        distribution
    }

    #[test]
    fn percentiles_are_interpolated() {
        let distribution = of([0, 10, 10, 0]);
        let percentiles = [0.25, 0.5, 0.75, 1.0].map(|part| distribution.percentile(part));

        assert_eq!([Some(1.5), Some(2.0), Some(3.5), Some(5.0)], percentiles);
    }

    #[test]
    fn longer_times_count_as_the_last_bound_and_no_times_have_no_percentile() {
        assert_eq!(Some(5.0), of([1, 0, 0, 9]).percentile(0.5));
        assert_eq!(None, of([0; 4]).percentile(0.5));
        assert_eq!(None, Distribution::default().percentile(0.5));
    }

    #[test]
    fn differences_and_sums_are_exact() {
        let (earlier, later) = (of([1, 2, 3, 4]), of([2, 2, 5, 9]));
        let mut sum = later.since(&earlier);

        assert_eq!(of([1, 0, 2, 5]), sum);
        sum.add(&earlier);
        assert_eq!(later, sum);
    }
}
