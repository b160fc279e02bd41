//! The account of a dispatcher: which publications it has passed. Some never come: their sender has ended, or has given up
//! the mailbox. They count as passed once nobody can be about to send them any more.

use super::cut::Cut;
use super::publication::{Origin, Publication};
use super::reached::Reached;
use super::recent::Recent;
use super::PATIENCE;
use crate::clock::Nanos;
use crate::cluster::scoreboard::Scoreboard;
use std::sync::Arc;
use std::time::Duration;

/// The time after which a number that has not come counts as passed. A sender gives a mailbox up earlier.
const LONGEST_WAIT: Duration = PATIENCE.saturating_mul(2);

/// If this thread wakes later than that, the machine may have stopped, and the senders with it.
const LATE: Duration = Duration::from_secs(1);

/// See the head of this file.
pub(super) struct Passing {
    scoreboard: Option<&'static Scoreboard>,
    reached: Arc<Reached>,
    cut: Cut,
    /// The cut, as long as nothing else was passed.
    snapshot: Option<Arc<Cut>>,
    recent: Recent,
    /// Everything that was published before an earlier moment, and the time at which it counts as passed.
    earlier: (Cut, Nanos),
    /// Something may be missing.
    is_behind: bool,
    release: OtherRelease,
}

/// The mail that subscribers of another release have not missed, because the history carried all publications for both.
enum OtherRelease {
    /// There was none. So it is not known.
    Never,
    /// All of it.
    Joint,
    /// This, from before the history was for one release again.
    Was(Cut),
}

impl Passing {
    /// `start`: everything that the dispatcher will not hand out.
    pub(super) fn new(scoreboard: Option<&'static Scoreboard>, reached: Arc<Reached>, start: Cut) -> Passing {
        reached.note_all(&start);
        Passing {
            scoreboard,
            reached,
            snapshot: None,
            recent: Recent::new(start.clone()),
            earlier: (start.clone(), Nanos::default()),
            cut: start,
            is_behind: false,
            release: OtherRelease::Never,
        }
    }

    /// Notes that the dispatcher has handed out this publication.
    pub(super) fn pass(&mut self, publication: &Publication, now: Nanos) {
        let (Origin::Sent(id) | Origin::SentToOthers(id)) = publication.origin else {
            return;
        };
        self.snapshot = None;
        self.is_behind |= !self.cut.add(id);
        self.reached.note(id.sender(), &self.cut);
        self.recent.push(publication, id, self.cut.place, now);
    }

    /// Another release uses the history from now on, or does so no longer.
    pub(super) fn note_joint(&mut self, is_joint: bool) {
        self.release = match (is_joint, &self.release) {
            (true, _) => OtherRelease::Joint,
            (false, OtherRelease::Joint) => OtherRelease::Was(self.cut.clone()),
            (false, _) => return,
        };
    }

    pub(super) fn is_joint(&self) -> bool {
        matches!(self.release, OtherRelease::Joint)
    }

    /// The cut of a subscriber of the other release, which has received the history up to this place. `None` if it may have
    /// missed mail.
    pub(super) fn cut_of_other_release(&self, place: u64) -> Option<Cut> {
        match &self.release {
            OtherRelease::Never => None,
            OtherRelease::Joint => Some(self.cut.clone().at(place)),
            OtherRelease::Was(cut) => Some(cut.clone().at(place)),
        }
    }

    /// The place in the history up to which the dispatcher has read.
    pub(super) fn place(&self) -> u64 {
        self.cut.place
    }

    pub(super) fn move_to(&mut self, place: u64) {
        self.snapshot = None;
        self.cut.place = place;
        self.reached.note_place(place);
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
            self.reached.note_all(&self.cut);
        }
        let all = Cut::of_all(self.scoreboard, 0);
        self.is_behind = !self.cut.covers(&all);
        self.earlier = (all, now + LONGEST_WAIT);
    }

    /// The time of the next [`Passing::tidy_up`], if something is missing.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.is_behind.then_some(self.earlier.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::publication_id::PublicationId;
    use crate::pubsub::Targets;

    /// The account of a dispatcher that begins now.
    fn passing(scoreboard: &'static Scoreboard) -> (Passing, Arc<Reached>) {
        let reached = Arc::new(Reached::default());
        let start = Cut::of_all(Some(scoreboard), 0);
        (Passing::new(Some(scoreboard), Arc::clone(&reached), start), reached)
    }

    fn pass(passing: &mut Passing, id: PublicationId) {
        passing.pass(&Publication::sent(*b"", *b"", id), Nanos::START);
    }

    fn all(scoreboard: &Scoreboard) -> Targets {
        Targets(Cut::of_all(Some(scoreboard), 0))
    }

    #[test]
    fn a_dispatcher_has_passed_everything_from_before_its_start() {
        let scoreboard: &Scoreboard = Box::leak(Box::default());
        let before = PublicationId::next(scoreboard, Some(1));
        let (mut passing, reached) = passing(scoreboard);
        assert!(passing.cut().contains(before) && reached.has(&all(scoreboard)));
        let after = PublicationId::next(scoreboard, Some(1));
        assert!(!passing.cut().contains(after) && !reached.has(&all(scoreboard)));
        pass(&mut passing, after);
        assert!(passing.cut().contains(after) && reached.has(&all(scoreboard)));
    }

    #[test]
    fn a_cut_does_not_change_with_later_publications() {
        let scoreboard: &Scoreboard = Box::leak(Box::default());
        let (mut passing, _) = passing(scoreboard);
        let before = passing.cut();
        assert!(Arc::ptr_eq(&before, &passing.cut()));
        let id = PublicationId::next(scoreboard, None);
        pass(&mut passing, id);
        assert!(!before.contains(id) && passing.cut().contains(id));
        passing.move_to(8);
        assert_eq!((before.place, passing.cut().place), (0, 8));
    }

    #[test]
    fn a_publication_that_never_comes_is_given_up() {
        let scoreboard: &Scoreboard = Box::leak(Box::default());
        let (mut passing, reached) = passing(scoreboard);
        let [lost, came] = [(); 2].map(|()| PublicationId::next(scoreboard, Some(1)));
        let mut now = Nanos::START;
        pass(&mut passing, came);
        passing.tidy_up(now);
        assert_eq!(passing.due(), Some(now + LONGEST_WAIT));
        let later = PublicationId::next(scoreboard, Some(2));
        now = now + LONGEST_WAIT - Duration::from_nanos(1);
        passing.tidy_up(now);
        assert!(!passing.cut().contains(lost));
        now = now + Duration::from_nanos(1);
        passing.tidy_up(now);
        assert!(passing.cut().contains(lost) && !passing.cut().contains(later));
        assert!(!reached.has(&all(scoreboard)));
        now = now + LONGEST_WAIT;
        passing.tidy_up(now);
        assert!(reached.has(&all(scoreboard)));
        passing.tidy_up(now + 3 * LONGEST_WAIT);
        assert_eq!(passing.due(), None);
    }

    #[test]
    fn after_a_pause_of_the_machine_the_senders_get_their_time() {
        let scoreboard: &Scoreboard = Box::leak(Box::default());
        let (mut passing, _) = passing(scoreboard);
        let lost = PublicationId::next(scoreboard, None);
        passing.tidy_up(Nanos::START);
        let late = Nanos::START + LONGEST_WAIT + LATE;
        passing.tidy_up(late);
        assert!(!passing.cut().contains(lost));
        passing.tidy_up(late + LONGEST_WAIT);
        assert!(passing.cut().contains(lost));
    }
}
