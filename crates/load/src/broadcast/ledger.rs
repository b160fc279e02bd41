//! The deliveries. For every subscriber and publisher the ledger keeps the next sequence number and the skipped ones,
//! so it stays small however long a run is, as long as messages arrive mostly in order.

use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Ledger {
    publishers: usize,
    /// One track for each pair of subscriber and publisher.
    tracks: Vec<Track>,
    rows: Vec<Row>,
}

/// Deliveries to one subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// The subscriber was there when publishing began.
    enrolled: bool,
    /// Messages, each counted once.
    pub(crate) received: u64,
    pub(crate) duplicated: u64,
    /// Messages that arrived after a later one of the same publisher.
    pub(crate) out_of_order: u64,
}

#[derive(Clone, Debug, Default)]
struct Track {
    next: u32,
    /// Missing numbers below `next`, in ascending order.
    missing: Vec<Range<u32>>,
}

/// Result of recording a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    First,
    Duplicate,
}

impl Ledger {
    pub(crate) fn new(subscribers: usize, publishers: usize) -> Ledger {
        Ledger {
            publishers,
            tracks: vec![Track::default(); subscribers * publishers],
            rows: vec![Row::default(); subscribers],
        }
    }

    pub(crate) fn enrol(&mut self, subscriber: usize) {
        self.rows[subscriber].enrolled = true;
    }

    pub(crate) fn is_enrolled(&self, subscriber: usize) -> bool {
        self.rows[subscriber].enrolled
    }

    /// Records the arrival of a message.
    pub(crate) fn record(&mut self, subscriber: usize, publisher: u32, sequence: u32) -> Arrival {
        let track = &mut self.tracks[subscriber * self.publishers + publisher as usize];
        let row = &mut self.rows[subscriber];
        if sequence >= track.next {
            if sequence > track.next {
                track.missing.push(track.next..sequence);
            }
            track.next = sequence + 1;
        } else if track.fill(sequence) {
            row.out_of_order += 1;
        } else {
            row.duplicated += 1;
            return Arrival::Duplicate;
        }
        row.received += 1;
        Arrival::First
    }

    pub(crate) fn row(&self, subscriber: usize) -> Row {
        self.rows[subscriber]
    }

    /// The subscribers that were there when publishing began.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.enrolled)
    }

    /// All subscribers with their numbers, from 0.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Row)> {
        self.rows.iter().enumerate().filter(|(_, row)| row.enrolled)
    }

    pub(crate) fn total(&self) -> Row {
        self.rows().fold(Row::default(), |sum, row| Row {
            enrolled: true,
            received: sum.received + row.received,
            duplicated: sum.duplicated + row.duplicated,
            out_of_order: sum.out_of_order + row.out_of_order,
        })
    }
}

impl Track {
    /// A skipped message has arrived; returns `false` if `sequence` was not missing.
    fn fill(&mut self, sequence: u32) -> bool {
        let index = self.missing.partition_point(|range| range.end <= sequence);
        let Some(range) = self.missing.get_mut(index).filter(|range| range.contains(&sequence)) else {
            return false;
        };
        let behind = sequence + 1..range.end;
        range.end = sequence;
        let empty = range.start == range.end;
        if behind.start < behind.end {
            self.missing.insert(index + 1, behind);
        }
        if empty {
            self.missing.remove(index);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sequences: &[u32]) -> Row {
        let mut ledger = Ledger::new(2, 2);
        ledger.enrol(1);
        for &sequence in sequences {
            ledger.record(1, 1, sequence);
        }
        assert_eq!(ledger.row(0), Row::default(), "other subscribers are unaffected");
        ledger.row(1)
    }

    fn counts(sequences: &[u32]) -> (u64, u64, u64) {
        let row = row(sequences);
        (row.received, row.duplicated, row.out_of_order)
    }

    #[test]
    fn every_message_counts_once() {
        assert_eq!(counts(&[0, 1, 2, 3]), (4, 0, 0));
        assert_eq!(counts(&[0, 1, 1, 2, 0]), (3, 2, 0));
        assert_eq!(counts(&[0, 3]), (2, 0, 0));
    }

    #[test]
    fn a_message_behind_a_later_one_is_out_of_order_once() {
        assert_eq!(counts(&[1, 0, 2]), (3, 0, 1));
        assert_eq!(counts(&[9, 5, 5, 0, 8, 3, 4, 7, 6, 1, 2]), (10, 1, 9));
        assert_eq!(counts(&[9, 0, 9, 0]), (2, 2, 1));
    }

    #[test]
    fn publishers_have_sequences_of_their_own() {
        let mut ledger = Ledger::new(1, 2);
        assert_eq!(ledger.record(0, 0, 0), Arrival::First);
        assert_eq!(ledger.record(0, 1, 0), Arrival::First);
        assert_eq!(ledger.record(0, 1, 0), Arrival::Duplicate);
        assert_eq!(ledger.row(0).received, 2);
    }
}
