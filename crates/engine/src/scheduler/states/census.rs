//! Number of threads in each state, in one integer, so that a reader sees all counts at one moment.

use crate::sync::{AtomicU64, Ordering::SeqCst};

/// State of a thread. The head of this folder's `mod.rs` draws the transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// The thread is about to be made, or is being made.
    Starting,
    /// It has the lock, and is between two jobs.
    Looking,
    /// It waits for events, without the lock.
    Polling,
    /// It sleeps without the lock until another thread wakes it.
    Waiting,
    /// It is awake without the lock, and about to take it.
    Wanting,
    /// It runs the app: it has the lock, or wants it again.
    Running,
    /// It runs the app, which has released the lock. Known only if the language reports it ([`Lock::tells_waits`]);
    /// otherwise such a thread counts as running, and the monitor guesses.
    ///
    /// [`Lock::tells_waits`]: crate::Lock::tells_waits
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

/// Counts of the threads. Each thread updates them when its own state changes; the waker counts a wake-up.
#[derive(Default)]
pub(crate) struct Census(AtomicU64);

impl Census {
    /// All counts at this moment.
    pub(crate) fn now(&self) -> Snapshot {
        Snapshot(self.0.load(SeqCst))
    }

    /// Moves one thread from one state to another; returns the counts after that.
    pub(crate) fn change(&self, from: Doing, to: Doing) -> Snapshot {
        let step = to.one().wrapping_sub(from.one());
        let before = self.0.fetch_add(step, SeqCst);
        debug_assert!(Snapshot(before).count(from) > 0, "no thread was {from:?}");
        Snapshot(before.wrapping_add(step))
    }

    /// Adds a thread, if `may` allows it for the current counts.
    pub(crate) fn add(&self, doing: Doing, may: impl Fn(Snapshot) -> bool) -> bool {
        let step = |word| (Snapshot(word).total() < MOST && may(Snapshot(word))).then(|| word + doing.one());
        self.0.fetch_update(SeqCst, SeqCst, step).is_ok()
    }

    /// Removes a thread. Returns false and changes nothing if none is in this state.
    pub(crate) fn remove(&self, doing: Doing) -> bool {
        let step = |word| Snapshot(word).any(doing).then(|| word - doing.one());
        self.0.fetch_update(SeqCst, SeqCst, step).is_ok()
    }

    /// Moves one thread from `Starting` to `Looking`; false if none was starting.
    pub(crate) fn begin(&self) -> bool {
        let step = |word| {
            let starts = Snapshot(word).count(Doing::Starting) > 0;
            starts.then(|| word - Doing::Starting.one() + Doing::Looking.one())
        };
        self.0.fetch_update(SeqCst, SeqCst, step).is_ok()
    }
}

/// Counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    /// Threads in this state.
    pub(crate) fn count(self, doing: Doing) -> usize {
        (self.0 >> doing.shift()) as usize & MOST
    }

    /// True if any thread is in this state.
    pub(crate) fn any(self, doing: Doing) -> bool {
        self.count(doing) > 0
    }

    /// All threads, including the starting ones.
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

    /// Threads that have started and do not run the app.
    pub(crate) fn free(self) -> usize {
        [Doing::Looking, Doing::Polling, Doing::Waiting, Doing::Wanting]
            .into_iter()
            .map(|doing| self.count(doing))
            .sum()
    }

    /// True if a thread runs the app, or is about to look for a job.
    pub(crate) fn is_active(self) -> bool {
        self.busy() > 0 || self.any(Doing::Looking) || self.any(Doing::Wanting)
    }

    /// True if the monitor must not park: threads are active, or none has begun.
    pub(crate) fn needs_monitor(self) -> bool {
        self.is_active() || self.begun() == 0
    }

    /// One thread in each of the given states.
    #[cfg(test)]
    pub(crate) fn of(threads: &[Doing]) -> Snapshot {
        Snapshot(threads.iter().map(|doing| doing.one()).sum())
    }
}
