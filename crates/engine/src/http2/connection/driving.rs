//! Drives `h2`: the poller receives and sends, every other thread only sends.

use super::core::{Core, End};
use super::{Arrival, Http2Connection, MOST_DELAYED};
use crate::clock::Millis;
use crate::spool::Slowness;
use crate::transport::READ_TURN;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::task::{Context, Waker};

impl Http2Connection {
    /// Receives a turn's worth, and sends. Called by the poller. Returns the requests that have arrived.
    pub(crate) fn pull(&self, scratch: &mut [u8], now: Millis) -> Vec<Arrival> {
        self.with_core(|core| {
            self.carrier.pipe.begin_turn(true);
            match core.is_closing() {
                true => core.discard(&self.carrier, scratch),
                false => self.drive(core, now),
            }
            core.watch(&self.carrier, &self.streams);
            std::mem::take(&mut core.arrivals)
        })
    }

    /// Returns the requests that have arrived while another thread was sending. That thread may find requests that were
    /// received before, when nothing could be sent.
    pub(crate) fn take_arrivals(&self) -> Vec<Arrival> {
        self.with_core(|core| std::mem::take(&mut core.arrivals))
    }

    /// Returns true if the client has reset a stream since the last call.
    pub(crate) fn take_has_reset(&self) -> bool {
        self.carrier.pipe.take_has_reset()
    }

    /// Sends the output of `h2`, from any thread. If another thread is driving it, that thread sends.
    pub(crate) fn push(&self) {
        self.wanted.set();
        self.drive_if_wanted();
    }

    /// Like [`Http2Connection::push`], for the end of a response, but possibly together with the next responses; see
    /// `delay.rs`.
    pub(in crate::http2) fn push_soon(&self) {
        if !self.queue.has_turn() || self.delay() >= MOST_DELAYED {
            self.push();
        }
    }

    /// Leaves the sending to `delay.rs`; returns the number of responses that were left to it before.
    fn delay(&self) -> u32 {
        let before = self.delayed.fetch_add(1, SeqCst);
        if before == 0 {
            self.all_delayed.add(self.me.clone());
        }
        before
    }

    /// Like [`Http2Connection::push`], if `h2` has something to do.
    pub(crate) fn push_if_due(&self) {
        if self.wakeup.take() {
            self.push();
        }
    }

    /// Drives `h2` if the signal is set, unless another thread has locked the connection: that thread checks the signal
    /// after it unlocks.
    fn drive_if_wanted(&self) {
        if !self.carrier.worker.is_at_home() {
            // A process that the app has forked must not send.
            return;
        }
        self.wanted.serve(&self.core, |core| {
            if !core.is_driven() {
                return self.wanted.clear();
            }
            self.carrier.pipe.begin_turn(false);
            self.drive(core, Millis::now());
            core.watch(&self.carrier, &self.streams);
            if !core.arrivals.is_empty() || self.streams.is_any_watched() {
                // There may be room now.
                self.look_later();
            }
        });
    }

    /// Uses the core, and afterwards drives `h2` for threads that have found it locked.
    pub(super) fn with_core<T>(&self, code: impl FnOnce(&mut Core) -> T) -> T {
        let result = code(&mut self.core.lock());
        self.drive_if_wanted();
        result
    }

    /// Drives `h2` until it has nothing to do.
    fn drive(&self, core: &mut Core, now: Millis) {
        let waker = self.waker();
        let mut context = Context::from_waker(&waker);
        // Bounded, so that a client cannot occupy the thread with the work that it causes in `h2`.
        for _ in 0..READ_TURN {
            self.wanted.clear();
            self.delayed.store(0, SeqCst);
            self.wakeup.take();
            self.carrier.pipe.begin_step();
            core.step(&self.carrier, &mut context, now);
            if let Some(flood) = self.carrier.pipe.flood().filter(|_| core.end.is_none()) {
                core.end_with(End::Flood(flood), &self.carrier, &mut context, now);
            }
            if !core.is_driven() || !self.wanted.is_set() && !self.carrier.pipe.is_step_over() {
                break;
            }
        }
        if self.wakeup.take() {
            // `h2` has more work of its own, or another response that may wait.
            self.delay();
        }
    }

    /// Tells the thread that drives `h2` next that there is something to do.
    pub(super) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.wakeup))
    }

    /// Returns how slowly the client takes its responses.
    pub(crate) fn slowness(&self, now: Millis) -> Option<Slowness> {
        self.with_core(|core| core.slowness(&self.carrier, now))
    }
}
