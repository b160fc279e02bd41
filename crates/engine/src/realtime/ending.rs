//! How a client ends: closed by either side, by a protocol violation, by silence, or because it takes nothing.
//!
//! ```text
//!   Open ──close──▶ Closing ──the peer's close frame──▶ Closed
//!     ├────fault──▶ Failed ───the peer hangs up───────────▲
//!     └── error, end of input, silence, time-out ─────────┘
//! ```
//! A deadline runs only once the kernel has everything; until then the minimum rate bounds the end, as any other write. It
//! bounds the kernel's queue, too: a peer that still takes bytes from there is waited for. A socket that is closed before
//! answers what the peer sends with a reset, which takes away what is left of the queue.
//!
//! The end of input ends nothing while the peer's own last word waits for its answer: browsers end their half of a stream
//! of HTTP/2 with their close frame. The last frame is sent, then the server's half of the connection is closed. What the
//! peer still sends is discarded for a while, so that no reset overtakes the last frame (RFC 6455 §7.1.1).

use super::client::{Client, Protocol, State};
use super::encoding;
use super::frames::Frame;
use super::inbox::{Event, LastWord};
use super::outbox::Outbox;
use super::turns::GOING_AWAY;
use super::Realtime;
use crate::clock::Millis;
use crate::http::http1::LAST_CHUNK;
use crate::http::own_chunks::UNFINISHED;
use crate::limits::meter::{Meter, Rate};
use crate::observe::excess::About;
use crate::sync::MutexGuard;
use crate::transport::{Afterwards, Shutdown, Transport, LINGER};
use fairlead_wire::websocket::{close_frame, Opcode};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long the peer may take to answer the close frame.
const CLOSE: Duration = Duration::from_millis(5_000);

/// A silent client gets a ping after one period, and is aborted after this many.
const SILENT_PERIODS: u32 = 2;

/// Close code for a client that may try again later (RFC 6455 §11.7, registered later).
const TRY_AGAIN_LATER: u16 = 1013;

/// The state of an end that has begun.
#[derive(Debug)]
pub(super) struct Ending {
    /// Time for the peer once the kernel has everything.
    patience: Duration,
    /// Nothing is waited for after this; [`Millis::NEVER`] until the kernel has everything. If the peer takes bytes of the
    /// kernel's queue meanwhile, the deadline moves.
    deadline: Millis,
    /// Length of the kernel's queue when it was last looked at.
    queued: usize,
    /// Measures how fast the peer takes it.
    meter: Meter,
    /// Whether the peer has sent its close frame.
    peer_is_done: bool,
    /// Whether the server's half of the connection is closed.
    is_shut: bool,
    /// Whether a response is complete and with the kernel, so that another request may follow.
    pub(super) is_complete: bool,
}

impl Ending {
    /// The kernel has everything, of which the peer has not acknowledged `queued` bytes.
    fn begin(&mut self, queued: usize, now: Millis) {
        self.deadline = now + self.patience;
        self.queued = queued;
        self.meter = Meter::begin(now);
    }

    /// At the deadline: whether the peer gets more time, because it has taken bytes of the kernel's queue, of which `queued`
    /// are left.
    fn goes_on(&mut self, queued: usize, rate: Rate, now: Millis) -> bool {
        let before = std::mem::replace(&mut self.queued, queued);
        self.meter.moved(before.saturating_sub(queued) as u64, now, rate);
        let late = self.meter.deadline(rate);
        self.deadline = match queued {
            _ if before == 0 || late <= now => return false,
            0 => now + self.patience,
            _ => late.min(now + self.patience),
        };
        true
    }
}

impl Client {
    /// Closes the connection after what is queued: with a close frame, or the last chunk. Later writes are refused.
    pub fn close(&self, code: Option<u16>, reason: &str) {
        let outbox = self.outbox.lock();
        if self.is_open() && outbox.own_chunks.as_ref().is_some_and(|chunks| !chunks.is_done()) {
            return self.abort(outbox, UNFINISHED);
        }
        if self.advance(State::Closing) {
            if outbox.is_short() {
                self.tell_of_end(format_args!("its body is shorter than the announced content-length"));
            }
            self.send_last(outbox, code, reason, CLOSE, false);
        }
    }

    /// Nobody can write to it or close it any more. What was written is sent; the response is cut off, unless that is all.
    pub fn abandon(&self) {
        let mut outbox = self.outbox.lock();
        let is_framed = outbox.own_chunks.as_ref().is_some_and(|chunks| chunks.is_done());
        if is_framed || outbox.missing == Some(0) {
            drop(outbox);
            return self.close(None, "");
        }
        if self.advance(State::Closing) {
            self.tell_of_end(format_args!("the application has lost the stream without closing it"));
            outbox.is_cut = true;
            self.send_last(outbox, None, "", CLOSE, false);
        }
    }

    /// Answers the peer's close frame or protocol violation.
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

    /// The peer does not take what it is sent.
    pub(super) fn fail_slow(&self, outbox: MutexGuard<'_, Outbox>) {
        self.fail(outbox, TRY_AGAIN_LATER, "does not take what it is sent");
    }

    /// The peer has violated the protocol: sends a close code, and discards what it still sends.
    pub(super) fn fail(&self, mut outbox: MutexGuard<'_, Outbox>, code: u16, reason: &'static str) {
        if self.is_response() {
            // Without what is dropped, a last chunk would pass for the end of the response.
            return self.abort(outbox, reason);
        }
        if !self.advance(State::Failed) {
            return;
        }
        self.tell_of_end(format_args!("{code}: {reason}"));
        // After a close frame nothing may follow, and the frame itself must still be sent.
        if outbox.ending.is_none() {
            outbox.frames.forget_whole_frames();
        }
        self.send_last(outbox, Some(code), reason, LINGER, false);
    }

    fn send_last(
        &self,
        mut outbox: MutexGuard<'_, Outbox>,
        code: Option<u16>,
        reason: &str,
        patience: Duration,
        peer_is_done: bool,
    ) {
        let has_spoken = outbox.ending.is_some();
        outbox.ending = Some(Ending {
            patience: self.patience(&outbox, patience),
            deadline: Millis::NEVER,
            queued: 0,
            meter: Meter::begin(Millis::now()),
            peer_is_done,
            is_shut: false,
            is_complete: false,
        });
        if !has_spoken {
            outbox.begin();
            let last = self.closing_bytes(&outbox, code, reason);
            outbox.frames.push(Frame::Own(last));
        }
        self.flush_locked(outbox);
        // What the peer still sends does not go to the app, so reading need not wait for the app.
        if let Some(realtime) = self.realtime.upgrade() {
            self.resume(&realtime);
        }
    }

    /// `usual`, or longer for a peer that has not taken earlier frames: when the kernel has the last one, its buffer is
    /// still full of them.
    fn patience(&self, outbox: &Outbox, usual: Duration) -> Duration {
        match self.realtime.upgrade() {
            Some(realtime) if outbox.writes => realtime.worker.write_timeout().max(usual),
            _ => usual,
        }
    }

    fn closing_bytes(&self, outbox: &Outbox, code: Option<u16>, reason: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.protocol() {
            _ if outbox.is_cut => {}
            Protocol::WebSocket => close_frame(&mut bytes, code, reason),
            Protocol::EventStream { chunked: true } | Protocol::Stream { chunked: true } => match &outbox.own_chunks {
                Some(chunks) => bytes = chunks.last_chunk(),
                None => bytes.extend_from_slice(LAST_CHUNK),
            },
            _ => {}
        }
        bytes
    }

    /// The kernel has everything. If that includes the last frame, the deadline begins. Closes the server's half of the
    /// connection, unless the peer's close frame is awaited or another request may follow. True if the client has ended.
    pub(super) fn has_sent_all(&self, outbox: &mut Outbox) -> bool {
        let (is_short, is_cut) = (outbox.is_short(), outbox.is_cut);
        // Before the client has begun, its carrier is unknown.
        let (Some(ending), Some(carrier)) = (&mut outbox.ending, &outbox.carrier) else {
            return false;
        };
        let goes_on = carrier.goes_on() && !is_short;
        ending.is_complete = goes_on && carrier.is_lent();
        ending.is_complete &= !is_cut;
        if ending.peer_is_done || ending.is_complete || is_cut {
            return true;
        }
        if ending.deadline == Millis::NEVER {
            let queued = outbox
                .transport
                .as_ref()
                .map_or(0, |transport| transport.unacknowledged());
            ending.begin(queued, Millis::now());
            if let Some(realtime) = self.realtime.upgrade() {
                realtime.expect(ending.deadline);
            }
        }
        let awaits_response = self.state() == State::Closing && self.protocol() == Protocol::WebSocket;
        if !awaits_response && !std::mem::replace(&mut ending.is_shut, true) {
            if let Some(transport) = &outbox.transport {
                if self.is_response() {
                    transport.give_back(match goes_on {
                        true => Afterwards::NextRequest,
                        false => Afterwards::Close,
                    });
                }
                let is_gone = transport.shut_down(Shutdown::Write).is_err();
                // The stream of a session has nothing to tell after the end of both halves.
                return is_gone || (transport.own_events().is_some() && self.protocol() != Protocol::WebSocket);
            }
        }
        false
    }

    /// The connection is gone, or ends now; the app gets [`Event::Close`].
    pub(crate) fn end(&self) {
        if self.end_now() {
            self.tell(Event::Close);
        }
    }

    /// Ends the connection, even if others have the socket, too. False if that has happened before.
    pub(super) fn end_now(&self) -> bool {
        let is_cut = self.is_response() && {
            let outbox = self.outbox.lock();
            outbox.is_cut || outbox.ending.is_none()
        };
        self.end_by(|transport| match is_cut {
            true => transport.cut(),
            false => _ = transport.shut_down(Shutdown::Both),
        })
    }

    fn end_by(&self, how: impl FnOnce(&dyn Transport)) -> bool {
        if !self.advance(State::Closed) {
            return false;
        }
        let mut outbox = self.outbox.lock();
        if let Some(lender) = outbox.take_lender() {
            drop(outbox);
            lender.take_back();
            return true;
        }
        outbox.frames.clear();
        if let (Some(realtime), Some(transport)) = (self.realtime.upgrade(), &outbox.transport) {
            if realtime.worker.is_at_home() {
                transport.unwatch(&realtime.worker.poller);
                how(&**transport);
            }
        }
        true
    }

    /// The server ends before the app has closed the client: sends the last frame, as far as the kernel takes it at once.
    /// A response that is cut gets none.
    pub(super) fn say_goodbye(&self) {
        let mut outbox = self.outbox.lock();
        outbox.send_now();
        let lost = outbox.frames.bytes();
        if !self.is_response() && self.advance(State::Closing) {
            outbox.frames.forget_whole_frames();
            let last = self.closing_bytes(&outbox, Some(GOING_AWAY), "");
            outbox.frames.push(Frame::Own(last));
            outbox.send_now();
        }
        drop(outbox);
        if lost > 0 {
            self.tell_of_end(format_args!("the server ended before it took {lost} bytes"));
        }
    }

    fn tell_of_end(&self, why: std::fmt::Arguments<'_>) {
        if let Some(realtime) = self.realtime.upgrade() {
            let log = &realtime.worker.log;
            log.about_peer(
                About::Client,
                self.peer,
                format_args!("closed {} ({why})", self.describe()),
            );
        }
    }

    /// Resets the connection without a last frame, so that the kernel does not keep, for minutes, data that the peer
    /// does not read.
    pub(super) fn abort(&self, outbox: MutexGuard<'_, Outbox>, why: &str) {
        drop(outbox);
        self.tell_of_end(format_args!("{why}"));
        if self.end_by(|transport| transport.reset()) {
            self.tell(Event::Close);
        }
    }

    pub(super) fn describe(&self) -> String {
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

    /// Does what is due; returns when to call it again.
    pub(super) fn tick(&self, realtime: &Realtime, now: Millis) -> Millis {
        let mut next = self.look_after_message(realtime, now);
        let mut outbox = self.outbox.lock();
        if self.state() == State::Closed {
            return Millis::NEVER;
        }
        let Outbox { ending, transport, .. } = &mut *outbox;
        if let Some(ending) = ending {
            let queued = || transport.as_ref().map_or(0, |transport| transport.unacknowledged());
            if ending.deadline <= now && !ending.goes_on(queued(), realtime.worker.config.write_rate(), now) {
                drop(outbox);
                self.end();
                return Millis::NEVER;
            }
            next = ending.deadline;
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

    /// The poller reports a socket as writable only when a third of its buffer is free, so the client is offered more
    /// to see whether it takes anything at all.
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

    /// Keep-alive (RFC 6455 §5.5.2): a ping for a WebSocket, which must be answered; a comment for an event stream.
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
                    // The peer may have sent something: the server does not read.
                    return now + period;
                }
                let due = self.heard.load(Relaxed) + period;
                if due > now {
                    return due;
                }
                // The peer's time begins with the ping: the process may have stood still since the peer was heard.
                let pinged = self.pinged.load(Relaxed);
                let time = period * (SILENT_PERIODS - 1);
                if pinged < due {
                    self.pinged.store(now, Relaxed);
                    self.send_quietly(outbox, encoding::plain(Opcode::Ping, b""));
                    return now + time;
                }
                let gone = pinged + time;
                if gone <= now {
                    self.abort(outbox, "it does not answer pings");
                    return Millis::NEVER;
                }
                gone
            }
        }
    }

    /// Releases everything after the last event has run. Returns the names of channels that have no subscriber left in
    /// this process.
    pub(super) fn release(&self, realtime: &Realtime) -> Vec<Box<[u8]>> {
        self.reader.lock().end();
        let unheard = self.inbox.lock().clear();
        realtime.intake.remove(unheard, &realtime.worker.poller);
        let mut outbox = self.outbox.lock();
        let transport = outbox.transport.take();
        let counts = (outbox.count.take(), outbox.carrier.take());
        outbox.own_chunks = None;
        drop(outbox);
        if let Some(mut deflater) = self.deflater.try_lock() {
            *deflater = None;
        }
        drop(transport);
        realtime.clients.release(self.key);
        drop(counts);
        self.unsubscribe_all(realtime)
    }
}
