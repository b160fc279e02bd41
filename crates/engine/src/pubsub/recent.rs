//! Recent publications that a dispatcher has handed out, for subscribers that come from another process. The history has its
//! own.

use super::cut::Cut;
use super::publication::Publication;
use super::publication_id::PublicationId;
use crate::clock::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Most publications, most bytes, and the longest time. A dispatcher that sleeps does not wake to drop them.
const MOST: usize = 32 * 1024;
const MOST_BYTES: usize = 8 * 1024 * 1024;
const LONGEST: Duration = Duration::from_secs(30);

/// See the head of this file.
pub(super) struct Recent {
    publications: VecDeque<Handed>,
    bytes: usize,
    /// The publications that are not here any more, or never were.
    gone: Cut,
}

/// A publication without its wire forms, which would take memory for as long.
pub(super) struct Handed {
    pub(super) id: PublicationId,
    pub(super) channel: Arc<[u8]>,
    pub(super) message: Arc<[u8]>,
    /// The place of the dispatcher in the history at that time.
    pub(super) place: u64,
    time: Nanos,
}

impl Recent {
    /// `gone`: the publications before the first one.
    pub(super) fn new(gone: Cut) -> Recent {
        Recent {
            publications: VecDeque::new(),
            bytes: 0,
            gone: gone.at(0),
        }
    }

    pub(super) fn push(&mut self, publication: &Publication, id: PublicationId, place: u64, time: Nanos) {
        let handed = Handed {
            id,
            channel: Arc::clone(&publication.channel),
            message: Arc::clone(&publication.message),
            place,
            time,
        };
        self.bytes += handed.bytes();
        self.publications.push_back(handed);
        self.shrink(time);
    }

    /// Drops publications that are too many or too old.
    pub(super) fn shrink(&mut self, now: Nanos) {
        while let Some(oldest) = self.publications.front() {
            let is_over = self.publications.len() > MOST || self.bytes > MOST_BYTES;
            if !is_over && now < oldest.time + LONGEST {
                break;
            }
            self.bytes -= oldest.bytes();
            self.gone.add(oldest.id);
            self.publications.pop_front();
        }
        if self.publications.is_empty() && self.publications.capacity() > MOST / 16 {
            self.publications = VecDeque::new();
        }
    }

    /// The publications that a cut does not have, in order. `None` if some of them are gone.
    pub(super) fn since<'a>(&'a self, cut: &'a Cut) -> Option<impl Iterator<Item = &'a Handed>> {
        let missed = self.publications.iter().filter(|handed| !cut.contains(handed.id));
        cut.covers(&self.gone).then_some(missed)
    }
}

impl Handed {
    fn bytes(&self) -> usize {
        size_of::<Handed>() + self.channel.len() + self.message.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> PublicationId {
        PublicationId::of(1, number)
    }

    fn push(recent: &mut Recent, number: u64, bytes: usize, time: Nanos) {
        let publication = Publication::sent(*b"", vec![0; bytes], id(number));
        recent.push(&publication, id(number), 0, time);
    }

    fn cut(numbers: impl IntoIterator<Item = u64>) -> Cut {
        let mut cut = Cut::default();
        numbers.into_iter().for_each(|number| _ = cut.add(id(number)));
        cut
    }

    fn since(recent: &Recent, cut: &Cut) -> Option<Vec<u64>> {
        let missed = recent.since(cut)?;
        Some(missed.map(|handed| handed.id.number()).collect())
    }

    #[test]
    fn a_cut_gets_the_publications_that_it_does_not_have() {
        let mut recent = Recent::new(cut([1, 2]));
        [4, 3, 6]
            .into_iter()
            .for_each(|number| push(&mut recent, number, 1, Nanos::START));
        assert_eq!(since(&recent, &cut([1, 2])), Some(vec![4, 3, 6]));
        assert_eq!(since(&recent, &cut([1, 2, 3, 5, 6, 7])), Some(vec![4]));
        assert_eq!(since(&recent, &cut([1, 3])), None, "2 is older");
    }

    #[test]
    fn the_oldest_publications_go_when_there_are_too_many() {
        let mut recent = Recent::new(Cut::default());
        (1..=MOST as u64 + 2).for_each(|number| push(&mut recent, number, 1, Nanos::START));
        assert_eq!(since(&recent, &cut([1])), None);
        assert_eq!(since(&recent, &cut([1, 2])).map(|missed| missed.len()), Some(MOST));
        let space = MOST_BYTES - 10 - 11 * size_of::<Handed>();
        push(&mut recent, 100_000, space, Nanos::START);
        assert_eq!(
            since(&recent, &cut(1..=MOST as u64 - 8)).map(|missed| missed.len()),
            Some(11)
        );
        push(&mut recent, 100_001, MOST_BYTES + 1, Nanos::START);
        assert_eq!((recent.publications.len(), recent.bytes), (0, 0));
        assert_eq!(since(&recent, &cut(1..=MOST as u64 + 2)), None);
    }

    #[test]
    fn publications_go_with_time() {
        let mut recent = Recent::new(Cut::default());
        push(&mut recent, 1, 1, Nanos::START);
        push(&mut recent, 2, 1, Nanos::START + LONGEST / 2);
        recent.shrink(Nanos::START + LONGEST);
        assert_eq!(since(&recent, &Cut::default()), None);
        assert_eq!(since(&recent, &cut([1])), Some(vec![2]));
        recent.shrink(Nanos::START + LONGEST / 2 + LONGEST);
        assert!(recent.publications.is_empty());
    }
}
