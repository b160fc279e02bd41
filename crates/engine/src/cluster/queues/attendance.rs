//! Attendance of a queue of the waiting room: a count beside the queue in the kernel, so that it can be read without a
//! system call. Processes may be killed at any point, so the count must never stay too low, and a count that is too
//! high must be noticed and corrected. Beside it is the count of relayed requests, in the same word.
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

/// The lowest 20 bits are the count, and the next 20 bits the count of relayed requests. The rest is the number of times that
/// the count was raised, so that a count that rose and fell back to the same value is recognised as changed (ABA).
#[derive(Debug, Default)]
pub(crate) struct Attendance(AtomicU64);

const RELAYED: u64 = 1 << 20;
const RAISED: u64 = 1 << 40;
const COUNT: u64 = RELAYED - 1;
const COUNTS: u64 = RAISED - 1;

impl Attendance {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(SeqCst) & COUNT
    }

    /// Items that are connections themselves, and items that are requests of connections that have stayed in their workers.
    pub(crate) fn connections_and_relayed(&self) -> (u64, u64) {
        let counts = self.0.load(SeqCst) & COUNTS;
        let (count, relayed) = (counts & COUNT, counts / RELAYED);
        (count.saturating_sub(relayed), relayed)
    }
}

/// The part of an item in the counts.
fn share(is_relayed: bool) -> u64 {
    1 + u64::from(is_relayed) * RELAYED
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

    pub(super) fn count_up(&self, is_relayed: bool) {
        self.attendance.0.fetch_add(RAISED + share(is_relayed), SeqCst);
    }

    /// Leaves a count of zero as it is: a borrow would change the next number.
    pub(super) fn count_down(&self, is_relayed: bool) {
        let less = |counts| {
            let is_counted = is_relayed && counts & COUNTS >= RELAYED;
            (counts & COUNT > 0).then(|| counts - share(is_counted))
        };
        let _ = self.attendance.0.fetch_update(SeqCst, SeqCst, less);
    }

    /// Sets the counts to zero if the queue is empty. `look` checks this by taking an item out; returns that item.
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
                .compare_exchange(before, before & !COUNTS, SeqCst, SeqCst);
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
        dead.count_up(false);
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
        living.count_up(false);
        living.verify(|| {
            let other = enter(&scoreboard, 1);
            other.count_up(false);
            other.count_down(false);
            nothing()
        });
        assert_eq!(scoreboard.waiting(), 1, "the other visitor may have sent a request");
        living.verify(|| {
            let other = enter(&scoreboard, 1);
            other.count_up(false);
            other.count_up(false);
            std::mem::forget(other);
            nothing()
        });
        assert_eq!(scoreboard.waiting(), 3);
        scoreboard.slot(1).reset();
        living.verify(nothing);
        assert_eq!(scoreboard.waiting(), 0);
    }

    #[test]
    fn relayed_requests_have_a_count_that_a_dead_worker_does_not_leave_wrong() {
        let scoreboard = Scoreboard::default();
        let counts = || scoreboard.attendance.connections_and_relayed();
        let [living, dead] = [0, 1].map(|slot| enter(&scoreboard, slot));
        living.count_up(true);
        living.count_up(false);
        dead.count_up(true);
        assert_eq!((counts(), scoreboard.waiting()), ((1, 2), 3));
        living.count_down(true);
        living.count_down(false);
        assert_eq!(counts(), (0, 1));
        std::mem::forget(dead);
        scoreboard.slot(1).reset();
        living.verify(nothing);
        assert_eq!(counts(), (0, 0));
        living.count_down(true);
        living.count_up(false);
        living.count_down(true);
        assert_eq!(counts(), (0, 0), "neither count borrows from the next number");
        living.count_up(true);
        assert_eq!(counts(), (0, 1));
    }

    #[test]
    fn a_request_that_the_check_takes_out_stays_counted() {
        let scoreboard = Scoreboard::default();
        let living = enter(&scoreboard, 0);
        living.count_up(false);
        assert_eq!(living.verify(|| Some(7)), Some(7));
        assert_eq!(scoreboard.waiting(), 1);
        living.count_down(false);
        living.count_down(false);
        assert_eq!(scoreboard.waiting(), 0);
        living.count_up(false);
        assert_eq!(scoreboard.waiting(), 1);
    }
}
