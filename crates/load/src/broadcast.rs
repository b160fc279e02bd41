//! A broadcast: publishers send messages that all subscribers receive. Measures deliveries, latencies and losses.
//!
//! Subscribers only listen. Publishers have their own connections: WebSockets like the subscribers', or HTTP
//! connections that send one POST per message and wait for its response before the next; what they receive is not
//! counted. Publishing begins when every subscriber is subscribed or lost. `marker` identifies messages, `ledger`
//! records deliveries, and `publishers` decides when to send which message.

pub(crate) mod ledger;
mod publishers;

use crate::clock::{nanos, Nanos};
use crate::latencies::histogram;
use crate::marker::Marks;
use crate::options::{self, RealTime};
use crate::real_time::activity::{Activity, Sequel};
use crate::real_time::crowd::{Crowd, Group};
use crate::real_time::ending::Ending;
use crate::real_time::idle::protocol;
use crate::real_time::outbox::Outbox;
use crate::real_time::session::Protocol;
use crate::real_time::Found;
use hdrhistogram::Histogram;
use ledger::{Arrival, Ledger};
use publishers::Publishers;
use std::sync::atomic::AtomicBool;

/// After the last expected delivery, this much silence shows that nothing arrives twice.
const SILENCE: Nanos = 50_000_000;

/// Deliveries and failures of a run.
#[derive(Debug)]
pub(crate) struct Deliveries {
    pub(crate) ledger: Ledger,
    /// From sending (from being due, with `--rate`) to the first arrival.
    pub(crate) latencies: Histogram<u64>,
    /// Messages that were not published in this run.
    pub(crate) other: u64,
    /// Messages of this run that arrived truncated.
    pub(crate) truncated: u64,
    /// Messages that were sent; that were rejected with a status other than 2xx; that were never sent.
    pub(crate) published: u64,
    pub(crate) rejected: u64,
    pub(crate) unsent: u64,
    /// From the first message sent to the last one delivered.
    pub(crate) elapsed: Nanos,
    /// The run ended early because no more messages came.
    pub(crate) gave_up: bool,
    /// Subscribers that were there when publishing began.
    pub(crate) audience: u64,
}

impl Deliveries {
    pub(crate) fn expected(&self) -> u64 {
        self.published * self.audience
    }

    pub(crate) fn lost(&self) -> u64 {
        self.ledger
            .rows()
            .map(|row| self.published.saturating_sub(row.received))
            .sum()
    }

    /// Subscribers that received everything.
    pub(crate) fn complete(&self) -> usize {
        self.ledger.rows().filter(|row| row.received >= self.published).count()
    }

    /// Returns `true` if every message arrived at every subscriber, once, complete and in order.
    pub(crate) fn is_complete(&self) -> bool {
        let total = self.ledger.total();
        self.published > 0
            && self.rejected + self.unsent + self.truncated == 0
            && total.received == self.expected()
            && total.duplicated + total.out_of_order == 0
    }
}

/// A broadcast in progress.
struct Station {
    deliveries: Deliveries,
    publishers: Publishers,
    marks: Marks,
    subscribers: usize,
    size: usize,
    /// Deliveries that are still expected.
    outstanding: u64,
    /// Subscribers of the audience that are still connected.
    listening: u64,
    begun: bool,
    last_delivery: Nanos,
    /// Time at which a message of this run was last sent or received.
    last_sign: Nanos,
}

pub(crate) fn run(
    options: &RealTime,
    task: &options::Broadcast,
    stop: &AtomicBool,
) -> Result<Found<Deliveries>, String> {
    let (subscribers, publishers) = (options.connections, task.publishers);
    let listening = protocol(options.transport);
    let sending = match &task.publish {
        Some(url) => (Protocol::Http, url),
        None => (Protocol::WebSocket, &options.url),
    };
    let groups = [
        (listening, &options.url, subscribers),
        (sending.0, sending.1, publishers),
    ]
    .map(|(protocol, url, count)| Group { protocol, url, count });
    let mut crowd = Crowd::new(options, &groups, stop)?;
    let mut station = Station::new(options, task);
    crowd.gather(&mut station)?;
    station.begin(&crowd);
    let timeout = nanos(options.timeout);
    while !crowd.is_stopped() && !station.is_done(crowd.now, timeout) {
        let at_once = station.publish(&mut crowd)?;
        let next = station.publishers.next_due();
        crowd.wake_at(next.filter(|_| !at_once))?;
        let silence = (station.outstanding == 0).then(|| station.last_sign + SILENCE);
        let until = if at_once {
            crowd.now
        } else {
            silence.unwrap_or(Nanos::MAX)
        };
        crowd.turn(until, &mut station)?;
    }
    let deliveries = station.finish();
    Ok(Found {
        sockets: crowd.finish(0..subscribers),
        task: deliveries,
    })
}

impl Station {
    fn new(options: &RealTime, task: &options::Broadcast) -> Station {
        let marks = Marks::new();
        Station {
            deliveries: Deliveries {
                ledger: Ledger::new(options.connections, task.publishers),
                latencies: histogram(),
                other: 0,
                truncated: 0,
                published: 0,
                rejected: 0,
                unsent: 0,
                elapsed: 0,
                gave_up: false,
                audience: 0,
            },
            publishers: Publishers::new(options, task),
            marks,
            subscribers: options.connections,
            size: task.size,
            outstanding: 0,
            listening: 0,
            begun: false,
            last_delivery: 0,
            last_sign: 0,
        }
    }

    /// Begins to publish, once every subscriber is subscribed or lost.
    fn begin(&mut self, crowd: &Crowd<'_>) {
        for number in (0..self.subscribers).filter(|&number| crowd.is_live(number)) {
            self.deliveries.ledger.enrol(number);
            self.listening += 1;
        }
        self.deliveries.audience = self.listening;
        self.begun = true;
        self.last_sign = crowd.now;
        self.last_delivery = crowd.now;
        self.publishers.begin(crowd.now);
        for number in 0..self.publishers.count() {
            if !crowd.is_live(self.subscribers + number) {
                self.publishers.lose(number);
            }
        }
        self.outstanding = self.listening * self.publishers.planned();
    }

    /// Returns `true` if no more deliveries are expected, or none came for too long.
    fn is_done(&mut self, now: Nanos, timeout: Nanos) -> bool {
        if self.publishers.are_done() && self.outstanding == 0 {
            return now >= self.last_sign + SILENCE;
        }
        let hoped_for = self.publishers.next_due().unwrap_or(0).max(self.last_sign);
        self.deliveries.gave_up = now > hoped_for.saturating_add(timeout);
        self.deliveries.gave_up
    }

    /// Sends the due messages as far as the sockets take them; returns `true` if there is more to send at once.
    fn publish(&mut self, crowd: &mut Crowd<'_>) -> Result<bool, String> {
        let mut more = false;
        for number in 0..self.publishers.count() {
            let session = self.subscribers + number;
            if crowd.is_live(session) && crowd.outbox(session).is_empty() {
                let now = crowd.read_clock();
                if self.publishers.fill(number, &self.marks, crowd.outbox(session), now) {
                    self.last_sign = now;
                    crowd.flush(session, self)?;
                }
                let taken = crowd.is_live(session) && crowd.outbox(session).is_empty();
                more |= taken && self.publishers.is_due(number, now);
            }
        }
        Ok(more)
    }

    /// Some expected messages will not be sent, or were rejected.
    fn call_off(&mut self, messages: u64) {
        self.outstanding = self.outstanding.saturating_sub(messages * self.listening);
    }

    fn finish(mut self) -> Deliveries {
        let publishers = &self.publishers;
        self.deliveries.published = publishers.sent() - publishers.rejected();
        self.deliveries.rejected = publishers.rejected();
        self.deliveries.unsent = publishers.unsent();
        self.deliveries.elapsed = self.last_delivery.saturating_sub(publishers.first_sent());
        self.deliveries
    }
}

impl Activity for Station {
    fn message(&mut self, number: usize, _: bool, payload: &[u8], _: &mut Outbox, now: Nanos) -> Result<(), Ending> {
        if number >= self.subscribers {
            return Ok(());
        }
        let Some(mark) = self.marks.find(payload) else {
            self.deliveries.other += 1;
            return Ok(());
        };
        self.last_sign = now;
        if payload.len() < self.size {
            self.deliveries.truncated += 1;
            return Ok(());
        }
        if !self.publishers.has_sent(mark.publisher, mark.sequence) {
            self.deliveries.other += 1;
            return Ok(());
        }
        if self.deliveries.ledger.record(number, mark.publisher, mark.sequence) == Arrival::First {
            self.deliveries
                .latencies
                .saturating_record(now.saturating_sub(mark.sent));
            self.last_delivery = now;
            self.outstanding = self.outstanding.saturating_sub(1);
        }
        Ok(())
    }

    fn answered(&mut self, number: usize, status: u16, now: Nanos) -> Result<(), Ending> {
        self.last_sign = now;
        match self.publishers.answered(number - self.subscribers, status) {
            None => return Err(Ending::Malformed("a response without a request")),
            Some(true) => {}
            Some(false) => self.call_off(1),
        }
        Ok(())
    }

    fn ended(&mut self, number: usize, ending: Ending, now: Nanos) -> Sequel {
        if !self.begun {
            return Sequel::Lost;
        }
        self.last_sign = now;
        if let Some(publisher) = number.checked_sub(self.subscribers) {
            // A connection that closes between two requests is no loss (RFC 9112 §9.5).
            if ending == Ending::Ended && !self.publishers.is_waiting(publisher) {
                if self.publishers.reopen(publisher) {
                    return Sequel::Reopened;
                }
                if self.publishers.has_finished(publisher) {
                    return Sequel::Done;
                }
            }
            let unsent = self.publishers.lose(publisher);
            self.call_off(unsent);
        } else if self.deliveries.ledger.is_enrolled(number) {
            let received = self.deliveries.ledger.row(number).received;
            let expected = self.publishers.planned().saturating_sub(received);
            self.listening -= 1;
            self.outstanding = self.outstanding.saturating_sub(expected);
        }
        Sequel::Lost
    }
}
