//! Drives `h2`: the poller receives and sends, every other thread sends.

use super::{Arrival, Core, End, Session, State, COUNTED_BYTES, MOST_DELAYED};
use crate::clock::Millis;
use crate::limits::budget::Kind;
use crate::spool::{Charge, Pace, Slowness};
use crate::transport::{Shutdown, READ_TURN};
use h2::Reason;
use rustix::io::Errno;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

impl Session {
    /// Called by the poller: receives a turn's worth, and sends. Returns the requests that have arrived.
    pub(crate) fn pull(&self, scratch: &mut [u8], now: Millis) -> Vec<Arrival> {
        self.with_core(|core| {
            self.pipe.begin_turn(true);
            match core.state {
                State::Closing(_) => self.discard(core, scratch),
                _ => self.drive(core, now),
            }
            self.watch_socket(core);
            std::mem::take(&mut core.arrivals)
        })
    }

    /// Requests that have arrived while another thread was sending: it may find some that were received before, when
    /// nothing could be sent.
    pub(crate) fn take_arrivals(&self) -> Vec<Arrival> {
        self.with_core(|core| std::mem::take(&mut core.arrivals))
    }

    /// Whether the client has reset a stream since the last call.
    pub(crate) fn take_has_reset(&self) -> bool {
        self.pipe.take_has_reset()
    }

    /// Sends what `h2` has, from any thread. If another thread drives it just now, that thread does it.
    pub(crate) fn push(&self) {
        self.wanted.set();
        self.drive_if_wanted();
    }

    /// As [`Session::push`], for the end of a response. Perhaps together with the next ones, see `delay.rs`.
    pub(in crate::http2) fn push_soon(&self) {
        if !self.line.has_turn() || self.delay() >= MOST_DELAYED {
            self.push();
        }
    }

    /// Leaves it to `delay.rs` to send; returns how much was left to it before.
    fn delay(&self) -> u32 {
        let before = self.delayed.fetch_add(1, SeqCst);
        if before == 0 {
            self.shared.delayed.add(self.me.clone());
        }
        before
    }

    /// As [`Session::push`], if `h2` has something to do.
    pub(crate) fn push_if_due(&self) {
        if self.wakeup.take() {
            self.push();
        }
    }

    /// Whoever finds the session locked leaves the rest to whoever has locked it: that one looks here afterwards.
    fn drive_if_wanted(&self) {
        if !self.worker.is_at_home() {
            // A process that the app has forked must not send.
            return;
        }
        self.wanted.serve(&self.core, |core| {
            if matches!(core.state, State::Closing(_) | State::Over) {
                return self.wanted.clear();
            }
            self.pipe.begin_turn(false);
            self.drive(core, Millis::now());
            self.watch_socket(core);
            if !core.arrivals.is_empty() || !self.watched.lock().is_empty() {
                // There may be room now.
                self.look_later();
            }
        });
    }

    /// Uses the core. Whoever wanted to drive `h2` meanwhile has left it to this thread.
    pub(super) fn with_core<T>(&self, code: impl FnOnce(&mut Core) -> T) -> T {
        let result = code(&mut self.core.lock());
        self.drive_if_wanted();
        result
    }

    /// Drives `h2` until it has nothing to do.
    fn drive(&self, core: &mut Core, now: Millis) {
        let waker = Waker::from(Arc::clone(&self.wakeup));
        let mut context = Context::from_waker(&waker);
        // Bounded, so that a client cannot keep the thread by what it makes `h2` do.
        for _ in 0..READ_TURN {
            self.wanted.clear();
            self.delayed.store(0, SeqCst);
            self.wakeup.take();
            self.pipe.begin_step();
            self.step(core, &mut context, now);
            if let Some(flood) = self.pipe.flood().filter(|_| core.end.is_none()) {
                core.end = Some(End::Flood(flood));
                core.say_goodbye(&mut context);
                self.close(core, now);
            }
            let is_open = matches!(core.state, State::Preface(_) | State::Open(_));
            if !is_open || !self.wanted.is_set() && !self.pipe.is_step_over() {
                break;
            }
        }
        if self.wakeup.take() {
            // For itself, or for a response that may wait.
            self.delay();
        }
    }

    fn step(&self, core: &mut Core, context: &mut Context<'_>, now: Millis) {
        if let State::Preface(handshake) = &mut core.state {
            match Pin::new(&mut **handshake).poll(context) {
                Poll::Pending => return,
                Poll::Ready(Ok(connection)) => core.state = State::Open(Box::new(connection)),
                Poll::Ready(Err(error)) => return self.end_by(core, Some(&error), now),
            }
        }
        while let State::Open(connection) = &mut core.state {
            match connection.poll_accept(context) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok((request, respond)))) => core.arrivals.push(Arrival { request, respond }),
                Poll::Ready(Some(Err(error))) => self.end_by(core, Some(&error), now),
                Poll::Ready(None) => self.end_by(core, None, now),
            }
        }
    }

    /// `h2` has ended the session.
    fn end_by(&self, core: &mut Core, error: Option<&h2::Error>, now: Millis) {
        let reason = error
            .filter(|error| !error.is_io() && !error.is_remote())
            .and_then(h2::Error::reason);
        let flood = self.pipe.flood().or_else(|| self.pipe.flood_told());
        core.end.get_or_insert(match (reason, flood) {
            (None | Some(Reason::NO_ERROR), _) => End::Usual,
            (Some(Reason::ENHANCE_YOUR_CALM), Some(flood)) => End::Flood(flood),
            (Some(reason), _) => End::Violation(reason),
        });
        match error {
            // The client is gone.
            Some(error) if error.is_io() => self.finish(core),
            _ => self.close(core, now),
        }
    }

    /// Nothing more is sent; what still comes is discarded, so that no reset overtakes what was sent.
    pub(super) fn close(&self, core: &mut Core, now: Millis) {
        core.state = State::Closing(now);
        core.unsent = None;
        self.is_over.store(true, SeqCst);
        if self.transport.shut_down(Shutdown::Write).is_err() {
            self.finish(core);
        }
    }

    pub(super) fn finish(&self, core: &mut Core) {
        core.state = State::Over;
        core.unsent = None;
        self.is_over.store(true, SeqCst);
    }

    fn discard(&self, core: &mut Core, scratch: &mut [u8]) {
        for _ in 0..READ_TURN / scratch.len().max(1) {
            match self.transport.receive(scratch) {
                Ok(1..) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(0) | Err(_) => return self.finish(core),
            }
        }
    }

    /// Tells the poller what to look for.
    pub(super) fn watch_socket(&self, core: &mut Core) {
        let has_more = self.pipe.has_more() && self.transport.holds_received();
        let wanted = match core.state {
            State::Over => (false, false),
            State::Closing(_) => (true, false),
            _ => (true, has_more || self.pipe.blocked_since().is_some()),
        };
        if core.interest != wanted && core.place.is_some() {
            core.interest = wanted;
            let watched = self
                .worker
                .poller
                .change_client(&self.transport, self.key, wanted.0, wanted.1);
            if watched.is_err() {
                self.finish(core);
            }
        }
        self.count_unsent(core);
        self.worker.expect(self.deadline_of(core));
    }

    /// Counts what the client does not take.
    fn count_unsent(&self, core: &mut Core) {
        if self.is_over() {
            return;
        }
        let unsent = self.pipe.unsent.total() / COUNTED_BYTES * COUNTED_BYTES;
        if core.unsent.as_ref().map_or(0, Charge::bytes) != unsent as u64 {
            let counted = (unsent > 0).then(|| self.shared.spool.count_memory(unsent, Some(&self.budget)));
            core.unsent = counted;
        }
        if self.budget.used(Kind::Responses) >= COUNTED_BYTES as u64 {
            core.pace.note_full(Millis::now(), self.pipe.unsent.all_sent());
        } else {
            core.pace = Pace::default();
        }
    }

    /// How slowly the client takes its responses.
    pub(crate) fn slowness(&self, now: Millis) -> Option<Slowness> {
        self.with_core(|core| {
            let sent = self.pipe.unsent.all_sent();
            // Nothing has been sent since it has some, or that would be noted.
            core.pace.begin(self.budget.held_since(Kind::Responses)?, sent);
            core.pace.slowness(now, sent, self.budget.used(Kind::Responses))
        })
    }
}
