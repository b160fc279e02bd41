//! Counts the events of a connection, and closes a connection that cannot continue.

use super::{Ending, Worker};
use crate::clock::Nanos;
use crate::exchange::{Event, Verdict};
use crate::failure::Failure;
use crate::limits::describe;
use crate::received::Trouble;
use rustix::io::Errno;

/// Pause after a refused connection, or a refused handshake.
const REFUSED_PAUSE: Nanos = 100_000_000;

impl Worker<'_> {
    /// Reads responses from `bytes`.
    pub(super) fn digest(&mut self, index: usize, bytes: &[u8]) {
        let connection = &mut self.connections[index];
        connection.heard_at = self.now;
        let verdict = connection.exchange.receive(bytes, &mut self.events);
        self.settle(index, verdict);
    }

    /// Counts the events of a connection, and closes it if it cannot continue.
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
                Event::Established { .. } | Event::Repeated { .. } | Event::GoAway { .. } => {}
            }
            self.tally.add(index, event, &self.plan.options.mix, self.now);
        }
        self.events = events;
    }

    /// The peer closed or broke the connection, which may end a response.
    pub(super) fn ended(&mut self, index: usize, why: Failure) {
        let connection = &mut self.connections[index];
        let why = if connection.is_broken() { Failure::Write } else { why };
        let verdict = connection.exchange.end(why, &mut self.events);
        self.settle(index, verdict);
    }

    /// Closes the connection and counts the failures.
    pub(super) fn fail(&mut self, index: usize, why: Failure) {
        let connection = &mut self.connections[index];
        connection.exchange.fail(why, &mut self.events);
        connection.close();
        self.count(index);
    }

    /// TLS failed, and so does the request.
    pub(super) fn insecure(&mut self, index: usize, trouble: Trouble) {
        self.fail(index, Failure::Tls);
        // A server that rejects a handshake will reject it again. A server that only closes the connection may be busy.
        let is_lasting = matches!(trouble, Trouble::Tls(_));
        let why = trouble.words();
        if is_lasting && self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(why.clone()));
        }
        self.tally.handshakes.failed(why);
        self.pause(index, REFUSED_PAUSE);
    }

    /// The server speaks another protocol, so the request fails.
    fn foreign(&mut self, index: usize, why: String) {
        self.fail(index, Failure::Malformed);
        if self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(why));
        }
        self.pause(index, REFUSED_PAUSE);
    }

    /// Connecting failed: tries the next address; after the last one, the request fails.
    pub(super) fn refused(&mut self, index: usize, error: Errno) {
        let connection = &mut self.connections[index];
        connection.address += 1;
        if connection.address < self.plan.addresses.len() {
            connection.close();
            return self.pause(index, 0);
        }
        connection.address = 0;
        if self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(describe(error)));
        }
        self.fail(index, Failure::Connect);
        self.pause(index, REFUSED_PAUSE);
    }

    pub(super) fn pause(&mut self, index: usize, pause: Nanos) {
        let retry_at = self.now + pause;
        self.connections[index].retry_at = retry_at;
        self.next_retry = self.next_retry.min(retry_at);
    }
}
