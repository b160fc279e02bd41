//! The balance between the workers: which of them have the fewest connections.

use crate::cluster::scoreboard::{Scoreboard, Slot};
use std::sync::atomic::Ordering::Relaxed;

/// A worker is clearly ahead if its connections exceed the fewest elsewhere by more than this part of its own. A smaller
/// difference is not worth a wait.
const TOLERANCE: i64 = 32;

impl Scoreboard {
    /// Lowest number of connections among the other serving workers; `None` if no other worker serves.
    pub(crate) fn fewest_elsewhere(&self, index: usize) -> Option<i64> {
        fewest(self.others_that_serve(index))
    }

    /// True if this worker has clearly more connections than another one with a free place.
    /// `as_new`: compares it only with workers of its own generation.
    pub(crate) fn is_clearly_ahead(&self, index: usize, as_new: bool) -> bool {
        let own = self.slot(index);
        let generation = own.generation.load(Relaxed);
        let takes = |slot: &&Slot| has_place(slot) && (!as_new || slot.generation.load(Relaxed) == generation);
        let connections = own.connections.load(Relaxed);
        fewest(self.others_that_serve(index).filter(takes))
            .is_some_and(|fewest| connections - fewest > connections / TOLERANCE)
    }

    /// Number of connections that the other serving workers with a free place have accepted; `None` if there is no such worker.
    pub(crate) fn accepted_elsewhere(&self, index: usize) -> Option<u64> {
        self.others_that_serve(index)
            .filter(|slot| has_place(slot))
            .map(|slot| slot.accepted.load(Relaxed))
            .reduce(u64::wrapping_add)
    }

    /// Number of connections that the other workers have ever taken over.
    pub(crate) fn taken_elsewhere(&self, index: usize) -> u64 {
        let others = self.slots.iter().enumerate().filter(|(number, _)| *number != index);
        others.map(|(_, slot)| slot.taken_over.load(Relaxed)).sum()
    }

    fn others_that_serve(&self, index: usize) -> impl Iterator<Item = &Slot> {
        let others = self
            .slots
            .iter()
            .enumerate()
            .filter(move |(number, _)| *number != index);
        others
            .map(|(_, slot)| slot)
            .filter(|slot| slot.serving.load(Relaxed) == 1)
    }
}

fn has_place(slot: &Slot) -> bool {
    slot.connections.load(Relaxed) < slot.most_connections.load(Relaxed) as i64
}

fn fewest<'a>(slots: impl Iterator<Item = &'a Slot>) -> Option<i64> {
    slots.map(|slot| slot.connections.load(Relaxed)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Workers with these connections and generations, each with a place for 1,000.
    fn scoreboard(workers: &[(i64, u64)]) -> Box<Scoreboard> {
        let scoreboard: Box<Scoreboard> = Box::default();
        for (slot, (connections, generation)) in scoreboard.slots.iter().zip(workers) {
            slot.serving.store(1, Relaxed);
            slot.most_connections.store(1_000, Relaxed);
            slot.connections.store(*connections, Relaxed);
            slot.generation.store(*generation, Relaxed);
        }
        scoreboard
    }

    #[test]
    fn a_worker_is_clearly_ahead_of_one_with_fewer_connections() {
        let board = scoreboard(&[(10, 1), (11, 1), (9, 1)]);
        assert_eq!(
            [0, 1, 2].map(|index| board.is_clearly_ahead(index, false)),
            [true, true, false]
        );
        assert_eq!(board.fewest_elsewhere(2), Some(10));
        let board = scoreboard(&[(640, 1), (621, 1), (620, 1)]);
        assert!(!board.is_clearly_ahead(0, false), "the difference is small");
    }

    #[test]
    fn accepts_of_the_others_that_have_a_place_are_counted() {
        let board = scoreboard(&[(0, 1), (1_000, 1), (999, 1)]);
        for (slot, accepted) in board.slots.iter().zip([5, 70, 900]) {
            slot.accepted.store(accepted, Relaxed);
        }
        assert_eq!(
            [0, 1, 2].map(|index| board.accepted_elsewhere(index)),
            [Some(900), Some(905), Some(5)]
        );
        board.slots[0].serving.store(0, Relaxed);
        board.slots[2].connections.store(1_000, Relaxed);
        assert_eq!([0, 1].map(|index| board.accepted_elsewhere(index)), [None, None]);
    }

    #[test]
    fn workers_that_cannot_take_do_not_count() {
        let board = scoreboard(&[(2_000, 2), (10, 1), (1_000, 2), (1_990, 2)]);
        board.slots[3].most_connections.store(5_000, Relaxed);
        assert!(board.is_clearly_ahead(0, false));
        assert!(!board.is_clearly_ahead(0, true), "one has other code, and one is full");
    }
}
