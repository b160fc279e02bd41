//! The progress of a dispatcher, for other threads.

use super::cut::Cut;
use super::publication_id::SENDERS;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Everything that was published before a moment. A dispatcher reaches it when it has handed out all of that.
#[derive(Clone, Debug)]
pub struct Targets(pub(super) Cut);

/// See the head of this file.
pub(super) struct Reached {
    /// For each sender: all its publications up to this number were handed out, or are lost.
    numbers: [AtomicU64; SENDERS],
    place: AtomicU64,
}

impl Default for Reached {
    fn default() -> Reached {
        Reached {
            numbers: std::array::from_fn(|_| AtomicU64::new(0)),
            place: AtomicU64::new(0),
        }
    }
}

impl Reached {
    pub(super) fn has(&self, Targets(all): &Targets) -> bool {
        let mut numbers = self.numbers.iter().enumerate();
        numbers.all(|(sender, number)| number.load(Acquire) >= all.contiguous(sender))
            && self.place.load(Acquire) >= all.place
    }

    pub(super) fn note(&self, sender: usize, cut: &Cut) {
        self.numbers[sender].store(cut.contiguous(sender), Release);
    }

    pub(super) fn note_place(&self, place: u64) {
        self.place.store(place, Release);
    }

    pub(super) fn note_all(&self, cut: &Cut) {
        (0..SENDERS).for_each(|sender| self.note(sender, cut));
        self.note_place(cut.place);
    }
}
