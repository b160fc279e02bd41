//! One thread of the run: an event loop over its share of the connections.
//!
//! What a failure costs: the request at the head of the connection. The connection is closed, and the next request
//! that may be sent opens it again: at once, except where connecting itself failed.

use crate::connection::{Connection, Input};
use crate::draw::Draw;
use crate::options::{names, Options};
use crate::pacing::{nanos, Clock, Cursor, Nanos, Pacing};
use crate::poller::{Poller, Ready};
use crate::progress::Progress;
use crate::request::Wire;
use crate::response::Answer;
use crate::tally::{Failure, Tally};
use rustix::io::{self, Errno};
use rustix::net::SocketAddrAny;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes read at once. Larger answers take several rounds, so that other connections get their turn.
const READ_BYTES: usize = 64 * 1024;
/// How often time-outs, the progress line and requests to stop are looked at.
const TICK: Nanos = 100_000_000;
/// Pause after a refused connection.
const REFUSED_PAUSE: Nanos = 100_000_000;
/// Pause when the queue of a unix socket is full, which the kernel reports at once instead of making us wait.
const BACKLOG_PAUSE: Nanos = 1_000_000;

/// What every thread of a run works from.
pub(crate) struct Plan<'a> {
    pub(crate) options: &'a Options,
    pub(crate) addresses: &'a [SocketAddrAny],
    pub(crate) wires: &'a [Wire],
    pub(crate) pacing: &'a Pacing,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) clock: Clock,
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time was over or the requests were used up.
    Complete,
    /// `stop` was called.
    Stopped,
    /// A run without time limit in which nothing was answered any more.
    GaveUp,
    /// Nothing could be connected to.
    Unreachable(Errno),
}

pub(crate) struct Worker<'a> {
    plan: &'a Plan<'a>,
    poller: Poller,
    connections: Vec<Connection>,
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
    ending: Option<Ending>,
}

impl<'a> Worker<'a> {
    /// `own` are the connections of this thread, counted over the whole run.
    pub(crate) fn new(plan: &'a Plan<'a>, own: Range<usize>) -> io::Result<Worker<'a>> {
        let options = plan.options;
        let connection = |number| Connection::new(&options.method, options.pipeline, number as u64);
        let counted_from = nanos(options.warmup);
        let timeout = nanos(options.timeout);
        Ok(Worker {
            poller: Poller::new()?,
            connections: own.clone().map(connection).collect(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            tally: Tally::new(own.len(), options.rate.is_some(), names(&options.mix).len()),
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
            return self.ending;
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
        for index in 0..self.connections.len() {
            let mut failed = false;
            while self.is_overdue(index) {
                let opened = self.connections[index].is_open();
                self.fail(index, if opened { Failure::Timeout } else { Failure::Connect });
                failed = true;
            }
            if failed {
                self.proceed(index)?;
            }
        }
        Ok(())
    }

    fn is_overdue(&self, index: usize) -> bool {
        let oldest = self.connections[index].waiting.front();
        oldest.is_some_and(|oldest| oldest.sent.saturating_add(self.timeout) <= self.now)
    }

    /// Takes up the requests that `index` may send now and writes them, opening the connection if need be.
    fn proceed(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        if connection.is_closed() && connection.retry_at > self.now {
            self.next_retry = self.next_retry.min(connection.retry_at);
            return Ok(());
        }
        while connection.waiting.len() < self.plan.options.pipeline {
            let Some(started) = self.plan.pacing.take(&mut connection.turn, self.now) else {
                break;
            };
            self.tally.connections[index].asked += u64::from(started.counted);
            connection.push(started, self.draw.next());
            self.in_flight += 1;
        }
        if connection.is_open() {
            return connection.write(self.plan.wires, &self.poller, index);
        }
        if connection.is_closed() && !connection.waiting.is_empty() {
            return self.open(index);
        }
        Ok(())
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        match connection.begin(&self.plan.addresses[connection.address], &self.poller, index) {
            Ok(()) if connection.is_open() => self.opened(index),
            Ok(()) => Ok(()),
            Err(Errno::AGAIN) => {
                self.pause(index, BACKLOG_PAUSE);
                Ok(())
            }
            Err(error) => {
                self.refused(index, error);
                Ok(())
            }
        }
    }

    fn opened(&mut self, index: usize) -> io::Result<()> {
        self.tally.opened += 1;
        self.connections[index].write(self.plan.wires, &self.poller, index)
    }

    /// Connecting failed: tries the next address; after the last, the request has failed.
    fn refused(&mut self, index: usize, error: Errno) {
        let connection = &mut self.connections[index];
        connection.address += 1;
        if connection.address < self.plan.addresses.len() {
            connection.close();
            return self.pause(index, 0);
        }
        connection.address = 0;
        if self.tally.opened == 0 {
            self.ending = Some(Ending::Unreachable(error));
        }
        self.fail(index, Failure::Connect);
        self.pause(index, REFUSED_PAUSE);
    }

    fn pause(&mut self, index: usize, pause: Nanos) {
        let retry_at = self.now + pause;
        self.connections[index].retry_at = retry_at;
        self.next_retry = self.next_retry.min(retry_at);
    }

    fn handle(&mut self, ready: Ready) -> io::Result<()> {
        let index = ready.token;
        let connection = &mut self.connections[index];
        if connection.is_closed() {
            return Ok(());
        }
        if !connection.is_open() {
            if let Err(error) = connection.finish_connecting() {
                self.refused(index, error);
                return Ok(());
            }
            return self.opened(index);
        }
        if ready.writable {
            connection.write(self.plan.wires, &self.poller, index)?;
        }
        if ready.readable {
            self.read(index)?;
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let input = self.connections[index].read(&mut buffer);
        self.now = self.plan.clock.now();
        match input {
            Ok(Input::Bytes(bytes)) => {
                if self.now >= self.counted_from {
                    self.tally.bytes += bytes as u64;
                }
                self.digest(index, &buffer[..bytes]);
            }
            Ok(Input::End) => self.ended(index, Failure::Closed),
            Ok(Input::Nothing) => {}
            Err(_) => self.ended(index, Failure::Read),
        }
        self.buffer = buffer;
        self.proceed(index)
    }

    /// Reads answers out of `bytes`.
    fn digest(&mut self, index: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let connection = &mut self.connections[index];
            if connection.waiting.is_empty() {
                self.tally.unasked();
                return connection.close();
            }
            match connection.reader.read(&mut bytes) {
                Ok(Some(answer)) => {
                    if !self.answered(index, answer) {
                        return self.connections[index].close();
                    }
                }
                Ok(None) => return,
                Err(_) => return self.fail(index, Failure::Malformed),
            }
        }
    }

    /// Counts an answer; `false` when the connection cannot be used for another.
    fn answered(&mut self, index: usize, answer: Answer) -> bool {
        let connection = &mut self.connections[index];
        let kind = self.plan.options.mix.get(connection.kind).map_or(0, |share| share.kind);
        let Some((started, written)) = connection.pop() else {
            return false;
        };
        self.in_flight -= 1;
        self.last_answer = self.now;
        self.tally.answer(index, kind, started, answer.status, self.now);
        answer.keep_alive && written && self.plan.options.keep_alive
    }

    /// The peer closed or broke the connection, which may be the end of an answer.
    fn ended(&mut self, index: usize, why: Failure) {
        let connection = &mut self.connections[index];
        let whole = if why == Failure::Closed {
            connection.reader.end()
        } else {
            None
        };
        if let Some(answer) = whole {
            self.answered(index, answer);
            return self.connections[index].close();
        }
        let why = if connection.is_broken() { Failure::Write } else { why };
        self.fail(index, why);
    }

    /// Closes the connection at the cost of its oldest request, if it has one.
    fn fail(&mut self, index: usize, why: Failure) {
        let connection = &mut self.connections[index];
        if let Some((started, _)) = connection.pop() {
            self.in_flight -= 1;
            self.tally.failure(index, started, why, self.now);
        }
        connection.close();
    }

    /// Counts what was under way or due when the run ended.
    fn count_leftovers(&mut self) {
        for connection in &self.connections {
            for started in connection.waiting.iter().filter(|started| started.counted) {
                self.tally.unanswered(started.due, self.now);
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
