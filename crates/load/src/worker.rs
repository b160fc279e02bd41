//! One thread of the run: an event loop over its share of the connections.
//!
//! A connection that fails is closed, and the next request that may be sent opens it again: at once, except where
//! connecting itself failed. What that costs is up to its exchange: see `exchange`.

mod driving;
mod settling;

use crate::clock::{nanos, Clock, Nanos};
use crate::connection::Connection;
use crate::draw::Draw;
use crate::exchange::{Event, Exchange};
use crate::failure::Failure;
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

/// Bytes read at once. Larger answers take several rounds, so that other connections get their turn.
const READ_BYTES: usize = 64 * 1024;
/// How often time-outs, the progress line and requests to stop are looked at.
const TICK: Nanos = 100_000_000;

/// What every thread of a run works from.
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

/// What is sent for each kind of request.
pub(crate) enum Requests {
    Http1(Vec<Wire>),
    Http2(Vec<http2::Request>),
}

/// How a thread ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time was over or the requests were used up.
    Complete,
    /// `stop` was called.
    Stopped,
    /// A run without time limit in which nothing was answered any more.
    GaveUp,
    /// Nothing could be connected to; why.
    Unreachable(String),
}

pub(crate) struct Worker<'a> {
    plan: &'a Plan<'a>,
    poller: Poller,
    connections: Vec<Connection<'a>>,
    buffer: Box<[u8]>,
    tally: Tally,
    draw: Draw,
    /// The open loop's way through the schedule.
    cursor: Cursor,
    /// When the poller will wake us for the next request in the schedule.
    alarm: Option<Nanos>,
    /// The time of the last wait or read.
    now: Nanos,
    counted_from: Nanos,
    end: Nanos,
    timeout: Nanos,
    tick: Nanos,
    next_tick: Nanos,
    /// When the first of the connections that are pausing may be opened again.
    next_retry: Nanos,
    in_flight: usize,
    last_answer: Nanos,
    /// Answers and failures that the progress line knows of.
    published: (u64, u64),
    /// What happened on a connection, until it is counted.
    events: Vec<Event>,
    ending: Option<Ending>,
}

impl<'a> Worker<'a> {
    /// `own` are the connections of this thread, counted over the whole run.
    pub(crate) fn new(plan: &'a Plan<'a>, own: Range<usize>) -> io::Result<Worker<'a>> {
        let options = plan.options;
        let client = || plan.tls.map(Tls::client);
        let connection = |number| Connection::new(exchange(plan, number), number as u64, client());
        let counted_from = nanos(options.warmup);
        let timeout = nanos(options.timeout);
        Ok(Worker {
            poller: Poller::new()?,
            connections: own.clone().map(connection).collect(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            tally: Tally::new(
                own.clone().map(|number| options.carried(number)).collect(),
                options.http2.as_ref().map_or(0, Vec::len),
                options.rate.is_some(),
                names(&options.mix).len(),
            ),
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

    /// Runs to the end; returns what was measured and the time it ended.
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

    /// Whether a limited number of requests has been dealt with.
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
            // Nothing can be expected any more of a server that has answered nobody for longer than a request may take.
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
                self.tally.handshakes.failed("no end of the handshake in time".into());
            }
            if over {
                connection.close();
            }
            self.count(index);
            self.proceed(index)?;
        }
        Ok(())
    }

    /// Counts what was under way or due when the run ended.
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

/// What the connection of a number is to carry.
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
