//! Counts of responses and refusals, and their sums over all workers. They never fall when a worker is replaced.

use super::histogram::Histogram;
use super::lasting::Lasting;
use super::responses::{RequestKind, ResponseKind, ResponseSeries};
use super::scoreboard::{Scoreboard, LASTING};
use std::collections::BTreeMap;
use std::time::Duration;

impl Scoreboard {
    /// Counts that outlive worker `index`.
    pub(crate) fn lasting(&self, index: usize) -> &Lasting {
        &self.lasting[index % LASTING]
    }

    /// Counts a response of worker `index`.
    pub fn count_response(&self, index: usize, kind: ResponseKind, time: Duration) {
        self.lasting(index).responses.count(kind, time);
    }

    /// The times of responses by kind, in all workers since the start.
    pub fn responses(&self) -> Vec<(ResponseSeries, Histogram)> {
        let mut sums = BTreeMap::new();
        for (kind, times) in self.lasting.iter().flat_map(|lasting| lasting.responses.load()) {
            let sum = sums.entry(kind).or_insert_with(|| times.none());
            *sum = sum.plus(times);
        }
        sums.into_iter().collect()
    }

    /// The number of refused requests and connections by reason, in all workers since the start.
    pub fn refusals(&self) -> Vec<(&'static str, u64)> {
        let mut sums: Vec<(&'static str, u64)> = self.lasting[0].refusals.load().collect();
        for lasting in &self.lasting[1..] {
            for ((_, sum), (_, count)) in sums.iter_mut().zip(lasting.refusals.load()) {
                *sum += count;
            }
        }
        sums
    }

    /// The requests that all workers run now, by kind. Kinds without a request are left out.
    pub fn active_requests(&self) -> Vec<(RequestKind, i64)> {
        let mut sums: Vec<(RequestKind, i64)> = RequestKind::all().map(|kind| (kind, 0)).collect();
        for slot in &self.slots {
            for ((_, sum), (_, count)) in sums.iter_mut().zip(slot.active.load()) {
                *sum += count;
            }
        }
        sums.retain(|(_, count)| *count > 0);
        sums
    }
}
