//! Asks a client for a receipt of the messages for its pages: a ping behind the messages, and its pong is the receipt (RFC
//! 6455 §5.5.3). One ping is on its way at a time.

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering::Relaxed};

/// In front of the offset in a ping.
const MARK: &[u8; 4] = b"flpg";

/// The pages of one client.
#[derive(Default)]
pub(in crate::realtime) struct Receipts {
    /// True if there are pages.
    are_wanted: AtomicBool,
    pages: Mutex<Vec<u64>>,
    /// The offset of the newest message for a page, and the offset in the ping on its way, or 0.
    delivered: AtomicU64,
    asked: AtomicU64,
    received: AtomicU64,
}

impl Receipts {
    /// Adds a page.
    pub(super) fn want(&self, page: u64) {
        let mut pages = self.pages.lock();
        if !pages.contains(&page) {
            pages.push(page);
        }
        self.are_wanted.store(true, Relaxed);
    }

    /// Notes a message.
    pub(super) fn delivered(&self, offset: u64) {
        self.delivered.fetch_max(offset, Relaxed);
    }

    /// Returns true if a ping is due.
    pub(super) fn is_due(&self) -> bool {
        let is_free = self.are_wanted.load(Relaxed) && self.asked.load(Relaxed) == 0;
        is_free && self.delivered.load(Relaxed) > self.received.load(Relaxed)
    }

    /// The payload of a ping that is due. To be called with the outbox locked.
    pub(super) fn question(&self) -> Option<[u8; 12]> {
        if !self.is_due() {
            return None;
        }
        let delivered = self.delivered.load(Relaxed);
        self.asked.store(delivered, Relaxed);
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(MARK);
        payload[4..].copy_from_slice(&delivered.to_be_bytes());
        Some(payload)
    }

    /// The offset that a pong acknowledges, and the pages; `None` if it is another pong.
    pub(super) fn answer(&self, payload: &[u8]) -> Option<(u64, Vec<u64>)> {
        let offset = payload.strip_prefix(MARK)?;
        let offset = u64::from_be_bytes(offset.try_into().ok()?);
        if offset == 0 || self.asked.compare_exchange(offset, 0, Relaxed, Relaxed).is_err() {
            return None;
        }
        self.received.fetch_max(offset, Relaxed);
        Some((offset, self.pages.lock().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_is_on_its_way_and_only_its_answer_counts() {
        let receipts = Receipts::default();
        receipts.delivered(3);
        assert_eq!(receipts.question(), None, "no page");
        receipts.want(7);
        receipts.want(7);
        let first = receipts.question().expect("due");
        receipts.delivered(5);
        assert_eq!(receipts.question(), None);
        for other in [&b""[..], b"flpg", &first[..11], b"flpg\0\0\0\0\0\0\0\x05"] {
            assert_eq!(receipts.answer(other), None);
        }
        assert_eq!(receipts.answer(&first), Some((3, vec![7])));
        assert_eq!(receipts.answer(&first), None);
        let second = receipts.question().expect("due");
        assert_eq!(receipts.answer(&second), Some((5, vec![7])));
        assert_eq!(receipts.question(), None);
    }
}
