//! Echoes: each socket sends a message, waits for its echo, then sends the next. Every message is different, so that
//! the echo of another message is noticed.

use super::activity::{Activity, Sequel};
use super::crowd::{Crowd, Group};
use super::ending::Ending;
use super::outbox::Outbox;
use super::session::Protocol;
use super::Found;
use crate::clock::{nanos, Nanos, Started};
use crate::fairness::Served;
use crate::latencies::Latencies;
use crate::options::{Echo, RealTime};
use crate::pacing::Budget;
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// Echoes and failures of a run.
#[derive(Debug)]
pub(crate) struct Echoes {
    pub(crate) connections: Vec<Served>,
    pub(crate) latencies: Latencies,
    /// Messages without an echo when the run ended, and the longest time that one of them had waited.
    pub(crate) unanswered: u64,
    pub(crate) longest_wait: Nanos,
    /// Messages of the requested number that were not sent.
    pub(crate) unsent: u64,
    /// Time measured, without the warm-up.
    pub(crate) elapsed: Nanos,
    clients: Vec<Client>,
    budget: Budget,
    timeout: Nanos,
    binary: bool,
    size: usize,
    /// Buffer for building messages, to send and to compare.
    draft: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// Number of messages sent; also the number in the last one.
    sent: u64,
    waiting: Option<Started>,
}

pub(crate) fn run(options: &RealTime, echo: &Echo, stop: &AtomicBool) -> Result<Found<Echoes>, String> {
    let group = Group {
        protocol: Protocol::WebSocket,
        url: &options.url,
        count: options.connections,
    };
    let mut crowd = Crowd::new(options, &[group], stop)?;
    let mut echoes = Echoes::new(options, echo);
    crowd.gather(&mut echoes)?;
    let counted_from = crowd.now.saturating_add(nanos(echo.warmup));
    let end = echo
        .duration
        .map_or(Nanos::MAX, |duration| counted_from.saturating_add(nanos(duration)));
    echoes.budget = Budget::new(echo.requests, counted_from);
    for number in 0..options.connections {
        if crowd.is_live(number) {
            let now = crowd.now;
            echoes.send(number, crowd.outbox(number), now);
            crowd.flush(number, &mut echoes)?;
        }
    }
    while crowd.now < end && crowd.has_live() && !crowd.is_stopped() && !echoes.is_done() {
        crowd.turn(end, &mut echoes)?;
    }
    echoes.finish(crowd.now, counted_from);
    Ok(Found {
        sockets: crowd.finish(0..options.connections),
        task: echoes,
    })
}

impl Echoes {
    fn new(options: &RealTime, echo: &Echo) -> Echoes {
        Echoes {
            connections: vec![Served::default(); options.connections],
            latencies: Latencies::new(false),
            unanswered: 0,
            longest_wait: 0,
            unsent: 0,
            elapsed: 0,
            clients: vec![Client::default(); options.connections],
            budget: Budget::new(None, Nanos::MAX),
            timeout: nanos(options.timeout),
            binary: echo.binary,
            size: echo.size,
            draft: Vec::with_capacity(echo.size + 64),
        }
    }

    pub(crate) fn answered(&self) -> u64 {
        self.connections.iter().map(|served| served.answered).sum()
    }

    /// Returns `true` if all messages of a limited run are done.
    fn is_done(&self) -> bool {
        self.budget.is_spent() && self.clients.iter().all(|client| client.waiting.is_none())
    }

    fn send(&mut self, number: usize, outbox: &mut Outbox, now: Nanos) {
        let client = &mut self.clients[number];
        let Some(started) = self.budget.take(now) else {
            return;
        };
        client.waiting = Some(started);
        client.sent += 1;
        self.connections[number].asked += u64::from(started.counted);
        draft(&mut self.draft, self.size, self.binary, number, client.sent);
        outbox.message(self.binary, &self.draft);
    }

    fn finish(&mut self, now: Nanos, counted_from: Nanos) {
        for started in self.clients.iter().filter_map(|client| client.waiting) {
            if started.counted {
                self.unanswered += 1;
                self.longest_wait = self.longest_wait.max(self.latencies.unanswered(started.due, now));
            }
        }
        self.unsent = self.budget.left();
        self.elapsed = now.saturating_sub(counted_from);
    }
}

impl Activity for Echoes {
    fn message(
        &mut self,
        number: usize,
        binary: bool,
        payload: &[u8],
        outbox: &mut Outbox,
        now: Nanos,
    ) -> Result<(), Ending> {
        let client = &mut self.clients[number];
        draft(&mut self.draft, self.size, self.binary, number, client.sent);
        if binary != self.binary || payload != self.draft {
            return Err(Ending::WrongEcho);
        }
        // The right message, but for the second time.
        let started = client.waiting.take().ok_or(Ending::WrongEcho)?;
        if started.counted {
            self.latencies.answered(started, now);
            self.connections[number].answered += 1;
        }
        self.send(number, outbox, now);
        Ok(())
    }

    fn is_overdue(&self, number: usize, now: Nanos) -> bool {
        let waiting = self.clients[number].waiting;
        waiting.is_some_and(|started| started.sent.saturating_add(self.timeout) <= now)
    }

    fn ended(&mut self, number: usize, ending: Ending, now: Nanos) -> Sequel {
        if let Some(started) = self.clients[number].waiting.take() {
            if started.counted {
                self.connections[number].failed += 1;
                if ending == Ending::Timeout {
                    self.latencies.unanswered(started.due, now);
                }
            }
        }
        Sequel::Lost
    }
}

/// Builds a message of `size` bytes. Its number is at the end, as far as there is room.
fn draft(out: &mut Vec<u8>, size: usize, binary: bool, connection: usize, sent: u64) {
    out.clear();
    // Text is ASCII; binary messages are invalid UTF-8.
    out.resize(size, if binary { 0xff } else { b'.' });
    let _ = write!(out, " connection {connection} message {sent}");
    out.drain(..out.len() - size);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_size_asked_for_and_tell_which_they_are() {
        let made = |size, binary, sent| {
            let mut out = Vec::new();
            draft(&mut out, size, binary, 3, sent);
            out
        };
        assert_eq!(made(1, false, 12), b"2");
        assert_eq!(made(28, false, 12), b".... connection 3 message 12"[..28]);
        assert_eq!(made(64, true, 1).len(), 64);
        assert!(std::str::from_utf8(&made(64, true, 1)).is_err());
        assert_ne!(made(8, false, 1), made(8, false, 2));
    }
}
