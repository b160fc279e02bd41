//! Incomplete messages: the memory that they take, how fast they have to grow, and which one gives way when they together
//! take too much: of the address that has the largest product of size and age, the one that has it, about.

use super::client::{Client, Protocol};
use super::inbox::LastWord;
use super::reader::Reader;
use super::Realtime;
use crate::clock::Millis;
use crate::limits::budget::Kind;
use crate::limits::meter::Meter;
use fairlead_wire::websocket::Failure;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The failure of a peer whose message takes memory that others need.
pub(super) const NO_MEMORY: Failure = Failure {
    code: 1013,
    reason: "no memory for a message as large",
};

/// The failure of a peer whose message does not grow, or too slowly.
const TOO_SLOW: Failure = Failure {
    code: 1008,
    reason: "a message arrives too slowly",
};

impl Client {
    /// Counts `held` bytes of an incomplete message that has grown by `more`; `is_new`: earlier ones are complete. False if
    /// there is no memory for it. Small ones are not counted, and may take as long as they like.
    pub(super) fn keep_unfinished(
        &self,
        reader: &mut Reader,
        held: usize,
        (more, is_new): (usize, bool),
        realtime: &Realtime,
        now: Millis,
    ) -> bool {
        if is_new {
            reader.standing = None;
        }
        if !self.take_memory(reader, held, realtime) {
            return false;
        }
        if !reader.taken.has_memory() {
            reader.standing = None;
            self.message_due.store(Millis::NEVER, Relaxed);
            return true;
        }
        let rate = realtime.worker.config.body_rate();
        if let Some(share) = &mut reader.standing {
            share.set(held as u64);
            reader.meter.excuse_until(self.resumed.load(Relaxed));
            reader.meter.moved(more as u64, now, rate);
        } else {
            reader.standing = Some(self.budget(realtime).count(Kind::Messages, held as u64));
            reader.meter = Meter::begin(now);
        }
        let due = reader.meter.deadline(rate);
        self.message_due.store(due, Relaxed);
        realtime.expect(due);
        true
    }

    /// Takes memory of the total; if that is used up, from messages that have had more for longer.
    fn take_memory(&self, reader: &mut Reader, held: usize, realtime: &Realtime) -> bool {
        let totals = &realtime.worker.config.request_totals;
        loop {
            if reader.taken.memory(totals, held) {
                return true;
            }
            let is_first = || realtime.budgets.is_first_message(self.key);
            if reader.taken.is_beyond_budget(held) || is_first() || !realtime.make_room(Kind::Messages) {
                return false;
            }
        }
    }

    /// Ends the client if its message is overdue; returns when to look again.
    pub(super) fn look_after_message(&self, realtime: &Realtime, now: Millis) -> Millis {
        let due = self.message_due.load(Relaxed);
        if self.protocol != Protocol::WebSocket || due == Millis::NEVER {
            return Millis::NEVER;
        }
        let grace = realtime.worker.config.body_timeout;
        if self.flow.is_paused() {
            return now + grace;
        }
        let due = due.max(self.resumed.load(Relaxed) + grace);
        if due <= now && !self.drop_message(TOO_SLOW) {
            return now + Duration::from_millis(1);
        }
        due
    }

    /// Gives the memory of its incomplete message back, and ends the client. False if it has none, or is being read.
    pub(crate) fn give_message_up(&self) -> bool {
        self.drop_message(NO_MEMORY)
    }

    /// The reader of another client may be locked by this thread, so this must not wait for one.
    fn drop_message(&self, failure: Failure) -> bool {
        let Some(mut reader) = self.reader.try_lock() else {
            return false;
        };
        if reader.standing.is_none() {
            return false;
        }
        reader.forget_message();
        reader.is_done = true;
        self.message_due.store(Millis::NEVER, Relaxed);
        drop(reader);
        self.receive_last(LastWord::Failure(failure));
        true
    }
}
