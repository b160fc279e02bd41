//! The memory and disk that all unsent responses together may take, and the queue of the threads that wait for memory.
//!
//! A [`Charge`] stands for memory that is taken, and gives it back when dropped. Memory is granted in the order in
//! which threads asked for it: as long as a thread is in the queue, no other thread gets any.

use crate::limits::budget::{Budget, Kind, Share};
use crate::limits::burst;
use crate::sync::Mutex;
use fairlead_system::wake_up;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

/// Memory in use may exceed the total by this part (1/n) for a moment, until it is known which clients are slow.
const LEEWAY_PART: u64 = 4;

/// The two totals and the queue.
#[derive(Debug)]
pub(crate) struct Totals {
    memory_bytes: u64,
    disk_bytes: u64,
    books: Mutex<Books>,
    /// A copy of `Books::memory`, readable without the lock; written only while the lock is held.
    memory: AtomicU64,
}

#[derive(Debug, Default)]
struct Books {
    memory: u64,
    disk: u64,
    queue: VecDeque<Arc<Ticket>>,
    /// Most memory that was taken since some was last returned to the system.
    peak: u64,
}

/// Memory that is taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    totals: Arc<Totals>,
    bytes: u64,
    /// The same memory, counted for its HTTP/2 connection.
    share: Option<Share>,
}

/// A slot in the queue.
#[derive(Debug)]
pub(crate) struct Claim {
    totals: Arc<Totals>,
    ticket: Arc<Ticket>,
}

#[derive(Debug)]
struct Ticket {
    bytes: u64,
    is_granted: AtomicBool,
    /// An eventfd, readable once memory is granted. `None` if there was no descriptor left.
    signal: Option<Arc<OwnedFd>>,
}

impl Totals {
    pub(crate) fn new(memory_bytes: u64, disk_bytes: u64) -> Arc<Totals> {
        Arc::new(Totals {
            memory_bytes,
            disk_bytes,
            books: Mutex::default(),
            memory: AtomicU64::new(0),
        })
    }

    /// Takes memory if there is enough and no thread waits for it. An eighth of the total is reserved for memory that
    /// can only be counted when it is in use ([`Totals::count_memory`]).
    pub(crate) fn take_memory(self: &Arc<Self>, bytes: u64, budget: Option<&Arc<Budget>>) -> Option<Charge> {
        let mut books = self.books.lock();
        (books.queue.is_empty() && self.fits(&books, bytes)).then(|| self.charge(&mut books, bytes, budget))
    }

    /// Counts memory that is in use already.
    pub(crate) fn count_memory(self: &Arc<Self>, bytes: u64, budget: Option<&Arc<Budget>>) -> Charge {
        self.charge(&mut self.books.lock(), bytes, budget)
    }

    /// Returns true if more memory is in use than allowed, because it was counted afterwards.
    pub(crate) fn is_memory_exceeded(&self, comes_back: u64) -> bool {
        self.memory().saturating_sub(comes_back) > self.memory_bytes
    }

    /// The same, but the limit is exceeded by so much that no client may be spared.
    pub(crate) fn is_memory_far_exceeded(&self, comes_back: u64) -> bool {
        self.memory().saturating_sub(comes_back) > self.memory_bytes + self.memory_bytes / LEEWAY_PART
    }

    /// Returns true if `bytes` is as much as may be exceeded for a moment.
    pub(crate) fn is_large_part(&self, bytes: u64) -> bool {
        bytes >= self.memory_bytes / LEEWAY_PART
    }

    /// Memory that is taken.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(SeqCst)
    }

    /// Disk space that is taken.
    pub(crate) fn disk(&self) -> u64 {
        self.books.lock().disk
    }

    /// Joins the queue for memory.
    pub(crate) fn wait_for_memory(self: &Arc<Self>, bytes: u64) -> Claim {
        let ticket = Arc::new(Ticket {
            bytes,
            is_granted: AtomicBool::new(false),
            signal: wake_up::open().ok().map(Arc::new),
        });
        let mut books = self.books.lock();
        books.queue.push_back(Arc::clone(&ticket));
        self.serve_line(&mut books);
        Claim {
            totals: Arc::clone(self),
            ticket,
        }
    }

    /// Returns true if so much memory is taken that more should go to the disk.
    pub(crate) fn is_memory_scarce(&self) -> bool {
        self.memory() > self.memory_bytes / 2
    }

    /// Takes disk space, to be given back with [`Totals::free_disk`].
    pub(crate) fn take_disk(&self, bytes: u64) -> bool {
        let mut books = self.books.lock();
        let fits = books.disk + bytes <= self.disk_bytes;
        books.disk += if fits { bytes } else { 0 };
        fits
    }

    /// Counts disk space that is taken already, by a file from another process.
    pub(crate) fn count_disk(&self, bytes: u64) {
        self.books.lock().disk += bytes;
    }

    pub(crate) fn free_disk(&self, bytes: u64) {
        self.books.lock().disk -= bytes;
    }

    /// Returns true if so much memory is or was in use that [`Totals::has_receded`] may become true.
    pub(crate) fn may_recede(&self) -> bool {
        self.books.lock().peak >= burst::WORTHWHILE_BYTES
    }

    /// Returns true if much memory was in use and little of it is left, once per peak.
    pub(crate) fn has_receded(&self) -> bool {
        let mut books = self.books.lock();
        let has_receded = books.has_receded();
        if has_receded {
            books.peak = books.memory;
        }
        has_receded
    }

    fn fits(&self, books: &Books, bytes: u64) -> bool {
        let most = self.memory_bytes - self.memory_bytes / 8;
        books.memory + bytes <= most.max(bytes.min(self.memory_bytes))
    }

    fn charge(self: &Arc<Self>, books: &mut Books, bytes: u64, budget: Option<&Arc<Budget>>) -> Charge {
        self.change(books, |memory| memory + bytes);
        Charge {
            totals: Arc::clone(self),
            bytes,
            share: share(budget, bytes),
        }
    }

    /// Grants memory to the tickets in the queue, in order, as far as it goes.
    fn serve_line(&self, books: &mut Books) {
        while let Some(ticket) = books.queue.front().filter(|ticket| self.fits(books, ticket.bytes)) {
            let ticket = Arc::clone(ticket);
            self.change(books, |memory| memory + ticket.bytes);
            ticket.is_granted.store(true, SeqCst);
            if let Some(signal) = &ticket.signal {
                wake_up::ring(signal);
            }
            books.queue.pop_front();
        }
    }

    fn change(&self, books: &mut Books, change: impl FnOnce(u64) -> u64) {
        books.memory = change(books.memory);
        books.peak = books.peak.max(books.memory);
        self.memory.store(books.memory, SeqCst);
    }
}

impl Books {
    fn has_receded(&self) -> bool {
        burst::is_over(self.peak, self.memory, burst::WORTHWHILE_BYTES)
    }
}

fn share(budget: Option<&Arc<Budget>>, bytes: u64) -> Option<Share> {
    budget.map(|budget| budget.count(Kind::Responses, bytes))
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut books = self.totals.books.lock();
        self.totals.change(&mut books, |memory| memory - self.bytes);
        self.totals.serve_line(&mut books);
    }
}

impl Charge {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the counted bytes, even if that exceeds the total.
    pub(crate) fn set(&mut self, bytes: u64) {
        let mut books = self.totals.books.lock();
        self.totals.change(&mut books, |memory| memory - self.bytes + bytes);
        if bytes < self.bytes {
            self.totals.serve_line(&mut books);
        }
        drop(books);
        self.bytes = bytes;
        if let Some(share) = &mut self.share {
            share.set(bytes);
        }
    }
}

impl Claim {
    /// Takes the memory, if it was granted.
    pub(crate) fn take(&mut self, budget: Option<&Arc<Budget>>) -> Option<Charge> {
        // The swap moves ownership of the granted memory from the ticket to the charge.
        self.ticket.is_granted.swap(false, SeqCst).then(|| Charge {
            totals: Arc::clone(&self.totals),
            bytes: self.ticket.bytes,
            share: share(budget, self.ticket.bytes),
        })
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.ticket.is_granted.load(SeqCst)
    }

    /// Becomes readable when the memory is granted.
    pub(crate) fn signal(&self) -> Option<Arc<OwnedFd>> {
        self.ticket.signal.clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut books = self.totals.books.lock();
        books.queue.retain(|ticket| !Arc::ptr_eq(ticket, &self.ticket));
        if self.ticket.is_granted.swap(false, SeqCst) {
            self.totals.change(&mut books, |memory| memory - self.ticket.bytes);
        }
        self.totals.serve_line(&mut books);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_in_the_order_in_which_it_was_asked_for() {
        let totals = Totals::new(100, 0);
        let all = totals.take_memory(100, None).expect("there is enough");
        let mut claims: Vec<Claim> = [60, 10, 40].map(|bytes| totals.wait_for_memory(bytes)).into();
        assert!(claims.iter().all(|claim| !claim.is_granted()));
        drop(all);
        // The third one has to wait, and a later request waits behind it, however small.
        assert_eq!(
            claims.iter().map(Claim::is_granted).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(totals.take_memory(1, None).is_none());
        let taken = claims[0].take(None).expect("it was granted");
        drop(taken);
        assert!(claims[2].is_granted());
        drop(claims);
        assert!(totals.take_memory(100, None).is_some());
    }

    #[test]
    fn what_is_counted_afterwards_exceeds_a_total_only_when_it_is_much() {
        let totals = Totals::new(1_024, 0);
        let parts: Vec<Charge> = std::iter::from_fn(|| totals.take_memory(64, None)).collect();
        let few = totals.count_memory(128, None);
        assert!(!totals.is_memory_exceeded(0));
        let _more = totals.count_memory(1, None);
        assert!(totals.is_memory_exceeded(0));
        drop((parts, few));
        assert!(totals.take_memory(1_024, None).is_none());
    }

    #[test]
    fn the_next_in_line_is_served_when_the_first_one_leaves() {
        let totals = Totals::new(114, 0);
        let _most = totals.take_memory(80, None);
        let (large, small) = (totals.wait_for_memory(50), totals.wait_for_memory(20));
        assert!(!small.is_granted());
        drop(large);
        assert!(small.is_granted());
        assert!(totals.take_memory(1, None).is_none());
    }

    #[test]
    fn a_charge_that_shrinks_serves_the_line() {
        let totals = Totals::new(100, 0);
        let mut charge = totals.count_memory(90, None);
        charge.set(120);
        assert!(totals.is_memory_exceeded(0) && !totals.is_memory_exceeded(20));
        let claim = totals.wait_for_memory(50);
        // An eighth is reserved.
        charge.set(39);
        assert!(!claim.is_granted());
        charge.set(38);
        assert!(claim.is_granted());
        drop((charge, claim));
        assert!(totals.take_memory(100, None).is_some());
    }

    #[test]
    fn the_disk_total_is_never_exceeded() {
        let totals = Totals::new(0, 100);
        assert!(totals.take_disk(60) && !totals.take_disk(41) && totals.take_disk(40));
        totals.free_disk(60);
        assert!(totals.take_disk(60) && !totals.take_disk(1));
    }

    #[test]
    fn the_end_of_a_peak_is_reported_once() {
        let totals = Totals::new(2 * burst::WORTHWHILE_BYTES, 0);
        let much = totals.take_memory(burst::WORTHWHILE_BYTES, None);
        assert!(!totals.has_receded());
        drop(much);
        assert!(totals.has_receded());
        assert!(!totals.has_receded());
    }
}
