//! How a client comes to its end: by its own wish or ours, by a fault, by silence, or by standing still.
//!
//! ```text
//!   Open ──close──▶ Closing ──the peer's close frame──▶ Closed
//!     ├────fault──▶ Failed ───the peer hangs up───────────▲
//!     └── error, end of input, silence, time-out ─────────┘
//! ```
//! Our last word is sent, then our half of the connection is closed, and what the peer still says is thrown away for a
//! while: a reset must not overtake it (RFC 6455 §7.1.1).

use super::client::{Client, Outbox, Protocol, State};
use super::encoding;
use super::inbox::{Event, LastWord};
use super::outbox::Frame;
use super::Realtime;
use crate::clock::Millis;
use crate::http::http1::LAST_CHUNK;
use crate::transport::{Shutdown, Transport, LINGER};
use fairlead_wire::websocket::{close_frame, Opcode};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// How long the peer may take to answer our close frame.
const CLOSE: Duration = Duration::from_millis(5_000);

/// A client that silent is asked, and after twice the time it is gone.
const SILENT_PERIODS: u32 = 2;

/// Close code for a client that is welcome back (RFC 6455 §11.7, registered later).
const TRY_AGAIN_LATER: u16 = 1013;

/// What is known of an end that has begun.
#[derive(Debug)]
pub(super) struct Ending {
    /// After that nothing is waited for.
    deadline: Millis,
    /// Whether the peer has nothing more to say that counts.
    peer_is_done: bool,
    /// Whether our half of the connection is closed.
    is_shut: bool,
}

impl Client {
    /// Closes the connection after what is queued: with a close frame, or the last chunk. Writes are refused from now on.
    pub fn close(&self, code: Option<u16>, reason: &str) {
        let outbox = self.outbox.lock();
        if self.advance(State::Closing) {
            self.send_last(outbox, code, reason, CLOSE, false);
        }
    }

    /// Answers what the peer has said last.
    pub(super) fn answer_last(&self, last_word: LastWord) {
        match last_word {
            LastWord::Close(code) => self.peer_closed(code),
            LastWord::Failure(failure) => self.fail(self.outbox.lock(), failure.code, failure.reason),
        }
    }

    /// The peer has sent a close frame.
    fn peer_closed(&self, code: Option<u16>) {
        let mut outbox = self.outbox.lock();
        if self.advance(State::Closing) {
            return self.send_last(outbox, code, "", LINGER, true);
        }
        if let Some(ending) = &mut outbox.ending {
            ending.peer_is_done = true;
        }
        if outbox.frames.is_empty() {
            drop(outbox);
            self.end();
        }
    }

    /// The peer has done what it may not: says so with a close code and throws the rest away.
    pub(super) fn fail(&self, outbox: MutexGuard<'_, Outbox>, code: u16, reason: &'static str) {
        self.fail_within(outbox, code, reason, LINGER);
    }

    /// The peer does not take what it is sent. It may not take the close frame soon either.
    pub(super) fn fail_slow(&self, outbox: MutexGuard<'_, Outbox>, realtime: &Realtime) {
        let patience = realtime.worker.write_timeout().max(LINGER);
        self.fail_within(outbox, TRY_AGAIN_LATER, "does not take what it is sent", patience);
    }

    fn fail_within(&self, mut outbox: MutexGuard<'_, Outbox>, code: u16, reason: &'static str, patience: Duration) {
        if !self.advance(State::Failed) {
            return;
        }
        if let Some(realtime) = self.realtime.upgrade() {
            realtime
                .worker
                .log
                .error(format_args!("closed {} ({code}: {reason})", self.describe()));
        }
        // Once we have said goodbye nothing may follow that, and it is still to be sent.
        if outbox.ending.is_none() {
            outbox.frames.forget_whole_frames();
        }
        self.send_last(outbox, Some(code), reason, patience, false);
    }

    fn send_last(
        &self,
        mut outbox: MutexGuard<'_, Outbox>,
        code: Option<u16>,
        reason: &str,
        patience: Duration,
        peer_is_done: bool,
    ) {
        let now = Millis::now();
        let has_spoken = outbox.ending.is_some();
        outbox.ending = Some(Ending {
            deadline: now + patience,
            peer_is_done,
            is_shut: false,
        });
        if !has_spoken {
            outbox.begin();
            outbox.frames.push(Frame::Own(self.closing_bytes(code, reason)));
        }
        if let Some(realtime) = self.realtime.upgrade() {
            realtime.expect(now + patience);
        }
        self.flush_locked(outbox);
        // What the peer still says does not go to the app, so it need not wait for that.
        if let Some(realtime) = self.realtime.upgrade() {
            self.resume(&realtime);
        }
    }

    fn closing_bytes(&self, code: Option<u16>, reason: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.protocol() {
            Protocol::WebSocket => close_frame(&mut bytes, code, reason),
            Protocol::EventStream { chunked: true } | Protocol::Stream { chunked: true } => {
                bytes.extend_from_slice(LAST_CHUNK);
            }
            _ => {}
        }
        bytes
    }

    /// Everything is with the kernel. If that includes the last word, our half of the connection is closed, unless the
    /// peer's close frame is awaited; true when the client is at its end.
    pub(super) fn has_sent_all(&self, outbox: &mut Outbox) -> bool {
        let Some(ending) = &mut outbox.ending else { return false };
        if ending.peer_is_done {
            return true;
        }
        let awaits_response = self.state() == State::Closing && self.protocol() == Protocol::WebSocket;
        if !awaits_response && !std::mem::replace(&mut ending.is_shut, true) {
            if let Some(transport) = &outbox.transport {
                return transport.shut_down(Shutdown::Write).is_err();
            }
        }
        false
    }

    /// The connection is gone, or ends here and now; the app will be told.
    pub(crate) fn end(&self) {
        if self.end_now() {
            self.tell(Event::Close);
        }
    }

    /// Ends the connection, whoever else has the socket; false if that has happened before.
    pub(super) fn end_now(&self) -> bool {
        self.end_by(|transport| _ = transport.shut_down(Shutdown::Both))
    }

    fn end_by(&self, how: impl FnOnce(&dyn Transport)) -> bool {
        if !self.advance(State::Closed) {
            return false;
        }
        let mut outbox = self.outbox.lock();
        outbox.frames.clear();
        if let (Some(realtime), Some(transport)) = (self.realtime.upgrade(), &outbox.transport) {
            if realtime.worker.is_at_home() {
                realtime.worker.poller.remove(transport);
                how(&**transport);
            }
        }
        true
    }

    /// Ends the connection without a last_word, so that the kernel does not keep, for minutes, what nobody reads.
    fn abort(&self, outbox: MutexGuard<'_, Outbox>, why: &str) {
        drop(outbox);
        if let Some(realtime) = self.realtime.upgrade() {
            realtime
                .worker
                .log
                .error(format_args!("closed {} ({why})", self.describe()));
        }
        if self.end_by(|transport| transport.reset()) {
            self.tell(Event::Close);
        }
    }

    fn describe(&self) -> String {
        let kind = match self.protocol() {
            Protocol::WebSocket => "a WebSocket",
            Protocol::EventStream { .. } => "an event stream",
            Protocol::Stream { .. } => "a stream",
        };
        match self.peer {
            Some(peer) => format!("{kind} of {peer}"),
            None => format!("{kind} of a local client"),
        }
    }

    /// Does what is due; returns when to look again.
    pub(super) fn tick(&self, realtime: &Realtime, now: Millis) -> Millis {
        let outbox = self.outbox.lock();
        let mut next = Millis::NEVER;
        if self.state() == State::Closed {
            return Millis::NEVER;
        }
        if let Some(ending) = &outbox.ending {
            next = ending.deadline;
            if next <= now {
                drop(outbox);
                self.end();
                return Millis::NEVER;
            }
        }
        if !outbox.frames.is_empty() {
            let due = outbox.meter.deadline(realtime.worker.config.write_rate());
            if due <= now {
                return self.offer_again(realtime, outbox, now);
            }
            next = next.min(due);
        }
        match self.timeout.load(Relaxed) {
            0 => next,
            _ if outbox.ending.is_some() => next,
            seconds => next.min(self.look_after(outbox, Duration::from_secs(seconds.into()), now)),
        }
    }

    /// The poller speaks up only when a third of the socket's buffer is free: whether the client takes anything at all
    /// shows when it is offered more.
    fn offer_again(&self, realtime: &Realtime, outbox: MutexGuard<'_, Outbox>, now: Millis) -> Millis {
        let before = outbox.frames.bytes();
        self.flush_locked(outbox);
        let outbox = self.outbox.lock();
        let due = outbox.meter.deadline(realtime.worker.config.write_rate());
        let stands_still = outbox.frames.bytes() >= before;
        if self.state() != State::Closed && !outbox.frames.is_empty() && (stands_still || due <= now) {
            let seconds = realtime.worker.write_timeout().as_secs();
            let how_much = if stands_still { "nothing" } else { "too little" };
            self.abort(outbox, &format!("it has taken {how_much} for {seconds} s"));
            return Millis::NEVER;
        }
        due.max(now + Duration::from_millis(1))
    }

    /// Signs of life (RFC 6455 §5.5.2): a ping for a WebSocket, which has to be answered; a comment for an event stream.
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
            Protocol::WebSocket => {
                if self.paused.load(Relaxed) {
                    // It is not the peer who is silent: nobody listens.
                    return now + period;
                }
                let heard = self.heard.load(Relaxed);
                let gone = heard + period * SILENT_PERIODS;
                if gone <= now {
                    self.abort(outbox, "it does not answer pings");
                    return Millis::NEVER;
                }
                let due = heard + period;
                if due > now {
                    return due;
                }
                if self.pinged.load(Relaxed) < due {
                    self.pinged.store(now, Relaxed);
                    self.send_quietly(outbox, encoding::plain(Opcode::Ping, b""));
                }
                gone
            }
        }
    }

    /// Gives everything back after the last event has run. Returns the names of channels that nobody in this process is
    /// subscribed to any more.
    pub(super) fn release(&self, realtime: &Realtime) -> Vec<Box<[u8]>> {
        self.reader.lock().end();
        let unheard = self.inbox.lock().clear();
        realtime.intake.remove(unheard, &realtime.worker.poller);
        let mut outbox = self.outbox.lock();
        let transport = outbox.transport.take();
        outbox.deflater = None;
        drop(outbox);
        drop(transport);
        if realtime.clients.release(self.key) {
            realtime.worker.counters().clients.fetch_sub(1, Relaxed);
            realtime.worker.counters().connections.fetch_sub(1, SeqCst);
            realtime.worker.give_place_back();
        }
        self.unsubscribe_all(realtime)
    }
}
