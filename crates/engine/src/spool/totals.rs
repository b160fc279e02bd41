//! What unsent responses may take of memory and disk, all of them together, and the line of the threads that wait for memory.
//!
//! Who takes something gets a [`Charge`], which gives it back when it goes. Memory is given in the order in which threads came
//! for it: as long as somebody stands in line, nobody else gets any.

use crate::limits::burst;
use parking_lot::Mutex;
use rustix::event::{eventfd, EventfdFlags};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

/// The two sums and the line.
#[derive(Debug)]
pub(crate) struct Totals {
    memory_bytes: u64,
    disk_bytes: u64,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    memory: u64,
    disk: u64,
    line: VecDeque<Arc<Ticket>>,
    /// The most memory that was taken since some was given back to the system.
    peak: u64,
}

/// Memory that is taken.
#[derive(Debug)]
pub(crate) struct Charge {
    totals: Arc<Totals>,
    bytes: u64,
}

/// A place in the line.
#[derive(Debug)]
pub(crate) struct Claim {
    totals: Arc<Totals>,
    ticket: Arc<Ticket>,
}

#[derive(Debug)]
struct Ticket {
    bytes: u64,
    is_granted: AtomicBool,
    /// Readable once it is granted; none where there was no descriptor left.
    signal: Option<Arc<OwnedFd>>,
}

impl Totals {
    pub(crate) fn new(memory_bytes: u64, disk_bytes: u64) -> Arc<Totals> {
        Arc::new(Totals {
            memory_bytes,
            disk_bytes,
            books: Mutex::default(),
        })
    }

    /// Takes memory if there is enough and nobody waits for it.
    pub(crate) fn take_memory(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        let mut books = self.books.lock();
        (books.line.is_empty() && self.fits(&books, bytes)).then(|| self.charge(&mut books, bytes))
    }

    /// Counts memory that is in use already.
    pub(crate) fn count_memory(self: &Arc<Self>, bytes: u64) -> Charge {
        self.charge(&mut self.books.lock(), bytes)
    }

    /// Joins the line for memory.
    pub(crate) fn wait_for_memory(self: &Arc<Self>, bytes: u64) -> Claim {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let ticket = Arc::new(Ticket {
            bytes,
            is_granted: AtomicBool::new(false),
            signal: eventfd(0, flags).ok().map(Arc::new),
        });
        let mut books = self.books.lock();
        books.line.push_back(Arc::clone(&ticket));
        self.serve_line(&mut books);
        Claim {
            totals: Arc::clone(self),
            ticket,
        }
    }

    /// Whether so much memory is taken that more of it had better be on disk.
    pub(crate) fn is_memory_scarce(&self) -> bool {
        self.books.lock().memory > self.memory_bytes / 2
    }

    /// Takes a part of the disk, to be given back by [`Totals::free_disk`].
    pub(crate) fn take_disk(&self, bytes: u64) -> bool {
        let mut books = self.books.lock();
        let fits = books.disk + bytes <= self.disk_bytes;
        books.disk += if fits { bytes } else { 0 };
        fits
    }

    pub(crate) fn free_disk(&self, bytes: u64) {
        self.books.lock().disk -= bytes;
    }

    /// Whether there is, or was, so much in memory that [`Totals::has_receded`] may be true some time.
    pub(crate) fn may_recede(&self) -> bool {
        self.books.lock().peak >= burst::WORTHWHILE_BYTES
    }

    /// Whether there was much in memory and next to nothing is left: true once for each time.
    pub(crate) fn has_receded(&self) -> bool {
        let mut books = self.books.lock();
        let has_receded = books.has_receded();
        if has_receded {
            books.peak = books.memory;
        }
        has_receded
    }

    fn fits(&self, books: &Books, bytes: u64) -> bool {
        books.memory + bytes <= self.memory_bytes
    }

    fn charge(self: &Arc<Self>, books: &mut Books, bytes: u64) -> Charge {
        books.memory += bytes;
        books.peak = books.peak.max(books.memory);
        Charge {
            totals: Arc::clone(self),
            bytes,
        }
    }

    /// Gives memory to those that wait, in their order, as far as it goes.
    fn serve_line(&self, books: &mut Books) {
        while let Some(ticket) = books.line.front().filter(|ticket| self.fits(books, ticket.bytes)) {
            books.memory += ticket.bytes;
            ticket.is_granted.store(true, SeqCst);
            if let Some(signal) = &ticket.signal {
                let _ = rustix::io::write(signal, &1u64.to_ne_bytes());
            }
            books.line.pop_front();
        }
        books.peak = books.peak.max(books.memory);
    }
}

impl Books {
    fn has_receded(&self) -> bool {
        burst::is_over(self.peak, self.memory)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut books = self.totals.books.lock();
        books.memory -= self.bytes;
        self.totals.serve_line(&mut books);
    }
}

impl Claim {
    /// What was asked for, if it is there.
    pub(crate) fn take(&mut self) -> Option<Charge> {
        // What is granted leaves the ticket only here, and with it the claim's right to it.
        self.ticket.is_granted.swap(false, SeqCst).then(|| Charge {
            totals: Arc::clone(&self.totals),
            bytes: self.ticket.bytes,
        })
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.ticket.is_granted.load(SeqCst)
    }

    /// What becomes readable when there is memory.
    pub(crate) fn signal(&self) -> Option<Arc<OwnedFd>> {
        self.ticket.signal.clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut books = self.totals.books.lock();
        books.line.retain(|ticket| !Arc::ptr_eq(ticket, &self.ticket));
        if self.ticket.is_granted.swap(false, SeqCst) {
            books.memory -= self.ticket.bytes;
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
        let all = totals.take_memory(100).expect("there is enough");
        let mut claims: Vec<Claim> = [60, 10, 40].map(|bytes| totals.wait_for_memory(bytes)).into();
        assert!(claims.iter().all(|claim| !claim.is_granted()));
        drop(all);
        // The third has to wait, and whoever comes now waits behind it, however little it wants.
        assert_eq!(
            claims.iter().map(Claim::is_granted).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(totals.take_memory(1).is_none());
        let taken = claims[0].take().expect("it was granted");
        drop(taken);
        assert!(claims[2].is_granted());
        drop(claims);
        assert!(totals.take_memory(100).is_some());
    }

    #[test]
    fn who_leaves_the_line_lets_the_next_one_in() {
        let totals = Totals::new(100, 0);
        let _most = totals.take_memory(80);
        let (large, small) = (totals.wait_for_memory(50), totals.wait_for_memory(20));
        assert!(!small.is_granted());
        drop(large);
        assert!(small.is_granted());
        assert!(totals.take_memory(1).is_none());
    }

    #[test]
    fn the_disk_is_never_overdrawn() {
        let totals = Totals::new(0, 100);
        assert!(totals.take_disk(60) && !totals.take_disk(41) && totals.take_disk(40));
        totals.free_disk(60);
        assert!(totals.take_disk(60) && !totals.take_disk(1));
    }

    #[test]
    fn memory_recedes_once() {
        let totals = Totals::new(2 * burst::WORTHWHILE_BYTES, 0);
        let much = totals.take_memory(burst::WORTHWHILE_BYTES);
        assert!(!totals.has_receded());
        drop(much);
        assert!(totals.has_receded());
        assert!(!totals.has_receded());
    }
}
