//! A moment between two publications of a dispatcher. A subscriber that moves to another process leaves in such a moment,
//! and arrives in one.

use super::cut::Cut;
use super::history::{History, Next};
use super::passing::Passing;
use super::publication::{Origin, Publication};
use super::recent::Handed;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Runs between two publications, on the thread of the dispatcher; it must not wait for anything, and must not publish.
pub type Job = Box<dyn FnOnce(&Between<'_>) + Send>;

/// Some publications that a subscriber has missed are not in memory any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// See the head of this file.
pub struct Between<'a> {
    cut: Arc<Cut>,
    passing: &'a Passing,
    history: Option<&'a History>,
    /// Publications that were made for a subscriber, by their origin: the next one shares their wire forms.
    made: RefCell<HashMap<Origin, Arc<Publication>>>,
}

impl<'a> Between<'a> {
    pub(super) fn new(passing: &'a mut Passing, history: Option<&'a History>) -> Between<'a> {
        Between {
            cut: passing.cut(),
            passing,
            history,
            made: RefCell::default(),
        }
    }

    /// The publications that this dispatcher has passed. A subscription that ends now has received all of them; one that begins
    /// now gets none of them.
    pub fn cut(&self) -> Arc<Cut> {
        Arc::clone(&self.cut)
    }

    /// The publications that this dispatcher has handed out and a subscriber with this cut has not got, in order.
    /// `wanted`: returns true for the channels of the subscriber.
    ///
    /// # Errors
    /// If some of them may be lost.
    pub fn missed(&self, cut: &Cut, wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<Arc<Publication>>, Lost> {
        let mut missed = Vec::new();
        if cut.covers(&self.cut) {
            return Ok(missed);
        }
        let mut place = cut.place;
        for handed in self.passing.recent().since(cut).ok_or(Lost)? {
            if wanted(&handed.channel) {
                self.read(&mut place, handed.place, wanted, &mut missed)?;
                missed.push(self.publication(handed));
            }
        }
        self.read(&mut place, self.cut.place, wanted, &mut missed)?;
        Ok(missed)
    }

    /// The same for a subscriber from another release, which has received the history up to `place`. The history has carried all
    /// publications for the whole server since before the subscriber left, perhaps until both were not joint any more.
    ///
    /// # Errors
    /// As above.
    pub fn missed_in_history(&self, place: u64, wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<Arc<Publication>>, Lost> {
        self.missed(&self.passing.cut_of_other_release(place).ok_or(Lost)?, wanted)
    }

    /// Reads the history up to `end`.
    fn read(
        &self,
        place: &mut u64,
        end: u64,
        wanted: &dyn Fn(&[u8]) -> bool,
        missed: &mut Vec<Arc<Publication>>,
    ) -> Result<(), Lost> {
        let Some(history) = self.history else {
            return Ok(());
        };
        while *place < end {
            match history.next(place, wanted) {
                Next::Message(publication) => {
                    let mut made = self.made.borrow_mut();
                    missed.push(Arc::clone(made.entry(publication.origin).or_insert(publication)));
                }
                Next::TooLong if history.is_joint() => return Err(Lost),
                Next::Unwanted | Next::TooLong => {}
                Next::Overrun | Next::Nothing => return Err(Lost),
            }
        }
        Ok(())
    }

    fn publication(&self, handed: &Handed) -> Arc<Publication> {
        let make = || {
            let (channel, message) = (Arc::clone(&handed.channel), Arc::clone(&handed.message));
            Arc::new(Publication::sent(channel, message, handed.id))
        };
        let mut made = self.made.borrow_mut();
        Arc::clone(made.entry(Origin::Sent(handed.id)).or_insert_with(make))
    }
}
