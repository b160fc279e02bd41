//! Asks a client for a receipt of the messages for its pages: a ping behind the messages, and its pong is the receipt (RFC
//! 6455 §5.5.3). One ping is on its way at a time.

use crate::realtime::client::Client;
use crate::realtime::encoding;
use crate::realtime::Realtime;
use crate::sync::{AtomicBool, Mutex, Ordering::Relaxed};
use fairlead_wire::websocket::Opcode;

/// In front of the number of a question in a ping.
const MARK: &[u8; 4] = b"flpg";

/// The pages of one client.
#[derive(Default)]
pub(in crate::realtime) struct Receipts {
    /// True if there may be a question to ask.
    is_due: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: Vec<Page>,
    /// The number of the last question, and true if it has no answer yet.
    question: u64,
    waits: bool,
}

/// A page, with the offset of its newest message: sent, in front of the question on its way, and received.
struct Page {
    number: u64,
    sent: u64,
    asked: u64,
    received: u64,
}

impl Receipts {
    /// Notes a message for a page.
    pub(super) fn sent(&self, page: u64, offset: u64) {
        let mut state = self.state.lock();
        match state.pages.iter_mut().find(|known| known.number == page) {
            Some(page) => page.sent = page.sent.max(offset),
            None => state.pages.push(Page {
                number: page,
                sent: offset,
                asked: 0,
                received: 0,
            }),
        }
        self.is_due.store(true, Relaxed);
    }

    /// Forgets a page. Its stream has ended.
    pub(super) fn forget(&self, page: u64) {
        self.state.lock().pages.retain(|known| known.number != page);
    }

    /// Returns false if no ping can be due.
    fn is_due(&self) -> bool {
        self.is_due.load(Relaxed)
    }

    /// The payload of a ping that is due. To be called with the outbox locked.
    fn question(&self) -> Option<[u8; 12]> {
        let mut state = self.state.lock();
        if state.waits || !state.pages.iter().any(|page| page.sent > page.received) {
            return None;
        }
        self.is_due.store(false, Relaxed);
        state.pages.iter_mut().for_each(|page| page.asked = page.sent);
        state.waits = true;
        state.question += 1;
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(MARK);
        payload[4..].copy_from_slice(&state.question.to_be_bytes());
        Some(payload)
    }

    /// The pages that a pong is a receipt for, each with the offset; `None` if it is another pong.
    fn answer(&self, payload: &[u8]) -> Option<Vec<(u64, u64)>> {
        let number = payload.strip_prefix(MARK)?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        let mut state = self.state.lock();
        if !state.waits || number != state.question {
            return None;
        }
        state.waits = false;
        let mut received = Vec::new();
        for page in state.pages.iter_mut().filter(|page| page.asked > page.received) {
            page.received = page.asked;
            received.push((page.number, page.received));
        }
        self.is_due.store(true, Relaxed);
        Some(received)
    }
}

impl Client {
    /// Sends the ping that asks for a receipt, if it is due.
    pub(super) fn ask_for_receipt(&self) {
        if !self.receipts.is_due() {
            return;
        }
        let outbox = self.outbox.lock();
        if let Some(question) = self.receipts.question().filter(|_| self.is_open()) {
            self.send_quietly(outbox, encoding::plain(Opcode::Ping, &question));
        }
    }

    /// Takes a receipt, and asks for the next one. Returns false if the pong is none.
    pub(in crate::realtime) fn hear_receipt(&self, pong: &[u8], realtime: &Realtime) -> bool {
        let Some(received) = self.receipts.answer(pong) else {
            return false;
        };
        if let Some(history) = realtime.hub.history() {
            received
                .into_iter()
                .for_each(|(page, offset)| history.received(page, offset));
        }
        self.ask_for_receipt();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_is_on_its_way_and_only_its_answer_counts() {
        let receipts = Receipts::default();
        assert_eq!(receipts.question(), None);
        receipts.sent(7, 3);
        let first = receipts.question().expect("due");
        receipts.sent(7, 5);
        assert_eq!(receipts.question(), None);
        for other in [&b""[..], b"flpg", &first[..11], b"flpg\0\0\0\0\0\0\0\x05"] {
            assert_eq!(receipts.answer(other), None);
        }
        assert_eq!(receipts.answer(&first), Some(vec![(7, 3)]));
        assert_eq!(receipts.answer(&first), None);
        let second = receipts.question().expect("due");
        assert_eq!(receipts.answer(&second), Some(vec![(7, 5)]));
        assert_eq!(receipts.question(), None);
    }

    #[test]
    fn the_receipt_of_a_page_says_nothing_about_messages_of_another_page_that_were_sent_later() {
        let receipts = Receipts::default();
        receipts.sent(1, 100);
        let first = receipts.question().expect("due");
        receipts.sent(2, 10);
        assert_eq!(receipts.answer(&first), Some(vec![(1, 100)]));
        let second = receipts.question().expect("page 2 waits for its own");
        receipts.forget(1);
        assert_eq!(receipts.answer(&second), Some(vec![(2, 10)]));
    }
}
