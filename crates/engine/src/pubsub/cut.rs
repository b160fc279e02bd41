//! A cut: the publications that a dispatcher has passed at one moment. A subscriber that moves to another process takes the
//! cut with it, so that it gets each publication once: all that the cut has were delivered before it left.

use super::numbers::Numbers;
use super::publication::{Origin, Publication};
use super::publication_id::{PublicationId, SENDERS};
use crate::cluster::scoreboard::Scoreboard;
use std::sync::atomic::Ordering::SeqCst;

/// The first byte of a cut in bytes: the version of the format.
const VERSION: u8 = 1;

/// See the head of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The numbers of each sender, up to the last sender with any.
    senders: Vec<Numbers>,
    /// The place in the history; everything before it was passed.
    pub(super) place: u64,
}

impl Cut {
    /// Everything that was published before this call.
    pub(super) fn of_all(scoreboard: Option<&Scoreboard>, place: u64) -> Cut {
        let last = |scoreboard: &Scoreboard| {
            let slots = scoreboard.senders();
            slots.map(|slot| slot.last_publication.load(SeqCst)).collect()
        };
        let last: Vec<u64> = scoreboard.map(last).unwrap_or_default();
        let used = last.iter().rposition(|number| *number > 0).map_or(0, |index| index + 1);
        Cut {
            senders: last.into_iter().take(used).map(Numbers::up_to).collect(),
            place,
        }
    }

    /// A cut from another release, with which this one shares the history alone: everything up to this place.
    pub fn up_to(place: u64) -> Cut {
        Cut {
            senders: Vec::new(),
            place,
        }
    }

    /// The place in the history; everything before it was passed.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// The same cut at another place in the history.
    pub(super) fn at(self, place: u64) -> Cut {
        Cut { place, ..self }
    }

    /// Returns true if the dispatcher has passed this publication. A publication for one process is in no cut.
    pub fn has(&self, publication: &Publication) -> bool {
        match publication.origin {
            Origin::Process => false,
            Origin::Sent(id) | Origin::SentToOthers(id) => self.contains(id),
            Origin::Kept(place) => place < self.place,
        }
    }

    /// Returns true if the dispatcher has passed the publication with this id.
    pub fn contains(&self, id: PublicationId) -> bool {
        let numbers = self.senders.get(id.sender());
        numbers.is_some_and(|numbers| numbers.contains(id.number()))
    }

    /// Returns true if this cut has everything that another one has. A subscriber needs a cut no longer once its dispatcher
    /// covers it.
    pub fn covers(&self, other: &Cut) -> bool {
        let none = Numbers::default();
        let mut senders = other.senders.iter().enumerate();
        self.place >= other.place
            && senders.all(|(sender, numbers)| self.senders.get(sender).unwrap_or(&none).covers(numbers))
    }

    /// Adds everything that another cut has. A subscriber that moves on before its dispatcher covers the cut with which it
    /// came takes both.
    pub fn add_all(&mut self, other: &Cut) {
        self.add_numbers(other);
        self.place = self.place.max(other.place);
    }

    /// Adds everything but messages of the history.
    pub(super) fn add_numbers(&mut self, other: &Cut) {
        for (sender, numbers) in other.senders.iter().enumerate() {
            self.sender(sender).add_all(numbers);
        }
    }

    /// Adds a publication. Returns false if an earlier one of this sender is missing.
    pub(super) fn add(&mut self, id: PublicationId) -> bool {
        self.sender(id.sender()).add(id.number())
    }

    /// All publications of this sender up to this number were passed.
    pub(super) fn contiguous(&self, sender: usize) -> u64 {
        self.senders.get(sender).map_or(0, Numbers::contiguous)
    }

    fn sender(&mut self, sender: usize) -> &mut Numbers {
        if sender >= self.senders.len() {
            self.senders.resize(sender + 1, Numbers::default());
        }
        &mut self.senders[sender]
    }

    /// The cut in bytes, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let mut write = |number: u64| bytes.extend(number.to_le_bytes());
        write(self.place);
        write(self.senders.len() as u64);
        for numbers in &self.senders {
            write(numbers.contiguous());
            write(numbers.runs().len() as u64);
            for (first, last) in numbers.runs() {
                write(*first);
                write(*last);
            }
        }
        bytes
    }

    /// The cut that [`Cut::to_bytes`] has written. `None` if it is damaged, or of a version that this one does not know.
    pub fn from_bytes(bytes: &[u8]) -> Option<Cut> {
        let (version, rest) = bytes.split_first()?;
        let chunks = rest.chunks_exact(8);
        let is_known = *version == VERSION && chunks.remainder().is_empty();
        let mut words = chunks.map_while(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        let place = words.next().filter(|_| is_known)?;
        let count = words.next().filter(|count| *count <= SENDERS as u64)?;
        let senders = (0..count).map(|_| {
            let (contiguous, runs) = (words.next()?, words.next()?);
            let runs = (0..runs).map(|_| Some((words.next()?, words.next()?)));
            Numbers::of(contiguous, runs.collect::<Option<_>>()?)
        });
        let senders = senders.collect::<Option<_>>()?;
        words.next().is_none().then_some(Cut { senders, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::Position;

    fn cut(place: u64, ids: &[(u8, u64)]) -> Cut {
        let mut cut = Cut {
            place,
            ..Cut::default()
        };
        for (sender, number) in ids {
            cut.add(PublicationId::of(*sender, *number));
        }
        cut
    }

    #[test]
    fn a_cut_has_publications_of_all_kinds() {
        let cut = cut(100, &[(0, 1), (3, 1), (3, 2), (3, 5)]);
        let of = |sender, number| Publication::sent(*b"", *b"", PublicationId::of(sender, number));
        for id in [(0, 1), (3, 2), (3, 5)] {
            assert!(cut.has(&of(id.0, id.1)), "{id:?}");
        }
        for id in [(0, 2), (1, 1), (3, 3), (64, 1)] {
            assert!(!cut.has(&of(id.0, id.1)), "{id:?}");
        }
        let position = Position { epoch: 1, offset: 9 };
        let kept = |place| Publication::kept(b"".as_slice().into(), b"".as_slice().into(), position, place);
        assert!(cut.has(&kept(99)) && !cut.has(&kept(100)));
        assert!(!cut.has(&Publication::new(*b"", *b"")));
    }

    #[test]
    fn a_cut_covers_another_if_it_has_all_of_it() {
        let large = cut(100, &[(0, 1), (3, 1), (3, 2), (3, 5)]);
        for small in [cut(0, &[]), cut(100, &[(3, 5)]), cut(1, &[(0, 1)]), large.clone()] {
            assert!(large.covers(&small), "{small:?}");
        }
        for other in [cut(101, &[]), cut(0, &[(3, 4)]), cut(0, &[(7, 1)])] {
            assert!(!large.covers(&other), "{other:?}");
            let mut both = large.clone();
            both.add_all(&other);
            assert!(both.covers(&large) && both.covers(&other));
        }
    }

    #[test]
    fn a_cut_is_read_back_from_its_bytes() {
        for cut in [cut(0, &[]), cut(7, &[(0, 1), (64, 9), (2, 1), (2, 4), (2, 6), (2, 7)])] {
            let bytes = cut.to_bytes();
            assert_eq!(Cut::from_bytes(&bytes), Some(cut));
            for length in 0..bytes.len() {
                assert_eq!(Cut::from_bytes(&bytes[..length]), None, "{length} bytes");
            }
            assert_eq!(Cut::from_bytes(&[&bytes[..], &[0; 8]].concat()), None);
            assert_eq!(Cut::from_bytes(&[&[VERSION + 1], &bytes[1..]].concat()), None);
        }
        let huge = [&[VERSION][..], &[0; 8], &u64::MAX.to_le_bytes()].concat();
        assert_eq!(Cut::from_bytes(&huge), None);
    }

    #[test]
    fn the_cut_of_all_has_what_was_published_before() {
        let scoreboard: Box<Scoreboard> = Box::default();
        let ids = [None, Some(5), Some(5)].map(|own| PublicationId::next(&scoreboard, own));
        let all = Cut::of_all(Some(&scoreboard), 3);
        assert!(ids.into_iter().all(|id| all.contains(id)) && all.place == 3);
        assert!(!all.contains(PublicationId::next(&scoreboard, Some(5))));
        assert_eq!(all.senders.len(), 7);
    }
}
