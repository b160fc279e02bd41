//! Asks a client for a receipt of the messages for its pages: a ping behind the messages, and its pong is the receipt (RFC
//! 6455 §5.5.3).

use crate::realtime::client::Client;
use crate::realtime::encoding;
use crate::realtime::Realtime;
use crate::sync::{AtomicBool, Mutex, Ordering::Relaxed};
use fairlead_wire::websocket::Opcode;
use std::collections::VecDeque;

/// Questions on their way at a time. With only one, a client would get the messages of a round trip again after a reconnect.
const MOST_QUESTIONS: u64 = 8;

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
    /// The number of the last question.
    question: u64,
    /// The oldest question first.
    on_their_way: VecDeque<Asked>,
}

/// A page, with the offset of its newest message, and of the newest one in front of a question.
struct Page {
    number: u64,
    sent: u64,
    asked: u64,
}

/// The part of a question that is about one page.
struct Asked {
    question: u64,
    page: u64,
    offset: u64,
}

/// [`Receipts`] of a client that migrates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::realtime) struct SavedReceipts {
    /// The number, the newest offset, and the newest one in front of a question.
    pub(in crate::realtime) pages: Vec<[u64; 3]>,
    /// The oldest question first.
    pub(in crate::realtime) questions: Vec<SavedQuestion>,
    pub(in crate::realtime) last_question: u64,
}

/// A question that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::realtime) struct SavedQuestion {
    pub(in crate::realtime) question: u64,
    pub(in crate::realtime) page: u64,
    pub(in crate::realtime) offset: u64,
}

impl Receipts {
    /// The receipts of another process: [`Receipts::save`].
    pub(in crate::realtime) fn restore(&self, saved: SavedReceipts) {
        let SavedReceipts {
            pages,
            questions,
            last_question,
        } = saved;
        let pages = pages
            .into_iter()
            .map(|[number, sent, asked]| Page { number, sent, asked });
        let questions = questions.into_iter().map(|saved| Asked {
            question: saved.question,
            page: saved.page,
            offset: saved.offset,
        });
        *self.state.lock() = State {
            pages: pages.collect(),
            question: last_question,
            on_their_way: questions.collect(),
        };
        self.is_due.store(true, Relaxed);
    }

    /// Its state, for another process.
    pub(in crate::realtime) fn save(&self) -> SavedReceipts {
        let state = self.state.lock();
        let questions = state.on_their_way.iter().map(|asked| SavedQuestion {
            question: asked.question,
            page: asked.page,
            offset: asked.offset,
        });
        SavedReceipts {
            pages: state
                .pages
                .iter()
                .map(|page| [page.number, page.sent, page.asked])
                .collect(),
            questions: questions.collect(),
            last_question: state.question,
        }
    }

    /// Notes a message for a page.
    pub(super) fn sent(&self, page: u64, offset: u64) {
        let mut state = self.state.lock();
        match state.pages.iter_mut().find(|known| known.number == page) {
            Some(page) => page.sent = page.sent.max(offset),
            None => state.pages.push(Page {
                number: page,
                sent: offset,
                asked: 0,
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

    /// The ping that is due. To be called with the outbox locked.
    pub(super) fn ping(&self) -> Option<Vec<u8>> {
        Some(encoding::plain(Opcode::Ping, &self.question()?))
    }

    /// The payload of a ping that is due. To be called with the outbox locked.
    fn question(&self) -> Option<[u8; 12]> {
        let mut state = self.state.lock();
        let State {
            pages,
            question,
            on_their_way,
        } = &mut *state;
        let oldest = on_their_way.front().map_or(*question + 1, |asked| asked.question);
        if *question + 1 - oldest >= MOST_QUESTIONS || pages.iter().all(|page| page.sent == page.asked) {
            return None;
        }
        self.is_due.store(false, Relaxed);
        *question += 1;
        for page in pages.iter_mut().filter(|page| page.sent > page.asked) {
            page.asked = page.sent;
            on_their_way.push_back(Asked {
                question: *question,
                page: page.number,
                offset: page.sent,
            });
        }
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(MARK);
        payload[4..].copy_from_slice(&question.to_be_bytes());
        Some(payload)
    }

    /// The pages that a pong is a receipt for, each with the offset; `None` if it is another pong. A client may answer the
    /// newest of several pings only.
    fn answer(&self, payload: &[u8]) -> Option<Vec<(u64, u64)>> {
        let number = payload.strip_prefix(MARK)?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        let mut state = self.state.lock();
        let count = state
            .on_their_way
            .iter()
            .take_while(|asked| asked.question <= number)
            .count();
        if number > state.question || count == 0 {
            return None;
        }
        self.is_due.store(true, Relaxed);
        Some(
            state
                .on_their_way
                .drain(..count)
                .map(|asked| (asked.page, asked.offset))
                .collect(),
        )
    }
}

impl Client {
    /// Sends the ping that asks for a receipt, if it is due.
    pub(super) fn ask_for_receipt(&self) {
        if !self.receipts.is_due() {
            return;
        }
        let outbox = self.outbox.lock();
        if let Some(ping) = self.receipts.ping().filter(|_| self.is_open()) {
            self.send_quietly(outbox, ping);
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
    fn a_question_is_behind_new_messages_and_only_its_answer_counts() {
        let receipts = Receipts::default();
        assert_eq!(receipts.question(), None);
        receipts.sent(7, 3);
        let first = receipts.question().expect("due");
        assert_eq!(receipts.question(), None);
        receipts.sent(7, 5);
        let second = receipts.question().expect("due");
        for other in [&b""[..], b"flpg", &first[..11], b"flpg\0\0\0\0\0\0\0\x05"] {
            assert_eq!(receipts.answer(other), None);
        }
        assert_eq!(receipts.answer(&first), Some(vec![(7, 3)]));
        assert_eq!(receipts.answer(&first), None);
        assert_eq!(receipts.answer(&second), Some(vec![(7, 5)]));
        assert_eq!(receipts.question(), None);
    }

    #[test]
    fn an_answer_counts_for_earlier_questions_too() {
        let receipts = Receipts::default();
        receipts.sent(1, 100);
        receipts.question().expect("due");
        receipts.sent(2, 110);
        let second = receipts.question().expect("due");
        receipts.sent(1, 120);
        let third = receipts.question().expect("due");
        assert_eq!(receipts.answer(&second), Some(vec![(1, 100), (2, 110)]));
        receipts.forget(2);
        assert_eq!(receipts.answer(&third), Some(vec![(1, 120)]));
    }

    #[test]
    fn a_client_that_does_not_answer_is_asked_a_few_times_only() {
        let receipts = Receipts::default();
        let questions = (1..100).filter_map(|offset| {
            receipts.sent(1, offset);
            receipts.question()
        });
        let questions: Vec<_> = questions.collect();
        assert_eq!(questions.len() as u64, MOST_QUESTIONS);
        assert_eq!(receipts.answer(&questions[0]), Some(vec![(1, 1)]));
        let next = receipts.question().expect("there is room for one");
        assert_eq!(receipts.question(), None);
        assert_eq!(
            receipts.answer(&next).and_then(|pages| pages.last().copied()),
            Some((1, 99))
        );
    }
}
