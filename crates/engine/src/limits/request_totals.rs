//! Memory and disk space that all requests of an engine together may use while they arrive, wait or run, and incomplete
//! WebSocket messages. A limit per request alone would be multiplied by the number of clients. Messages may use half of
//! the memory: clients decide how long they leave them incomplete. A quarter is reserved for messages, and a part for
//! large heads: bodies, which may go to the disk instead, use neither.
//!
//! A small amount of memory per connection is not counted, so that small requests cost nothing here and are always
//! served. If a connection has many requests at a time, this amount is for one of them.

use super::budget::{Budget, Kind, Share};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// Memory that a request may use without being counted.
const FREE_BYTES: usize = 32 * 1024;

/// Part (1/n) of the memory that incomplete messages may use.
const MESSAGES_PART: u64 = 2;

/// Part (1/n) of the memory that is reserved for incomplete messages.
const MESSAGES_OWN_PART: u64 = 4;

/// Part (1/n) of the memory that is reserved for heads.
const HEADS_OWN_PART: u64 = 16;

/// Approximate memory of a request without its bytes.
const REQUEST_BYTES: usize = 2 * 1024;

/// Limit in bytes, and the bytes in use.
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

    /// Changes the bytes of one holder from `had` to `wanted`, if there are enough.
    fn change(&self, had: u64, wanted: u64) -> bool {
        self.change_within(had, wanted, self.most)
    }

    fn lower(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, SeqCst);
        debug_assert!(before >= bytes, "{bytes} of {before} used bytes were given back");
    }

    /// The same, if all holders together use at most `most` afterwards.
    fn change_within(&self, had: u64, wanted: u64, most: u64) -> bool {
        if wanted <= had {
            self.lower(had - wanted);
            return true;
        }
        let more = |used: u64| Some(used + (wanted - had)).filter(|used| *used <= most);
        self.used.fetch_update(SeqCst, SeqCst, more).is_ok()
    }
}

/// Part of the memory that an amount is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    Body,
    Message,
}

/// Totals of an engine.
#[derive(Debug)]
pub struct RequestTotals {
    memory: Total,
    /// Part of `memory` that incomplete messages may use.
    messages: Total,
    /// Bytes of `memory` that heads use.
    heads: AtomicU64,
    disk: Total,
    /// Requests that are not read because memory, disk space or descriptors are short.
    waiting: AtomicUsize,
}

impl RequestTotals {
    /// Makes totals with limits in bytes: in memory, and in temporary files.
    pub fn new(memory_bytes: u64, disk_bytes: u64) -> Arc<RequestTotals> {
        Arc::new(RequestTotals {
            memory: Total::new(memory_bytes),
            messages: Total::new(memory_bytes / MESSAGES_PART),
            heads: AtomicU64::new(0),
            disk: Total::new(disk_bytes),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Most memory that may be used.
    pub(crate) fn most_memory(&self) -> u64 {
        self.memory.most
    }

    /// True if there is memory for a request of `bytes`.
    pub(crate) fn has_memory(&self, bytes: usize) -> bool {
        self.memory.used.load(SeqCst) + (bytes + REQUEST_BYTES) as u64 <= self.most_with(Part::Head)
    }

    /// Most memory that may be in use after an amount is taken for `part`.
    fn most_with(&self, part: Part) -> u64 {
        let all = self.memory.most;
        let of_messages = || (all / MESSAGES_OWN_PART).saturating_sub(self.messages.used.load(SeqCst));
        let of_heads = || (all / HEADS_OWN_PART).saturating_sub(self.heads.load(SeqCst));
        match part {
            Part::Message => all - of_heads(),
            Part::Head => all - of_messages(),
            Part::Body => all - of_messages() - of_heads(),
        }
    }

    /// Most bytes: of memory, and on disk.
    pub(crate) fn most(&self) -> (u64, u64) {
        (self.memory.most, self.disk.most)
    }

    /// Bytes in use: of memory, and on disk.
    pub fn used(&self) -> (u64, u64) {
        (self.memory.used.load(SeqCst), self.disk.used.load(SeqCst))
    }

    /// Number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Counts a request as waiting.
    pub(crate) fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, SeqCst);
        Waiting(Arc::clone(self))
    }
}

/// A request counts as waiting as long as this value exists.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<RequestTotals>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let before = self.0.waiting.fetch_sub(1, SeqCst);
        debug_assert!(before >= 1, "more requests stopped waiting than waited");
    }
}

/// Amounts that one request, or one client, has taken; released when dropped.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// `None` until something is counted.
    totals: Option<Arc<RequestTotals>>,
    /// Budget of the HTTP/2 connection, and the share of this request in it.
    budget: Option<Arc<Budget>>,
    share: Option<Share>,
    memory: u64,
    disk: u64,
    /// True if even small amounts are counted, and the approximate memory of the request itself.
    counts_all: bool,
    /// A request counts as a head until it uses memory for its body.
    part: Part,
}

impl Taken {
    /// For one of several requests of a connection.
    pub(crate) fn of_one_of_many(budget: Option<Arc<Budget>>) -> Taken {
        let mut taken = Taken::with_budget(budget);
        taken.counts_all = true;
        taken
    }

    /// For a request of an HTTP/2 connection with this budget.
    pub(crate) fn with_budget(budget: Option<Arc<Budget>>) -> Taken {
        let mut taken = Taken::default();
        taken.budget = budget;
        taken
    }

    /// For the incomplete message of a WebSocket, on an HTTP/2 connection with this budget if there is one.
    pub(crate) fn of_message(budget: Option<Arc<Budget>>) -> Taken {
        let mut taken = Taken::with_budget(budget);
        taken.part = Part::Message;
        taken
    }

    /// True if the HTTP/2 connection has no room for `bytes` in total, whatever others use.
    pub(crate) fn is_beyond_budget(&self, bytes: usize) -> bool {
        let more = self.weight(bytes).saturating_sub(self.memory);
        let is_too_much = |budget: &Arc<Budget>| !budget.has_room(Kind::Requests, more);
        more > 0 && self.budget.as_ref().is_some_and(is_too_much)
    }

    /// True if memory is counted.
    pub(crate) fn has_memory(&self) -> bool {
        self.memory > 0
    }

    fn weight(&self, bytes: usize) -> u64 {
        match bytes {
            _ if self.counts_all => (bytes + REQUEST_BYTES) as u64,
            ..=FREE_BYTES => 0,
            _ => bytes as u64,
        }
    }

    /// Changes the memory to `bytes` in total. Returns false, and changes nothing, if there is not enough.
    pub(crate) fn memory(&mut self, totals: &Arc<RequestTotals>, bytes: usize) -> bool {
        // A body without memory belongs to the previous request.
        let is_next = self.part == Part::Body && self.memory == 0;
        let part = if is_next { Part::Head } else { self.part };
        self.memory_of(part, totals, bytes)
    }

    /// The same for a body, which may go to the disk instead.
    pub(crate) fn memory_for_body(&mut self, totals: &Arc<RequestTotals>, bytes: usize) -> bool {
        self.memory_of(Part::Body, totals, bytes)
    }

    fn memory_of(&mut self, part: Part, totals: &Arc<RequestTotals>, bytes: usize) -> bool {
        let wanted = self.weight(bytes);
        if wanted == self.memory {
            return true;
        }
        if self.is_beyond_budget(bytes) || (part == Part::Message && !totals.messages.change(self.memory, wanted)) {
            return false;
        }
        let is_there = totals.memory.change_within(self.memory, wanted, totals.most_with(part));
        if is_there {
            self.count_head(totals, part, wanted);
            self.have(totals, wanted);
        } else if part == Part::Message {
            totals.messages.change(wanted, self.memory);
        }
        is_there
    }

    /// Called before its memory changes to `memory` of this part.
    fn count_head(&mut self, totals: &RequestTotals, part: Part, memory: u64) {
        if part == Part::Head {
            totals.heads.fetch_add(memory, SeqCst);
        }
        if std::mem::replace(&mut self.part, part) == Part::Head {
            let before = totals.heads.fetch_sub(self.memory, SeqCst);
            debug_assert!(before >= self.memory, "heads gave back more memory than they had");
        }
    }

    /// As [`Taken::memory`], for memory that is in use already.
    pub(crate) fn count_memory(&mut self, totals: &Arc<RequestTotals>, bytes: usize) {
        let wanted = self.weight(bytes);
        if wanted == self.memory {
            return;
        }
        totals.memory.used.fetch_add(wanted, SeqCst);
        totals.memory.lower(self.memory);
        self.count_head(totals, self.part, wanted);
        self.have(totals, wanted);
    }

    fn have(&mut self, totals: &Arc<RequestTotals>, memory: u64) {
        self.memory = memory;
        self.totals.get_or_insert_with(|| Arc::clone(totals));
        match (&mut self.share, &self.budget) {
            (Some(share), _) => share.set(memory),
            (None, Some(budget)) => self.share = Some(budget.count(Kind::Requests, memory)),
            (None, None) => {}
        }
    }

    /// Releases all but these amounts.
    pub(crate) fn keep(&mut self, memory: usize, disk: u64) {
        let Some(totals) = self.totals.clone() else { return };
        self.memory(&totals, memory);
        self.disk(&totals, disk.min(self.disk));
    }

    /// As [`Taken::memory`], on disk.
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
        if let Some(totals) = self.totals.take() {
            self.count_head(&totals, self.part, 0);
            totals.memory.change(self.memory, 0);
            if self.part == Part::Message {
                totals.messages.change(self.memory, 0);
            }
            totals.disk.change(self.disk, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        // A quarter is reserved for messages.
        let totals = RequestTotals::new(133_333, 1_000);
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
    fn of_many_requests_of_a_connection_each_byte_counts() {
        let totals = RequestTotals::new(10_000, 0);
        let mut taken = Taken::of_one_of_many(None);
        assert!(taken.memory(&totals, 10));
        assert_eq!(totals.used().0, 10 + REQUEST_BYTES as u64);
        assert!(!taken.memory(&totals, 10_000));
        drop(taken);
        assert_eq!(totals.used().0, 0);
    }

    #[test]
    fn messages_leave_half_of_the_memory_to_requests() {
        let totals = RequestTotals::new(200_000, 0);
        let (mut one, mut other) = (Taken::of_message(None), Taken::of_message(None));
        assert!(one.memory(&totals, 60_000) && !other.memory(&totals, 60_000));
        let mut request = Taken::default();
        assert!(request.memory(&totals, 140_000));
        assert!(!other.memory(&totals, 40_000), "nothing is left");
        drop(request);
        assert!(other.memory(&totals, 40_000), "memory that was refused is not counted");
        drop((one, other));
        assert_eq!(totals.used().0, 0);
        assert!(Taken::of_message(None).memory(&totals, 100_000));
    }

    #[test]
    fn messages_and_heads_keep_a_part_that_bodies_do_not_take() {
        let totals = RequestTotals::new(1_600_000, 0);
        let (mut body, mut head, mut message) = (Taken::default(), Taken::default(), Taken::of_message(None));
        assert!(!body.memory_for_body(&totals, 1_100_001) && body.memory_for_body(&totals, 1_100_000));
        assert!(!head.memory(&totals, 100_001) && head.memory(&totals, 100_000));
        assert!(message.memory(&totals, 400_000));
        assert!(!message.memory(&totals, 400_001), "nothing is left");
        drop(head);
        assert!(!message.memory(&totals, 400_001), "the rest is reserved for heads");
        drop(body);
        assert!(message.memory(&totals, 800_000));
        assert!(Taken::default().memory_for_body(&totals, 700_000));
    }

    #[test]
    fn a_small_amount_of_memory_is_always_available() {
        let totals = RequestTotals::new(0, 0);
        let mut taken = Taken::default();
        assert!(taken.memory(&totals, FREE_BYTES) && !taken.memory(&totals, FREE_BYTES + 1));
        assert!(taken.disk(&totals, 0) && !taken.disk(&totals, 1));
    }
}
