//! What comes in on a connection is read, and what has happened on it is counted.

use super::Worker;
use crate::exchange::{Event, Verdict};
use crate::socket::{Received, Trouble};
use crate::tally::Failure;
use rustix::io;

impl Worker<'_> {
    pub(super) fn read(&mut self, index: usize) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let input = self.connections[index].read(&mut buffer);
        self.now = self.plan.clock.now();
        match input {
            Ok(Received::Bytes(bytes)) => {
                if self.now >= self.counted_from {
                    self.tally.bytes += bytes as u64;
                }
                self.digest(index, &buffer[..bytes]);
                if self.connections[index].has_ended() {
                    self.ended(index, Failure::Closed);
                }
            }
            Ok(Received::End) => self.ended(index, Failure::Closed),
            Ok(Received::Cut) => self.fail(index, Failure::Closed),
            Ok(Received::Nothing) => {}
            // In TLS 1.3 a server refuses a client's certificate behind the handshake.
            Err(trouble @ Trouble::Tls(_)) => self.insecure(index, trouble),
            Err(Trouble::System(_) | Trouble::Closed) => self.ended(index, Failure::Read),
        }
        self.buffer = buffer;
        self.proceed(index)
    }

    /// Reads answers out of `bytes`.
    pub(super) fn digest(&mut self, index: usize, bytes: &[u8]) {
        let connection = &mut self.connections[index];
        connection.heard_at = self.now;
        let verdict = connection.exchange.receive(bytes, &mut self.events);
        self.settle(index, verdict);
    }

    /// Counts what has happened on a connection, and closes it if it cannot go on.
    pub(super) fn settle(&mut self, index: usize, verdict: Verdict) {
        self.count(index);
        match verdict {
            Verdict::Open => {}
            Verdict::Close => self.connections[index].close(),
            Verdict::Unasked => {
                self.tally.unasked();
                self.connections[index].close();
            }
            Verdict::Foreign(why) => self.foreign(index, why),
        }
    }

    pub(super) fn count(&mut self, index: usize) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                Event::Answered { .. } => {
                    self.in_flight -= 1;
                    self.last_answer = self.now;
                }
                Event::Failed { .. } => self.in_flight -= 1,
                Event::Established { .. } | Event::GoAway { .. } => {}
            }
            self.tally.add(index, event, &self.plan.options.mix, self.now);
        }
        self.events = events;
    }

    /// The peer closed or broke the connection, which may be the end of an answer.
    fn ended(&mut self, index: usize, why: Failure) {
        let connection = &mut self.connections[index];
        let why = if connection.is_broken() { Failure::Write } else { why };
        let verdict = connection.exchange.end(why, &mut self.events);
        self.settle(index, verdict);
    }

    /// Closes the connection, at a cost.
    pub(super) fn fail(&mut self, index: usize, why: Failure) {
        let connection = &mut self.connections[index];
        connection.exchange.fail(why, &mut self.events);
        connection.close();
        self.count(index);
    }
}
