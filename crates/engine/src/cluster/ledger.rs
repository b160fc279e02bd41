//! Ledger: running time of the requests of each flow, in all workers together, so that a flow with connections to
//! several workers has one share in total, not one in each worker.
//!
//! It holds sums in two rows of buckets; a flow has one bucket in each row, and the lower of the two increases counts.
//! So a flow is charged for another flow only if they share both buckets, which happens to one pair in a million. A
//! worker reads only increases, without its own additions.

use crate::config::fair_by::{self, Flow, Secret};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const ROWS: usize = 2;
const BUCKETS: usize = 1024;

/// Shared by all workers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ledger {
    secret: [AtomicU64; 2],
    /// Nanoseconds.
    rows: [[AtomicU64; BUCKETS]; ROWS],
}

/// Sums of a flow that a worker has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen([u64; ROWS]);

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger {
            secret: Default::default(),
            rows: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }
}

impl Ledger {
    /// Key by which all workers number flows. The first caller chooses it.
    pub(crate) fn secret(&self) -> Secret {
        let chosen = fair_by::secret();
        std::array::from_fn(|half| {
            // Zero: no key was chosen yet.
            let own = chosen[half].max(1);
            let before = self.secret[half].compare_exchange(0, own, Relaxed, Relaxed);
            before.map_or_else(|others| others, |_| own)
        })
    }

    fn buckets(&self, flow: Flow) -> [&AtomicU64; ROWS] {
        std::array::from_fn(|row| &self.rows[row][(flow.0 >> (16 * row)) as usize % BUCKETS])
    }

    /// Returns the current sums, so that earlier usage is ignored.
    pub(crate) fn look(&self, flow: Flow) -> Seen {
        Seen(self.buckets(flow).map(|bucket| bucket.load(Relaxed)))
    }

    /// Adds `time`, in nanoseconds, for a request that has run here.
    pub(crate) fn add(&self, flow: Flow, time: u64, seen: &mut Seen) {
        for (bucket, seen) in self.buckets(flow).into_iter().zip(&mut seen.0) {
            bucket.fetch_add(time, Relaxed);
            *seen = seen.wrapping_add(time);
        }
    }

    /// Running time of the flow's requests in other workers since the last call, in nanoseconds.
    pub(crate) fn elsewhere(&self, flow: Flow, seen: &mut Seen) -> u64 {
        let before = std::mem::replace(seen, self.look(flow));
        let growth = seen
            .0
            .iter()
            .zip(before.0)
            .map(|(now, before)| now.wrapping_sub(before));
        growth.min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_sees_what_the_others_add_and_not_what_it_adds_itself() {
        let ledger = Ledger::default();
        let flow = Flow(0x0007_0003);
        let (mut one, mut other) = (ledger.look(flow), ledger.look(flow));
        ledger.add(flow, 5, &mut one);
        assert_eq!(ledger.elsewhere(flow, &mut one), 0);
        assert_eq!(ledger.elsewhere(flow, &mut other), 5);
        assert_eq!(ledger.elsewhere(flow, &mut other), 0, "only what is new");
        ledger.add(flow, 7, &mut other);
        ledger.add(flow, 1, &mut one);
        assert_eq!(ledger.elsewhere(flow, &mut one), 7);
    }

    #[test]
    fn flows_that_meet_in_one_row_do_not_pay_for_each_other() {
        let ledger = Ledger::default();
        let (flow, neighbour) = (Flow(0x0007_0003), Flow(0x0008_0003));
        let (mut own, mut theirs) = (ledger.look(flow), ledger.look(neighbour));
        ledger.add(neighbour, 9, &mut theirs);
        assert_eq!(ledger.elsewhere(flow, &mut own), 0);
    }

    #[test]
    fn all_workers_have_the_same_secret() {
        let ledger = Ledger::default();
        assert_eq!(ledger.secret(), ledger.secret());
        assert_ne!(ledger.secret(), Ledger::default().secret());
    }
}
