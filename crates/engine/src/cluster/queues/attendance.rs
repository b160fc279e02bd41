//! Attendance of a queue of the waiting room: a count beside the queue in the kernel, so that it can be read without a
//! system call. Processes may be killed at any point, so the count must never stay too low, and a count that is too
//! high must be noticed and corrected.
//!
//! ```text
//!   put in:   enter ── count up ── send ── (not sent: count down) ── leave
//!   take out: enter ── receive ── count down ── leave
//! ```
//! So the count is too high while a thread is inside, or after a worker was killed there, and never too low. Each slot
//! of the scoreboard has the number of its worker's threads inside, in any queue; the supervisor clears the number when
//! the worker is dead. A thread that is alone inside, finds the room empty and is still alone corrects the count,
//! unless the count has changed since.

use crate::cluster::scoreboard::Scoreboard;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The low half is the count. The high half is the number of times that the count was raised, so that a count that rose
/// and fell back to the same value is recognised as changed (ABA).
#[derive(Debug, Default)]
pub(crate) struct Attendance(AtomicU64);

const RAISED: u64 = (1 << 32) + 1;
const COUNT: u64 = (1 << 32) - 1;

impl Attendance {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(SeqCst) & COUNT
    }
}

/// One thread of the worker in a slot, inside the room, at one of its queues.
pub(super) struct Visit<'a> {
    scoreboard: &'a Scoreboard,
    attendance: &'a Attendance,
    slot: usize,
}

impl Visit<'_> {
    pub(super) fn enter<'a>(scoreboard: &'a Scoreboard, attendance: &'a Attendance, slot: usize) -> Visit<'a> {
        scoreboard.slot(slot).in_room.fetch_add(1, SeqCst);
        Visit {
            scoreboard,
            attendance,
            slot,
        }
    }

    pub(super) fn count_up(&self) {
        self.attendance.0.fetch_add(RAISED, SeqCst);
    }

    /// Leaves a count of zero as it is: a borrow would change the high half.
    pub(super) fn count_down(&self) {
        let less = |count| (count & COUNT > 0).then(|| count - 1);
        let _ = self.attendance.0.fetch_update(SeqCst, SeqCst, less);
    }

    /// Sets the count to zero if the queue is empty. `look` checks this by taking an item out; returns that item.
    pub(super) fn verify<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        let before = self.attendance.0.load(SeqCst);
        // Alone now: all requests counted in `before` have been sent. Alone afterwards: all requests that were taken
        // have been counted down.
        if before & COUNT == 0 || !self.is_alone() {
            return None;
        }
        let taken = look();
        if taken.is_none() && self.is_alone() {
            let _ = self
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

    fn enter(scoreboard: &Scoreboard, slot: usize) -> Visit<'_> {
        Visit::enter(scoreboard, &scoreboard.attendance, slot)
    }

    #[test]
    fn a_count_that_a_dead_worker_has_left_is_set_right_once_its_slot_is_cleared() {
        let scoreboard = Scoreboard::default();
        let dead = enter(&scoreboard, 1);
        dead.count_up();
        std::mem::forget(dead);
        let living = enter(&scoreboard, 0);
        living.verify(nothing);
        assert_eq!(scoreboard.waiting(), 1, "the visitor may still send");
        scoreboard.slot(1).reset();
        living.verify(nothing);
        assert_eq!(scoreboard.waiting(), 0);
    }

    #[test]
    fn a_count_that_changes_during_the_check_is_kept() {
        let scoreboard = Scoreboard::default();
        let living = enter(&scoreboard, 0);
        living.count_up();
        living.verify(|| {
            let other = enter(&scoreboard, 1);
            other.count_up();
            other.count_down();
            nothing()
        });
        assert_eq!(scoreboard.waiting(), 1, "the other visitor may have sent a request");
        living.verify(|| {
            let other = enter(&scoreboard, 1);
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
    fn a_request_that_the_check_takes_out_stays_counted() {
        let scoreboard = Scoreboard::default();
        let living = enter(&scoreboard, 0);
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
