//! Incomplete messages: their memory, their minimum rate, and the choice of the message that gives way when all
//! together take too much memory. Approximately: the message with the largest product of size and age, among the
//! messages of the address with the largest such product.

use super::client::Client;
use super::Realtime;
use crate::clock::{AtomicMillis, Millis};
use crate::limits::budget::{Budget, Kind, Share};
use crate::limits::meter::Meter;
use crate::limits::request_totals::Taken;
use crate::transport::poller::Key;
use fairlead_wire::websocket::Failure;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

/// The failure of a peer with a message that takes memory that others need.
pub(super) const NO_MEMORY: Failure = Failure {
    code: 1013,
    reason: "no memory for such a large message",
};

/// The failure of a peer with a message that does not grow, or too slowly.
pub(super) const TOO_SLOW: Failure = Failure {
    code: 1008,
    reason: "a message arrives too slowly",
};

/// The incomplete message of a client. Small messages are not counted, and have no deadline.
pub(super) struct Unfinished {
    /// Key of the client.
    key: Key,
    /// Counts its memory.
    taken: Taken,
    /// Its rank among the messages of all clients, once it takes memory.
    standing: Option<Share>,
    /// Measures how fast it grows.
    meter: Meter,
}

/// The progress of an incomplete message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Bytes of it that are kept.
    pub(super) held: usize,
    /// Bytes that have arrived.
    pub(super) more: usize,
    /// The messages before it are complete.
    pub(super) is_new: bool,
}

/// The deadline of an incomplete message. Threads that have not locked the reader may use it.
pub(super) struct MessageDue {
    /// [`Millis::NEVER`] if there is no message, or a small one.
    due: AtomicMillis,
    /// The time when reading was last resumed: a pause is not the peer's fault.
    resumed: AtomicMillis,
}

impl Unfinished {
    pub(super) fn new(key: Key, budget: Option<Arc<Budget>>) -> Unfinished {
        Unfinished {
            key,
            taken: Taken::of_message(budget),
            standing: None,
            meter: Meter::begin(Millis::now()),
        }
    }

    /// Gives its memory back. No message follows.
    pub(super) fn forget(&mut self) {
        self.taken = Taken::default();
        self.standing = None;
    }

    /// Returns true if it takes memory that others could use.
    pub(super) fn is_counted(&self) -> bool {
        self.standing.is_some()
    }

    /// Counts it, in the budget of `client` when it begins to take memory, and moves its deadline. Returns false if there
    /// is no memory for it.
    pub(super) fn keep(&mut self, growth: Growth, client: &Client, realtime: &Realtime, now: Millis) -> bool {
        let due = &client.message_due;
        if growth.is_new {
            self.standing = None;
        }
        if !self.take_memory(growth.held, realtime) {
            return false;
        }
        if !self.taken.has_memory() {
            self.standing = None;
            due.clear();
            return true;
        }
        let rate = realtime.worker.config.body_rate();
        if let Some(share) = &mut self.standing {
            share.set(growth.held as u64);
            self.meter.excuse_until(due.resumed.load(Relaxed));
            self.meter.moved(growth.more as u64, now, rate);
        } else {
            self.standing = Some(client.budget(realtime).count(Kind::Messages, growth.held as u64));
            self.meter = Meter::begin(now);
        }
        let deadline = self.meter.deadline(rate);
        due.due.store(deadline, Relaxed);
        realtime.expect(client, deadline);
        true
    }

    /// Takes memory of the total; if that is used up, from messages that have held more for longer.
    fn take_memory(&mut self, held: usize, realtime: &Realtime) -> bool {
        let totals = &realtime.worker.config.request_totals;
        loop {
            if self.taken.memory(totals, held) {
                return true;
            }
            let is_first = || realtime.budgets.is_first_message(self.key);
            if self.taken.is_beyond_budget(held) || is_first() || !realtime.make_room(Kind::Messages) {
                return false;
            }
        }
    }
}

impl MessageDue {
    /// Creates the deadline for no message.
    pub(super) fn new(now: Millis) -> MessageDue {
        MessageDue {
            due: AtomicMillis::new(Millis::NEVER),
            resumed: AtomicMillis::new(now),
        }
    }

    pub(super) fn clear(&self) {
        self.due.store(Millis::NEVER, Relaxed);
    }

    /// Notes the end of a pause.
    pub(super) fn resume(&self, now: Millis) {
        self.resumed.store(now, Relaxed);
    }

    /// The deadline, but not within `grace` after a pause; `None` if there is none.
    pub(super) fn get(&self, grace: Duration) -> Option<Millis> {
        match self.due.load(Relaxed) {
            Millis::NEVER => None,
            due => Some(due.max(self.resumed.load(Relaxed) + grace)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_grace_after_a_pause() {
        let (now, grace) = (Millis::now(), Duration::from_secs(10));
        let due = MessageDue::new(now);
        assert_eq!(due.get(grace), None);
        due.due.store(now + Duration::from_secs(15), Relaxed);
        assert_eq!(due.get(grace), Some(now + Duration::from_secs(15)));
        due.resume(now + Duration::from_secs(7));
        assert_eq!(due.get(grace), Some(now + Duration::from_secs(17)));
        due.clear();
        assert_eq!(due.get(grace), None);
    }
}
