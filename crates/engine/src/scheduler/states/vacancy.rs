//! Period in which no thread serves, as the monitor sees it from tick to tick.
//!
//! ```text
//!   Occupied ──no thread has begun──▶ Short ──for a second──▶ Long
//!       ▲───────────a thread begins─────┴──────────────────────┘
//! ```
//!
//! Threads begin at once, and a thread that ends is replaced. In `Long` something prevents this: a hook that does not
//! return, or a system without room for another thread. The monitor then does the work that needs no thread of the app,
//! and logs a message; otherwise it would park, and no thread would poll.

use super::Snapshot;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Vacancy {
    #[default]
    Occupied,
    /// Number of ticks so far.
    Short(u32),
    Long,
}

impl Vacancy {
    /// Advances the state by a tick; it becomes `Long` after `most` ticks. Returns true if that happens now.
    pub(crate) fn tick(&mut self, now: Snapshot, most: u32) -> bool {
        let before = *self;
        *self = match before {
            _ if now.begun() > 0 => Vacancy::Occupied,
            Vacancy::Occupied => Vacancy::Short(1),
            Vacancy::Short(ticks) if ticks < most => Vacancy::Short(ticks + 1),
            Vacancy::Short(_) | Vacancy::Long => Vacancy::Long,
        };
        *self == Vacancy::Long && before != Vacancy::Long
    }

    /// True if the monitor has to keep ticking.
    pub(crate) fn is_watched(self) -> bool {
        self != Vacancy::Occupied
    }

    pub(crate) fn is_long(self) -> bool {
        self == Vacancy::Long
    }
}

#[cfg(test)]
mod tests {
    use super::super::Doing::{Running, Starting};
    use super::*;

    fn ticks(vacancy: &mut Vacancy, now: Snapshot, count: usize) -> Vec<bool> {
        (0..count).map(|_| vacancy.tick(now, 2)).collect()
    }

    #[test]
    fn threads_that_only_start_are_a_vacancy_which_is_told_once() {
        let mut vacancy = Vacancy::default();
        let starting = Snapshot::of(&[Starting]);
        assert_eq!(ticks(&mut vacancy, starting, 5), [false, false, true, false, false]);
        assert!(vacancy.is_long());
    }

    #[test]
    fn a_thread_that_begins_ends_the_vacancy_and_the_next_one_counts_anew() {
        let mut vacancy = Vacancy::Long;
        assert_eq!(ticks(&mut vacancy, Snapshot::of(&[Running]), 1), [false]);
        assert_eq!(vacancy, Vacancy::Occupied);
        assert_eq!(ticks(&mut vacancy, Snapshot::default(), 3), [false, false, true]);
    }
}
