//! The id of a publication that processes send to each other: its sender, and its number among the publications of that
//! sender. The numbers of a slot go on with its next worker, so an id never comes again.

use crate::cluster::scoreboard::{Scoreboard, Slot, SLOTS};
use std::sync::atomic::Ordering::SeqCst;

/// The number of senders: one for all processes without a slot, and each slot.
pub(super) const SENDERS: usize = SLOTS + 1;

/// The bits of a word that name the sender; the others are the number.
const SENDER_BITS: u32 = 8;

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicationId {
    sender: u8,
    number: u64,
}

impl PublicationId {
    /// The id of the next publication. `own`: the slot of the sender, if it has one.
    pub(super) fn next(scoreboard: &Scoreboard, own: Option<usize>) -> PublicationId {
        let slot: &Slot = own.map_or(scoreboard.others(), |slot| scoreboard.slot(slot));
        PublicationId {
            sender: own.map_or(0, |slot| slot as u8 + 1),
            // Before the sender looks for the processes that read their mail: see `Hub::start`.
            number: slot.last_publication.fetch_add(1, SeqCst) + 1,
        }
    }

    /// 0 for processes without a slot, otherwise the slot plus one.
    pub(super) fn sender(self) -> usize {
        self.sender.into()
    }

    /// Counts from 1.
    pub(super) fn number(self) -> u64 {
        self.number
    }

    /// The id as a number, for an envelope.
    pub(super) fn to_word(self) -> u64 {
        self.number << SENDER_BITS | u64::from(self.sender)
    }

    pub(super) fn from_word(word: u64) -> Option<PublicationId> {
        let (sender, number) = (word as u8, word >> SENDER_BITS);
        (usize::from(sender) < SENDERS && number > 0).then_some(PublicationId { sender, number })
    }

    #[cfg(test)]
    pub(super) fn of(sender: u8, number: u64) -> PublicationId {
        PublicationId { sender, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_counts_for_itself() {
        let scoreboard: Box<Scoreboard> = Box::default();
        let next = |own| PublicationId::next(&scoreboard, own);
        assert_eq!(
            [next(None), next(Some(0)), next(None)].map(PublicationId::number),
            [1, 1, 2]
        );
        assert_eq!(
            [next(None), next(Some(0)), next(Some(63))].map(PublicationId::sender),
            [0, 1, 64]
        );
    }

    #[test]
    fn a_word_is_an_id() {
        for id in [PublicationId::of(0, 1), PublicationId::of(64, 1 << 40)] {
            assert_eq!(PublicationId::from_word(id.to_word()), Some(id));
        }
        for word in [0, 64, 1 << 8 | 65, u64::MAX] {
            assert_eq!(PublicationId::from_word(word), None, "{word:x}");
        }
    }
}
