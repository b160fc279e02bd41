//! Latencies of one kind of request, of which a run may have thousands.
//!
//! A histogram has 34,000 counters. Few latencies are kept as they are instead, so that the start of a run, the merge of its threads and its
//! report take time for the latencies and not for the kinds.

use crate::clock::Nanos;
use crate::latencies::{add, histogram};
use hdrhistogram::Histogram;

/// Latencies above this number are counted in a histogram.
const FEW: usize = 1000;

#[derive(Debug)]
pub(crate) enum Sample {
    Few(Vec<Nanos>),
    Many(Box<Histogram<u64>>),
}

impl Default for Sample {
    fn default() -> Sample {
        Sample::Few(Vec::new())
    }
}

impl Sample {
    pub(crate) fn record(&mut self, latency: Nanos) {
        match self {
            Sample::Few(values) if values.len() < FEW => values.push(latency),
            Sample::Few(_) => self.counted().saturating_record(latency),
            Sample::Many(histogram) => histogram.saturating_record(latency),
        }
    }

    /// Adds the latencies of another thread.
    pub(crate) fn merge(&mut self, other: &Sample) {
        match other {
            Sample::Few(values) => values.iter().for_each(|&value| self.record(value)),
            Sample::Many(histogram) => add(self.counted(), histogram),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Sample::Few(values) => values.len() as u64,
            Sample::Many(histogram) => histogram.len(),
        }
    }

    /// The latencies as a histogram from now on.
    fn counted(&mut self) -> &mut Histogram<u64> {
        if let Sample::Few(values) = self {
            let mut counts = Box::new(histogram());
            values.iter().for_each(|&value| counts.saturating_record(value));
            *self = Sample::Many(counts);
        }
        match self {
            Sample::Many(histogram) => histogram,
            Sample::Few(_) => unreachable!("the few have just been counted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(latencies: impl IntoIterator<Item = Nanos>) -> Sample {
        let mut sample = Sample::default();
        latencies.into_iter().for_each(|latency| sample.record(latency));
        sample
    }

    #[test]
    fn few_latencies_are_kept_and_many_are_counted() {
        assert!(matches!(sample(0..FEW as Nanos), Sample::Few(values) if values.len() == FEW));
        let Sample::Many(histogram) = sample(0..=FEW as Nanos) else {
            panic!("more than a few are counted");
        };
        assert_eq!((histogram.len(), histogram.max()), (FEW as u64 + 1, FEW as u64));
    }

    #[test]
    fn merging_keeps_all_latencies() {
        for (ours, theirs) in [(1, 1), (FEW, 1), (1, 2 * FEW), (2 * FEW, 1), (2 * FEW, 2 * FEW)] {
            let mut merged = sample(vec![5; ours]);
            merged.merge(&sample(vec![7; theirs]));
            assert_eq!(merged.len(), (ours + theirs) as u64);
        }
    }
}
