//! Picks the next kind of request of a mix: at random by weight, in the same order in every run.

use crate::options::Share;

/// Draws for one thread.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// For each kind, the sum of the weights up to and including it.
    sums: Vec<u64>,
    state: u64,
}

impl Draw {
    /// Threads with different seeds draw different sequences.
    pub(crate) fn new(mix: &[Share], seed: u64) -> Draw {
        let sums = mix.iter().scan(0, |sum, share| {
            *sum += share.weight;
            Some(*sum)
        });
        Draw {
            sums: sums.collect(),
            state: seed,
        }
    }

    /// The index of a kind; 0 when there is no mix.
    pub(crate) fn next(&mut self) -> usize {
        let Some(&total) = self.sums.last() else {
            return 0;
        };
        let number = self.random() % total;
        self.sums.partition_point(|&sum| sum <= number)
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(weights: &[u64], seed: u64) -> Vec<usize> {
        let share = |&weight| Share {
            weight,
            name: String::new(),
            kind: 0,
            method: String::new(),
            path: String::new(),
            body: Vec::new(),
        };
        let mut draw = Draw::new(&weights.iter().map(share).collect::<Vec<_>>(), seed);
        (0..20_000).map(|_| draw.next()).collect()
    }

    #[test]
    fn each_kind_comes_as_often_as_its_weight_says() {
        let drawn = drawn(&[5, 1, 14], 0);
        let often = |kind| drawn.iter().filter(|&&drawn| drawn == kind).count();
        for (kind, expected) in [(0, 5_000), (1, 1_000), (2, 14_000)] {
            assert!(often(kind).abs_diff(expected) < 300, "{kind}: {}", often(kind));
        }
    }

    #[test]
    fn runs_are_alike_and_threads_are_not() {
        assert_eq!(drawn(&[1, 1], 3), drawn(&[1, 1], 3));
        assert_ne!(drawn(&[1, 1], 3), drawn(&[1, 1], 4));
    }

    #[test]
    fn without_a_mix_there_is_one_kind() {
        assert_eq!(Draw::new(&[], 7).next(), 0);
    }
}
