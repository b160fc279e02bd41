//! The highest numbers of queued requests and of connections without a thread since the last read, for Puma's
//! `backlog_max` and `reactor_max`.

use super::counts::Counts;
use std::collections::BTreeMap;

/// The peaks of each slot.
#[derive(Debug, Default)]
pub(super) struct Peaks(BTreeMap<usize, Peak>);

/// The peaks of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peak {
    pub(super) backlog: i64,
    pub(super) reactor: i64,
}

impl Peaks {
    /// Reads the counters; call this about once a second.
    pub(super) fn look(&mut self, counts: &Counts) {
        for (slot, counters) in counts.iter() {
            let found = Peak {
                backlog: counters.queued,
                reactor: counters.connections - counters.busy_threads,
            };
            let highest = self.0.entry(slot).or_insert(found);
            highest.backlog = highest.backlog.max(found.backlog);
            highest.reactor = highest.reactor.max(found.reactor);
        }
    }

    /// Reads the counters once more, returns the peaks, and resets them.
    pub(super) fn take(&mut self, counts: &Counts) -> Peaks {
        self.look(counts);
        std::mem::take(self)
    }

    /// The peaks of a slot.
    pub(super) fn of(&self, slot: usize) -> Peak {
        self.0.get(&slot).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_engine::Scoreboard;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn the_highest_numbers_begin_anew_when_they_are_read() {
        let scoreboard = Box::new(Scoreboard::default());
        let slot = scoreboard.slot(1);
        slot.beat();
        let set = |queued, connections, busy| {
            slot.queued.store(queued, Relaxed);
            slot.connections.store(connections, Relaxed);
            slot.busy_threads.store(busy, Relaxed);
            Counts::of(Some(&scoreboard))
        };
        let mut peaks = Peaks::default();
        peaks.look(&set(3, 9, 2));
        let lower = set(1, 2, 2);

        assert_eq!(Peak { backlog: 3, reactor: 7 }, peaks.take(&lower).of(1));
        assert_eq!(Peak { backlog: 1, reactor: 0 }, peaks.take(&lower).of(1));
        assert_eq!(Peak::default(), peaks.take(&lower).of(0));
    }
}
