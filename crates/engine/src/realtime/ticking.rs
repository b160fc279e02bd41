//! Deadlines of a client: of its end, of an incomplete message, of a peer that takes nothing, and of silence.

use super::client::{Client, Protocol};
use super::encoding;
use super::ending::EndState;
use super::keep_alive::Silence;
use super::outbox::Outbox;
use super::unfinished::TOO_SLOW;
use super::Realtime;
use crate::clock::Millis;
use crate::sync::MutexGuard;
use fairlead_wire::websocket::Opcode;
use std::time::Duration;

impl Client {
    /// Handles passed deadlines; returns the time of the next call.
    pub(super) fn tick(&self, realtime: &Realtime, now: Millis) -> Millis {
        let mut next = self.look_after_message(realtime, now);
        let mut outbox = self.outbox.lock();
        if self.state() == EndState::Closed {
            return Millis::NEVER;
        }
        if let Some(deadline) = outbox.end_deadline(realtime.worker.config.write_rate(), now) {
            if deadline <= now {
                drop(outbox);
                self.end();
                return Millis::NEVER;
            }
            next = deadline;
        }
        if !outbox.frames.is_empty() {
            let due = outbox.meter.deadline(realtime.worker.config.write_rate());
            if due <= now {
                return self.offer_again(realtime, outbox, now);
            }
            next = next.min(due);
        }
        if let Some(closes_at) = self.departure.closes_at().filter(|_| self.is_open()) {
            if closes_at <= now {
                drop(outbox);
                match self.departure.is_handed_over() {
                    true => self.close_for_restart(),
                    false => self.announce_end(),
                }
                return next.min(now + Duration::from_secs(1));
            }
            next = next.min(closes_at);
        }
        match self.keep_alive.period().filter(|_| outbox.ending.is_none()) {
            None => next,
            Some(period) => next.min(self.look_after(outbox, period, now)),
        }
    }

    /// Ends the client if its message is overdue; returns the time of the next check.
    fn look_after_message(&self, realtime: &Realtime, now: Millis) -> Millis {
        let grace = realtime.worker.config.body_timeout;
        match self.message_due.get(grace) {
            None => Millis::NEVER,
            Some(_) if self.backpressure.is_paused() => now + grace,
            Some(due) if due <= now && !self.drop_message(TOO_SLOW) => now + Duration::from_millis(1),
            Some(due) => due,
        }
    }

    /// Offers the client more bytes, to check if it takes anything at all, because the poller reports a socket as
    /// writable only when a third of its buffer is free.
    fn offer_again(&self, realtime: &Realtime, outbox: MutexGuard<'_, Outbox>, now: Millis) -> Millis {
        let before = outbox.frames.bytes();
        self.flush_locked(outbox);
        let outbox = self.outbox.lock();
        let due = outbox.meter.deadline(realtime.worker.config.write_rate());
        let stands_still = outbox.frames.bytes() >= before;
        if self.state() != EndState::Closed && !outbox.frames.is_empty() && (stands_still || due <= now) {
            let seconds = realtime.worker.write_timeout().as_secs();
            let how_much = if stands_still { "nothing" } else { "too little" };
            self.abort(outbox, &format!("it has taken {how_much} for {seconds} s"));
            return Millis::NEVER;
        }
        due.max(now + Duration::from_millis(1))
    }

    /// Sends a ping or a comment to keep a silent client alive; returns the time of the next check.
    fn look_after(&self, outbox: MutexGuard<'_, Outbox>, period: Duration, now: Millis) -> Millis {
        match self.protocol() {
            Protocol::Stream { .. } => Millis::NEVER,
            Protocol::EventStream { chunked } => {
                let due = outbox.moved + period;
                if due > now || !outbox.frames.is_empty() {
                    return due.max(now + Duration::from_millis(1));
                }
                self.send_quietly(outbox, encoding::comment(chunked));
                now + period
            }
            // The peer may have sent something: the server does not read.
            Protocol::WebSocket if self.backpressure.is_paused() => now + period,
            Protocol::WebSocket => match self.keep_alive.look(period, now) {
                Silence::Until(due) => due,
                Silence::Ping(due) => {
                    self.send_quietly(outbox, encoding::plain(Opcode::Ping, b""));
                    due
                }
                Silence::TooLong => {
                    self.abort(outbox, "it does not answer pings");
                    Millis::NEVER
                }
            },
        }
    }
}
