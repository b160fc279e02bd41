//! One thread of the run: an event loop over its share of the connections.
//!
//! A connection that fails is closed and opened again for its next request: at once, unless connecting itself failed.
//! Its exchange decides what a failure costs: see `exchange`.

mod driving;
mod settling;

use crate::clock::{nanos, Clock, Nanos};
use crate::connection::Connection;
use crate::draw::Draw;
use crate::exchange::{Event, Exchange};
use crate::failure::Failure;
use crate::goodput::Goodput;
use crate::http1::{self, Pipeline};
use crate::http2::{self, Streams};
use crate::options::{names, Options};
use crate::pacing::{Cursor, Pacing};
use crate::poller::Poller;
use crate::progress::Progress;
use crate::request::Wire;
use crate::tally::Tally;
use crate::tls::Tls;
use rustix::io;
use rustix::net::SocketAddrAny;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Limit for the bytes of one read. Larger responses take several rounds, so that other connections get their turn.
const READ_BYTES: usize = 64 * 1024;
/// Interval for checking timeouts, the progress line and requests to stop.
const TICK: Nanos = 100_000_000;

/// Data that every thread of a run uses.
pub(crate) struct Plan<'a> {
    pub(crate) options: &'a Options,
    pub(crate) addresses: &'a [SocketAddrAny],
    pub(crate) tls: Option<&'a Tls>,
    pub(crate) requests: &'a Requests,
    pub(crate) pacing: &'a Pacing,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) clock: Clock,
}

/// The requests of each kind.
pub(crate) enum Requests {
    Http1(Vec<Wire>),
    Http2(Vec<http2::Request>),
}

/// The way in which a thread ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time was over, or all requests were done.
    Complete,
    /// `stop` was called.
    Stopped,
    /// No more responses came in a run without a time limit.
    GaveUp,
    /// No connection could be opened; why.
    Unreachable(String),
}

pub(crate) struct Worker<'a> {
    plan: &'a Plan<'a>,
    poller: Poller,
    connections: Vec<Connection<'a>>,
    buffer: Box<[u8]>,
    tally: Tally,
    draw: Draw,
    /// The open loop's position in the schedule.
    cursor: Cursor,
    /// Time at which the poller wakes this thread for the next request in the schedule.
    alarm: Option<Nanos>,
    /// The time of the last wait or read.
    now: Nanos,
    counted_from: Nanos,
    end: Nanos,
    timeout: Nanos,
    tick: Nanos,
    next_tick: Nanos,
    /// Earliest time at which one of the pausing connections may be opened again.
    next_retry: Nanos,
    in_flight: usize,
    last_answer: Nanos,
    /// Responses and failures that the progress line has counted.
    published: (u64, u64),
    /// Events of a connection that have not been counted yet.
    events: Vec<Event>,
    ending: Option<Ending>,
}

impl<'a> Worker<'a> {
    /// `own` are the numbers of this thread's connections in the whole run.
    pub(crate) fn new(plan: &'a Plan<'a>, own: Range<usize>) -> io::Result<Worker<'a>> {
        let options = plan.options;
        let client = || plan.tls.map(Tls::client);
        let connection = |number| Connection::new(exchange(plan, number), number as u64, client());
        let counted_from = nanos(options.warmup);
        let timeout = nanos(options.timeout);
        let mut tally = Tally::new(
            own.clone().map(|number| options.carried(number)).collect(),
            options.http2.as_ref().map_or(0, Vec::len),
            options.rate.is_some(),
            names(&options.mix).len(),
        );
        tally.goodput = options.within.map(|limit| Goodput::new(nanos(limit)));
        Ok(Worker {
            poller: Poller::new()?,
            connections: own.clone().map(connection).collect(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            tally,
            draw: Draw::new(&options.mix, own.start as u64),
            cursor: Cursor::new(options.connections, own),
            alarm: None,
            now: plan.clock.now(),
            counted_from,
            end: options
                .duration
                .map_or(Nanos::MAX, |duration| counted_from.saturating_add(nanos(duration))),
            timeout,
            tick: TICK.min(timeout / 4).max(1_000_000),
            next_tick: 0,
            next_retry: Nanos::MAX,
            in_flight: 0,
            last_answer: counted_from,
            published: (0, 0),
            events: Vec::new(),
            ending: None,
            plan,
        })
    }

    /// Runs to the end; returns the measurements and the time of the end.
    pub(crate) fn run(mut self) -> io::Result<(Tally, Nanos, Ending)> {
        (0..self.connections.len()).try_for_each(|index| self.proceed(index))?;
        let ending = loop {
            if let Some(ending) = self.check() {
                break ending;
            }
            let ready = self.wait()?;
            self.now = self.plan.clock.now();
            for event in 0..ready {
                if let Some(ready) = self.poller.ready(event) {
                    self.handle(ready)?;
                }
            }
            self.run_timers()?;
        };
        self.now = self.plan.clock.now();
        self.count_leftovers();
        Ok((self.tally, self.now, ending))
    }

    fn check(&self) -> Option<Ending> {
        if self.ending.is_some() {
            return self.ending.clone();
        }
        if self.plan.stop.load(Ordering::Relaxed) {
            return Some(Ending::Stopped);
        }
        (self.now >= self.end || self.is_done()).then_some(Ending::Complete)
    }

    /// Returns `true` if all requests of a limited run are done.
    fn is_done(&self) -> bool {
        self.plan.options.requests.is_some()
            && self.in_flight == 0
            && match self.plan.pacing {
                Pacing::Closed(budget) => budget.is_spent(),
                Pacing::Rate(schedule) => {
                    !schedule.has(self.cursor.index()) && self.connections.iter().all(|one| !schedule.has(one.turn))
                }
            }
    }

    fn wait(&mut self) -> io::Result<usize> {
        if let Pacing::Rate(schedule) = self.plan.pacing {
            let next = self.cursor.index();
            let due = schedule.has(next).then(|| schedule.due(next));
            if due != self.alarm {
                self.poller
                    .set_alarm(due.map(|due| Duration::from_nanos(due.saturating_sub(self.now))))?;
                self.alarm = due;
            }
        }
        let until = self.next_tick.min(self.end).min(self.next_retry);
        self.poller.wait(Duration::from_nanos(until.saturating_sub(self.now)))
    }

    fn run_timers(&mut self) -> io::Result<()> {
        if let Pacing::Rate(schedule) = self.plan.pacing {
            while schedule.has(self.cursor.index()) && schedule.due(self.cursor.index()) <= self.now {
                let connection = self.cursor.connection();
                self.cursor.advance();
                self.proceed(connection)?;
            }
        }
        if self.now >= self.next_retry {
            self.next_retry = Nanos::MAX;
            for index in 0..self.connections.len() {
                if self.connections[index].is_closed() {
                    self.proceed(index)?;
                }
            }
        }
        if self.now >= self.next_tick {
            self.next_tick = self.now + self.tick;
            self.fail_overdue()?;
            self.published = self
                .plan
                .progress
                .publish(self.published, (self.tally.answered(), self.tally.failed()));
            self.plan.progress.print(self.now);
            // A server that has sent no response for longer than a request may take is not expected to send any more.
            if self.end == Nanos::MAX && self.now > self.last_answer.saturating_add(self.timeout + 1_000_000_000) {
                self.ending = Some(Ending::GaveUp);
            }
        }
        Ok(())
    }

    fn fail_overdue(&mut self) -> io::Result<()> {
        let Some(before) = self.now.checked_sub(self.timeout) else {
            return Ok(());
        };
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            let Some(oldest) = connection.exchange.oldest().filter(|oldest| oldest.sent <= before) else {
                continue;
            };
            let why = match (connection.is_open(), connection.is_securing()) {
                (true, _) => Failure::Timeout,
                (_, true) => Failure::Tls,
                _ => Failure::Connect,
            };
            let silent = connection.heard_at <= oldest.sent;
            let over = connection.exchange.expire(before, silent, why, &mut self.events);
            if why == Failure::Tls {
                self.tally.handshakes.failed("the handshake timed out".into());
            }
            if over {
                connection.close();
            }
            self.count(index);
            self.proceed(index)?;
        }
        Ok(())
    }

    /// Counts the requests that were in progress or due when the run ended.
    fn count_leftovers(&mut self) {
        for connection in &self.connections {
            for started in connection.exchange.unanswered() {
                if started.counted {
                    self.tally.unanswered(started.due, self.now);
                }
            }
            let Pacing::Rate(schedule) = self.plan.pacing else {
                continue;
            };
            let mut index = connection.turn;
            while schedule.has(index) && schedule.due(index) < self.now {
                if schedule.counts(index) {
                    self.tally.unsent(schedule.due(index), self.now);
                }
                index = schedule.next(index);
            }
        }
    }
}

/// Creates the exchange of the connection with this number.
fn exchange<'a>(plan: &Plan<'a>, number: usize) -> Box<dyn Exchange + 'a> {
    let options = plan.options;
    match plan.requests {
        Requests::Http1(wires) => Box::new(Pipeline::new(http1::Manner {
            method: &options.method,
            pipeline: options.pipeline,
            keep_alive: options.keep_alive,
            wires,
        })),
        Requests::Http2(requests) => Box::new(Streams::new(requests, options.carried(number).streams)),
    }
}
