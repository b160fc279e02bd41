//! How many threads do what, in one word: whoever reads it sees all of them at one moment.

use crate::sync::{AtomicU64, Ordering::SeqCst};

/// What a thread is doing; the head of this folder draws how one leads to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It is to be, or is being made.
    Starting,
    /// It has the lock and is between two jobs.
    Looking,
    /// It waits for events, without the lock.
    Polling,
    /// It sleeps until somebody wakes it, without the lock.
    Waiting,
    /// It is awake without the lock and on its way back to it.
    Wanting,
    /// It runs the app: has the lock, or wants it back.
    Running,
    /// It runs the app, which has given the lock up. Known only where the language tells ([`App::hands_over`]); elsewhere
    /// such a thread counts as running, and the monitor guesses.
    ///
    /// [`App::hands_over`]: crate::App::hands_over
    Blocked,
}

/// Bits of one count.
const WIDTH: u32 = 9;

/// Most threads that can be counted.
pub(crate) const MOST: usize = (1 << WIDTH) - 1;

impl Doing {
    const fn shift(self) -> u32 {
        self as u32 * WIDTH
    }

    const fn one(self) -> u64 {
        1 << self.shift()
    }
}

/// The counts, changed by whoever changes what it does.
#[derive(Default)]
pub(crate) struct Census(AtomicU64);

impl Census {
    /// All counts of this moment.
    pub(crate) fn now(&self) -> Snapshot {
        Snapshot(self.0.load(SeqCst))
    }

    /// One thread goes on from one state to another; what all do then.
    pub(crate) fn change(&self, from: Doing, to: Doing) -> Snapshot {
        let step = to.one().wrapping_sub(from.one());
        let before = self.0.fetch_add(step, SeqCst);
        debug_assert!(Snapshot(before).count(from) > 0, "nobody was {from:?}");
        Snapshot(before.wrapping_add(step))
    }

    /// One more thread, if `may` says so of what all do now.
    pub(crate) fn add(&self, doing: Doing, may: impl Fn(Snapshot) -> bool) -> bool {
        let step = |word| (Snapshot(word).total() < MOST && may(Snapshot(word))).then(|| word + doing.one());
        self.0.fetch_update(SeqCst, SeqCst, step).is_ok()
    }

    /// One thread less.
    pub(crate) fn remove(&self, doing: Doing) {
        self.0.fetch_sub(doing.one(), SeqCst);
    }

    /// One that starts begins to look; false if none was counted as starting.
    pub(crate) fn begin(&self) -> bool {
        let step = |word| {
            let starts = Snapshot(word).count(Doing::Starting) > 0;
            starts.then(|| word - Doing::Starting.one() + Doing::Looking.one())
        };
        self.0.fetch_update(SeqCst, SeqCst, step).is_ok()
    }
}

/// What all threads did at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    /// Threads that did this.
    pub(crate) fn count(self, doing: Doing) -> usize {
        (self.0 >> doing.shift()) as usize & MOST
    }

    /// Whether any thread did this.
    pub(crate) fn any(self, doing: Doing) -> bool {
        self.count(doing) > 0
    }

    /// All threads, those that start included.
    pub(crate) fn total(self) -> usize {
        self.begun() + self.count(Doing::Starting)
    }

    /// Threads that have started.
    pub(crate) fn begun(self) -> usize {
        self.free() + self.busy()
    }

    /// Threads that run the app.
    pub(crate) fn busy(self) -> usize {
        self.count(Doing::Running) + self.count(Doing::Blocked)
    }

    /// Threads that have started and run nothing.
    pub(crate) fn free(self) -> usize {
        [Doing::Looking, Doing::Polling, Doing::Waiting, Doing::Wanting]
            .into_iter()
            .map(|doing| self.count(doing))
            .sum()
    }

    /// Whether a thread runs the app, or is about to look for something to run.
    pub(crate) fn is_active(self) -> bool {
        self.busy() > 0 || self.any(Doing::Looking) || self.any(Doing::Wanting)
    }

    /// One thread in each of these states.
    #[cfg(test)]
    pub(crate) fn of(threads: &[Doing]) -> Snapshot {
        Snapshot(threads.iter().map(|doing| doing.one()).sum())
    }
}
