//! The account of a dispatcher: which publications it has passed. Some never come: their sender has ended, or has given up
//! the mailbox. They count as passed once nobody can be about to send them any more.

use super::cut::Cut;
use super::hub::Shared;
use super::publication::{Origin, Publication};
use super::recent::Recent;
use super::PATIENCE;
use crate::clock::Nanos;
use std::sync::Arc;
use std::time::Duration;

/// The time after which a number that has not come counts as passed. A sender gives a mailbox up earlier.
const LONGEST_WAIT: Duration = PATIENCE.saturating_mul(2);

/// If this thread wakes later than that, the machine may have stopped, and the senders with it.
const LATE: Duration = Duration::from_secs(1);

/// See the head of this file.
pub(super) struct Passing {
    shared: Arc<Shared>,
    cut: Cut,
    /// The cut, as long as nothing else was passed.
    snapshot: Option<Arc<Cut>>,
    recent: Recent,
    /// Everything that was published before an earlier moment, and the time at which it counts as passed.
    earlier: (Cut, Nanos),
    /// Something may be missing.
    is_behind: bool,
}

impl Passing {
    /// `start`: everything that the dispatcher will not hand out.
    pub(super) fn new(shared: Arc<Shared>, start: Cut) -> Passing {
        shared.reached.note_all(&start);
        Passing {
            shared,
            snapshot: None,
            recent: Recent::new(start.clone()),
            earlier: (start.clone(), Nanos::default()),
            cut: start,
            is_behind: false,
        }
    }

    /// Notes that the dispatcher has handed out this publication.
    pub(super) fn pass(&mut self, publication: &Publication, now: Nanos) {
        let (Origin::Sent(id) | Origin::SentToOthers(id)) = publication.origin else {
            return;
        };
        self.snapshot = None;
        self.is_behind |= !self.cut.add(id);
        self.shared.reached.note(id.sender(), &self.cut);
        self.recent.push(publication, id, self.cut.place, now);
    }

    /// The place in the history up to which the dispatcher has read.
    pub(super) fn place(&self) -> u64 {
        self.cut.place
    }

    pub(super) fn move_to(&mut self, place: u64) {
        self.snapshot = None;
        self.cut.place = place;
        self.shared.reached.note_place(place);
    }

    /// All that was passed until now.
    pub(super) fn cut(&mut self) -> Arc<Cut> {
        Arc::clone(self.snapshot.get_or_insert_with(|| Arc::new(self.cut.clone())))
    }

    pub(super) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Called when the dispatcher has found its queue and its mailbox empty: forgets old publications, and gives up missing
    /// ones.
    pub(super) fn tidy_up(&mut self, now: Nanos) {
        self.recent.shrink(now);
        let (earlier, due) = &self.earlier;
        if now < *due {
            return;
        }
        if now < *due + LATE && !self.cut.covers(earlier) {
            self.snapshot = None;
            self.cut.add_numbers(earlier);
            self.shared.reached.note_all(&self.cut);
        }
        let scoreboard = self.shared.bus.as_ref().map(|(bus, _)| bus.scoreboard());
        let all = Cut::of_all(scoreboard, 0);
        self.is_behind = !self.cut.covers(&all);
        self.earlier = (all, now + LONGEST_WAIT);
    }

    /// The time of the next [`Passing::tidy_up`], if it has something to do.
    pub(super) fn due(&self) -> Option<Nanos> {
        let missing = self.is_behind.then_some(self.earlier.1);
        missing.into_iter().chain(self.recent.due()).min()
    }
}
