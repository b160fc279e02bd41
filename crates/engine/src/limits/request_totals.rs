//! What requests that arrive, wait or run may take of memory and disk, all of an engine's together, and messages of WebSockets
//! that have not come whole. Each limit of a single one is multiplied by the number of clients; this is what stands against that.
//!
//! A little memory is every connection's own and not counted, so that small requests cost nothing here and are served
//! whatever others do.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// Memory that a request may take without being counted.
const FREE_BYTES: usize = 32 * 1024;

/// Bytes that may be taken, and that are.
#[derive(Debug)]
struct Total {
    most: u64,
    used: AtomicU64,
}

impl Total {
    fn new(most: u64) -> Total {
        Total {
            most,
            used: AtomicU64::new(0),
        }
    }

    /// Makes `had` bytes `wanted` ones, if there are enough.
    fn change(&self, had: u64, wanted: u64) -> bool {
        if wanted <= had {
            self.used.fetch_sub(had - wanted, SeqCst);
            return true;
        }
        let more = |used: u64| Some(used + (wanted - had)).filter(|used| *used <= self.most);
        self.used.fetch_update(SeqCst, SeqCst, more).is_ok()
    }
}

/// The totals of an engine.
#[derive(Debug)]
pub struct RequestTotals {
    memory: Total,
    disk: Total,
    /// Requests that are not read on for want of memory, disk or descriptors.
    waiting: AtomicUsize,
}

impl RequestTotals {
    /// So many bytes in memory, so many in temporary files.
    pub fn new(memory_bytes: u64, disk_bytes: u64) -> Arc<RequestTotals> {
        Arc::new(RequestTotals {
            memory: Total::new(memory_bytes),
            disk: Total::new(disk_bytes),
            waiting: AtomicUsize::new(0),
        })
    }

    /// How many bytes are taken: of memory, and on disk.
    pub fn used(&self) -> (u64, u64) {
        (self.memory.used.load(SeqCst), self.disk.used.load(SeqCst))
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// A place among those that wait.
    pub(crate) fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, SeqCst);
        Waiting(Arc::clone(self))
    }
}

/// A request waits for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<RequestTotals>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// What one request, or one client, has taken; given back when this goes.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// None until something is counted.
    totals: Option<Arc<RequestTotals>>,
    memory: u64,
    disk: u64,
}

impl Taken {
    /// Takes `bytes` of memory altogether, or gives back what is above that. False, with nothing changed: there is not enough.
    pub(crate) fn memory(&mut self, totals: &Arc<RequestTotals>, bytes: usize) -> bool {
        let wanted = if bytes > FREE_BYTES { bytes as u64 } else { 0 };
        if wanted == self.memory {
            return true;
        }
        let is_there = totals.memory.change(self.memory, wanted);
        if is_there {
            self.memory = wanted;
            self.totals.get_or_insert_with(|| Arc::clone(totals));
        }
        is_there
    }

    /// Gives back all but so much.
    pub(crate) fn keep(&mut self, memory: usize, disk: u64) {
        let Some(totals) = self.totals.clone() else { return };
        self.memory(&totals, memory);
        self.disk(&totals, disk.min(self.disk));
    }

    /// The same on disk.
    pub(crate) fn disk(&mut self, totals: &Arc<RequestTotals>, bytes: u64) -> bool {
        let is_there = totals.disk.change(self.disk, bytes);
        if is_there {
            self.disk = bytes;
            self.totals.get_or_insert_with(|| Arc::clone(totals));
        }
        is_there
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(totals) = &self.totals {
            totals.memory.change(self.memory, 0);
            totals.disk.change(self.disk, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let totals = RequestTotals::new(100_000, 1_000);
        let (mut one, mut other) = (Taken::default(), Taken::default());
        assert!(one.memory(&totals, 60_000) && one.disk(&totals, 600));
        assert!(!other.memory(&totals, 60_000) && !other.disk(&totals, 401));
        assert!(other.memory(&totals, 40_000) && other.disk(&totals, 400));
        assert_eq!(totals.used(), (100_000, 1_000));
        assert!(!one.memory(&totals, 60_001), "nothing is left");
        assert!(one.memory(&totals, 50_000) && other.memory(&totals, 50_000));
        drop((one, other));
        assert_eq!(totals.used(), (0, 0));
    }

    #[test]
    fn a_little_memory_is_always_there() {
        let totals = RequestTotals::new(0, 0);
        let mut taken = Taken::default();
        assert!(taken.memory(&totals, FREE_BYTES) && !taken.memory(&totals, FREE_BYTES + 1));
        assert!(taken.disk(&totals, 0) && !taken.disk(&totals, 1));
    }
}
