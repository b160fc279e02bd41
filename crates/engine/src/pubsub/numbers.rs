//! A set of numbers that come almost in order: all numbers up to one, and a few runs above it.

/// Most gaps that are remembered. If there are more, the oldest is closed.
const MOST_GAPS: usize = 64;

/// Larger numbers do not occur.
const LARGEST: u64 = u64::MAX >> 8;

/// See the head of this file. Its numbers begin with 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// All numbers up to this one are members.
    contiguous: u64,
    /// First and last number of each run above it, in order, with a gap before each.
    runs: Vec<(u64, u64)>,
}

impl Numbers {
    /// All numbers up to `last`.
    pub(super) fn up_to(last: u64) -> Numbers {
        Numbers {
            contiguous: last,
            runs: Vec::new(),
        }
    }

    /// The set with these parts. `None` if they are not in order.
    pub(super) fn of(contiguous: u64, runs: Vec<(u64, u64)>) -> Option<Numbers> {
        let mut before = contiguous.min(LARGEST);
        let is_ordered = runs.iter().all(|(first, last)| {
            let has_gap = *first > before + 1;
            before = (*last).min(LARGEST);
            has_gap && first <= last && *last <= LARGEST
        });
        let is_set = contiguous <= LARGEST && is_ordered && runs.len() <= MOST_GAPS;
        is_set.then_some(Numbers { contiguous, runs })
    }

    pub(super) fn contiguous(&self) -> u64 {
        self.contiguous
    }

    pub(super) fn runs(&self) -> &[(u64, u64)] {
        &self.runs
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        number <= self.contiguous || self.is_in_run(number)
    }

    fn is_in_run(&self, number: u64) -> bool {
        let after = self.runs.partition_point(|(_, last)| *last < number);
        self.runs.get(after).is_some_and(|(first, _)| *first <= number)
    }

    /// Adds a number. Returns false if it leaves a gap.
    pub(super) fn add(&mut self, number: u64) -> bool {
        if number == self.contiguous + 1 && self.runs.is_empty() {
            self.contiguous = number;
            return true;
        }
        self.add_run(number, number);
        self.runs.is_empty()
    }

    /// Adds all numbers up to `last`.
    pub(super) fn fill(&mut self, last: u64) {
        self.add_run(1, last);
    }

    /// Adds all members of another set.
    pub(super) fn add_all(&mut self, other: &Numbers) {
        self.fill(other.contiguous);
        for (first, last) in &other.runs {
            self.add_run(*first, *last);
        }
    }

    /// Returns true if all members of another set are members.
    pub(super) fn covers(&self, other: &Numbers) -> bool {
        let has = |first: u64, last: u64| {
            let after = self.runs.partition_point(|(_, end)| *end < last);
            let start = first.max(self.contiguous + 1);
            last <= self.contiguous || self.runs.get(after).is_some_and(|(begin, _)| *begin <= start)
        };
        (other.contiguous == 0 || has(1, other.contiguous)) && other.runs.iter().all(|(first, last)| has(*first, *last))
    }

    fn add_run(&mut self, first: u64, last: u64) {
        if last <= self.contiguous {
            return;
        }
        // The runs that the new one touches become one with it.
        let begin = self.runs.partition_point(|(_, end)| *end + 1 < first);
        let end = self.runs.partition_point(|(start, _)| *start <= last + 1);
        let touched = &self.runs[begin..end];
        let first = touched.first().map_or(first, |(start, _)| first.min(*start));
        let last = touched.last().map_or(last, |(_, end)| last.max(*end));
        if first <= self.contiguous + 1 {
            self.contiguous = last;
            self.runs.drain(..end);
            return;
        }
        self.runs.splice(begin..end, [(first, last)]);
        if self.runs.len() > MOST_GAPS {
            (_, self.contiguous) = self.runs.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(numbers: impl IntoIterator<Item = u64>) -> Numbers {
        let mut set = Numbers::default();
        numbers.into_iter().for_each(|number| _ = set.add(number));
        set
    }

    #[test]
    fn numbers_in_any_order_become_one_run() {
        let numbers = set([3, 1, 7, 5, 6]);
        assert_eq!((numbers.contiguous, &*numbers.runs), (1, &[(3, 3), (5, 7)][..]));
        assert!([1, 3, 5, 6, 7].iter().all(|number| numbers.contains(*number)));
        assert!([2, 4, 8].iter().all(|number| !numbers.contains(*number)));
        assert_eq!(set([3, 1, 7, 5, 6, 4, 2, 2]), Numbers::up_to(7));
    }

    #[test]
    fn add_reports_a_gap() {
        let mut numbers = Numbers::default();
        assert_eq!(
            [1, 3, 4, 2, 5].map(|number| numbers.add(number)),
            [true, false, false, true, true]
        );
    }

    #[test]
    fn the_oldest_gap_is_closed_when_there_are_too_many() {
        let gaps = MOST_GAPS as u64;
        let mut numbers = set((1..=gaps).map(|number| 2 * number));
        assert_eq!((numbers.contiguous, numbers.runs.len()), (0, MOST_GAPS));
        numbers.add(2 * gaps + 2);
        assert_eq!((numbers.contiguous, numbers.runs.len()), (2, MOST_GAPS));
    }

    #[test]
    fn sets_are_compared_and_united_as_sets() {
        let mut random = 1_u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from((random >> 16) % below)
        };
        for _ in 0..2_000 {
            let mut some = || (0..next(30)).map(|_| next(24) + 1).collect::<BTreeSet<u64>>();
            let (one, other) = (some(), some());
            let (mut united, second) = (set(one.iter().copied()), set(other.iter().copied()));
            assert_eq!(united.covers(&second), one.is_superset(&other), "{one:?} {other:?}");
            assert!((1..40).all(|number| united.contains(number) == one.contains(&number)));
            united.add_all(&second);
            assert_eq!(united, set(one.union(&other).copied()), "{one:?} {other:?}");
            assert_eq!(
                Numbers::of(united.contiguous, united.runs.clone()),
                Some(united.clone())
            );
            let last = next(30);
            united.fill(last);
            assert_eq!(united, set(one.union(&other).copied().chain(1..=last)));
        }
    }

    #[test]
    fn parts_that_are_not_in_order_are_no_set() {
        for (contiguous, runs) in [
            (1, vec![(2, 3)]),
            (5, vec![(3, 9)]),
            (1, vec![(4, 3)]),
            (1, vec![(3, 5), (6, 7)]),
            (u64::MAX, vec![(0, 1)]),
        ] {
            assert_eq!(Numbers::of(contiguous, runs.clone()), None, "{contiguous} {runs:?}");
        }
    }
}
