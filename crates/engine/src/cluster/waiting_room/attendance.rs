//! How many wait in the room: a count beside the queue that the kernel keeps, so that nobody has to ask the kernel. Processes
//! may be killed at any point, so it must never stay below the truth, and what is above it must be found out.
//!
//! ```text
//!   put in:   enter ── count up ── send ── (not sent: count down) ── leave
//!   take out: enter ── receive ── count down ── leave
//! ```
//! So the count is too high while somebody is inside, or after somebody has been killed there, and never too low. Each slot of
//! the scoreboard says how many of its threads are inside; the supervisor clears it when the slot's worker is dead. Who is
//! alone inside, finds the room empty and is still alone sets the count right, unless it has changed since.

use crate::cluster::scoreboard::Scoreboard;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The count in the low half. In the high half, how often it was raised: a count that has been there before is another one.
#[derive(Debug, Default)]
pub(crate) struct Attendance(AtomicU64);

const RAISED: u64 = (1 << 32) + 1;
const COUNT: u64 = (1 << 32) - 1;

impl Attendance {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(SeqCst) & COUNT
    }
}

/// One thread of the worker in a slot, inside the room.
pub(super) struct Visit<'a> {
    scoreboard: &'a Scoreboard,
    slot: usize,
}

impl Visit<'_> {
    pub(super) fn enter(scoreboard: &Scoreboard, slot: usize) -> Visit<'_> {
        scoreboard.slot(slot).in_room.fetch_add(1, SeqCst);
        Visit { scoreboard, slot }
    }

    pub(super) fn count_up(&self) {
        self.scoreboard.attendance.0.fetch_add(RAISED, SeqCst);
    }

    /// A count of zero stays: the half above it is none of its business.
    pub(super) fn count_down(&self) {
        let less = |count| (count & COUNT > 0).then(|| count - 1);
        let _ = self.scoreboard.attendance.0.fetch_update(SeqCst, SeqCst, less);
    }

    /// Sets the count right if nobody waits, which `look` finds out: it takes out whoever is there. Returns what it took.
    pub(super) fn verify<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        let before = self.scoreboard.attendance.0.load(SeqCst);
        // Alone now: all who were counted in `before` have been sent. Alone afterwards: all who were taken have been counted.
        if before & COUNT == 0 || !self.is_alone() {
            return None;
        }
        let taken = look();
        if taken.is_none() && self.is_alone() {
            let _ = self
                .scoreboard
                .attendance
                .0
                .compare_exchange(before, before & !COUNT, SeqCst, SeqCst);
        }
        taken
    }

    fn is_alone(&self) -> bool {
        self.scoreboard.visitors() == 1
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.scoreboard.slot(self.slot).in_room.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Option<()> {
        None
    }

    #[test]
    fn a_count_that_a_dead_worker_has_left_is_set_right_once_its_slot_is_cleared() {
        let scoreboard = Scoreboard::default();
        let dead = Visit::enter(&scoreboard, 1);
        dead.count_up();
        std::mem::forget(dead);
        let living = Visit::enter(&scoreboard, 0);
        living.verify(nothing);
        assert_eq!(scoreboard.waiting(), 1, "it may still be about to send");
        scoreboard.slot(1).reset();
        living.verify(nothing);
        assert_eq!(scoreboard.waiting(), 0);
    }

    #[test]
    fn a_count_that_changes_while_somebody_looks_is_kept() {
        let scoreboard = Scoreboard::default();
        let living = Visit::enter(&scoreboard, 0);
        living.count_up();
        living.verify(|| {
            let other = Visit::enter(&scoreboard, 1);
            other.count_up();
            other.count_down();
            nothing()
        });
        assert_eq!(scoreboard.waiting(), 1, "the other one may have sent it");
        living.verify(|| {
            let other = Visit::enter(&scoreboard, 1);
            other.count_up();
            other.count_up();
            std::mem::forget(other);
            nothing()
        });
        assert_eq!(scoreboard.waiting(), 3);
        scoreboard.slot(1).reset();
        living.verify(nothing);
        assert_eq!(scoreboard.waiting(), 0);
    }

    #[test]
    fn nobody_who_was_found_is_taken_for_nobody() {
        let scoreboard = Scoreboard::default();
        let living = Visit::enter(&scoreboard, 0);
        living.count_up();
        assert_eq!(living.verify(|| Some(7)), Some(7));
        assert_eq!(scoreboard.waiting(), 1);
        living.count_down();
        living.count_down();
        assert_eq!(scoreboard.waiting(), 0);
        living.count_up();
        assert_eq!(scoreboard.waiting(), 1);
    }
}
